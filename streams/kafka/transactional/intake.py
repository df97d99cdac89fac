"""From messages to records: what cannot be read becomes a dead letter with a named reason."""

from headrace.schemas.records import Record, Task, TaskConfig
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.messages import Message, key_of
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPICS

REMEMBERED_KEYS = 50_000  # about 12 MB; a key is checked again after that many others


class RefusedError(Exception):
    """A message that no processor can use.

    Attributes:
        reason: one word, as dead letters carry it.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Intake:
    """Decodes the records of topics and checks that those of co-partitioned ones stand where their key belongs."""

    def __init__(self, settings: Settings, topics: tuple[str, ...], partitions: int) -> None:
        self._codec = Codec(settings)
        self._partitions = partitions
        self._names = {settings.topic(t): t for t in topics}
        self._allowed = {t: TOPICS[t].records for t in topics}
        self._co_partitioned = {t for t in topics if TOPICS[t].co_partitioned}
        self._checked: dict[bytes, tuple[str, int]] = {}

    def short_name(self, topic: str) -> str:
        """The catalogue's name of a topic that is read."""
        return self._names[topic]

    def key(self, topic: str, message: Message) -> str:
        """The key of a message; `topic` is the short name.

        Raises:
            RefusedError: `null_key`, `undecodable_key` or `wrong_partition`.
        """
        key = message.key()
        if key is None:
            raise RefusedError("null_key", f"records of {topic} are keyed by {TOPICS[topic].key}")
        checked = self._checked.get(key)
        if checked is None:
            checked = self._check(key)
        text, partition = checked
        if partition != message.partition() and topic in self._co_partitioned:
            raise RefusedError("wrong_partition", f"murmur2 of the key says partition {partition}")
        return text

    def record(self, topic: str, message: Message) -> Record:
        """The record of a message; `topic` is the short name.

        Raises:
            RefusedError: as `key`; `wrong_key`, `wrong_record`, or a reason of DecodeError.
            UnavailableError: what else it needs (registry, claim-check store) does not answer now.
        """
        key = self.key(topic, message)
        try:
            record = self._codec.decode(message.value())
        except DecodeError as error:
            raise RefusedError(error.reason, str(error)) from error
        if record.SCHEMA not in self._allowed[topic]:
            raise RefusedError("wrong_record", f"a {record.SCHEMA} in {topic}")
        its_own: str = record.rollout_id if topic in self._co_partitioned else key_of(record)  # type: ignore[attr-defined]
        if its_own != key:
            raise RefusedError("wrong_key", f"the key is {key!r}, the record says {its_own!r}")
        if isinstance(record, Task):
            _check_config(record.config)
        return record

    def text_of_key(self, topic: str, message: Message) -> str:
        """The key of a message wherever it stands, for those that are read by the million.

        Raises:
            RefusedError: `null_key` or `undecodable_key`.
        """
        key = message.key()
        if key is None:
            raise RefusedError("null_key", f"records of {topic} are keyed by {TOPICS[topic].key}")
        return _text(key)

    def _check(self, key: bytes) -> tuple[str, int]:
        rollout_id = _text(key)
        if len(self._checked) >= REMEMBERED_KEYS:
            self._checked.clear()
        checked = self._checked[key] = (rollout_id, partition_of(rollout_id, self._partitions))
        return checked


def _check_config(config: TaskConfig) -> None:
    for name, seconds in (
        ("timeout_seconds", config.timeout_seconds),
        ("unresponsive_seconds", config.unresponsive_seconds),
    ):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise RefusedError("invalid_config", f"{name} is {seconds}; it must be positive")


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise RefusedError("undecodable_key", str(error)) from error
