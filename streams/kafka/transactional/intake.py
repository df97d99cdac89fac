"""From messages to records: what cannot be read becomes a dead letter with a named reason."""

from headrace.schemas.records import Record
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPICS

REMEMBERED_KEYS = 200_000  # about 20 MB; a key is checked again after that many others


class RefusedError(Exception):
    """A message that no processor can use.

    Attributes:
        reason: one word, as dead letters carry it.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Intake:
    """Decodes the records of co-partitioned topics and checks that they stand where their key belongs."""

    def __init__(self, settings: Settings, topics: tuple[str, ...], partitions: int) -> None:
        self._codec = Codec(settings)
        self._partitions = partitions
        self._names = {settings.topic(t): t for t in topics}
        self._allowed = {t: TOPICS[t].records for t in topics}
        self._checked: dict[bytes, tuple[str, int]] = {}

    def short_name(self, topic: str) -> str:
        """The catalogue's name of a topic that is read."""
        return self._names[topic]

    def record(self, topic: str, message: Message) -> Record:
        """The record of a message; `topic` is the short name.

        Raises:
            RefusedError: `null_key`, `undecodable_key`, `wrong_partition`, `key_mismatch`, or a reason of DecodeError.
        """
        key = message.key()
        if key is None:
            raise RefusedError("null_key", f"records of {topic} are keyed by rollout_id")
        checked = self._checked.get(key)
        if checked is None:
            checked = self._check(key)
        rollout_id, partition = checked
        if partition != message.partition():
            raise RefusedError("wrong_partition", f"murmur2 of the key says partition {partition}")
        try:
            record = self._codec.decode(message.value())
        except DecodeError as error:
            raise RefusedError(error.reason, str(error)) from error
        if record.SCHEMA not in self._allowed[topic]:
            raise RefusedError("wrong_record", f"a {record.SCHEMA} in {topic}")
        if record.rollout_id != rollout_id:  # type: ignore[attr-defined]
            raise RefusedError("key_mismatch", f"the key is {rollout_id!r}, the record says otherwise")
        return record

    def _check(self, key: bytes) -> tuple[str, int]:
        try:
            rollout_id = key.decode()
        except UnicodeDecodeError as error:
            raise RefusedError("undecodable_key", str(error)) from error
        if len(self._checked) >= REMEMBERED_KEYS:
            self._checked.clear()
        checked = self._checked[key] = (rollout_id, partition_of(rollout_id, self._partitions))
        return checked
