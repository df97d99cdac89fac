"""What a processor reads beside its group: compacted topics, single records, ends; and what it deletes of the log.

Topics go by their short names here. Tests put a log in memory in its place.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from confluent_kafka import KafkaException, TopicPartition

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets, offsets_at
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.group_offsets import GroupOffsets
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.kafka.rereading import Rereader
from headrace.streams.settings import Settings

ADMIN_SECONDS = 10.0

Partition = tuple[str, int]
"""Short name of a topic, and number."""
Place = tuple[str, int, int]
"""Short name of a topic, number, and offset."""


class LogReader:
    """The log of one pipeline. For the thread that made it."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._admin = make_admin(settings, client_id)
        self._rereader = Rereader(settings, client_id)
        self._offsets = GroupOffsets(settings, f"{client_id}-offsets")

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The read_uncommitted end of each partition as of now.

        Raises:
            BrokerUnavailableError: no answer.
        """
        names = {(self._settings.topic(t), p): (t, p) for t, p in partitions}
        return {names[tp]: end for tp, end in end_offsets(self._admin, names).items()}

    def count(self, topic: str) -> int:
        """How many partitions a topic has.

        Raises:
            BrokerUnavailableError: no answer.
        """
        return len(partition_ids(self._settings, self._settings.topic(topic), self._admin))

    def whole(self, topic: str, partitions: Iterable[int]) -> Iterator[Message]:
        """The committed records of partitions, up to their read_uncommitted ends as of now.

        Raises:
            BrokerUnavailableError: no progress.
        """
        starts = {(self._settings.topic(topic), p): BEGINNING for p in partitions}
        return read_to_end(self._settings, starts, client_id=f"{self._client_id}-whole")

    def stretch(self, topic: str, partition: int, start: int, end: int) -> Iterator[Message]:
        """The committed records of a partition from an offset (`BEGINNING` is the first kept) up to another.

        Raises:
            BrokerUnavailableError: no progress.
        """
        at = (self._settings.topic(topic), partition)
        return read_to_end(self._settings, {at: start}, client_id=f"{self._client_id}-stretch", ends={at: end})

    def at(self, wanted: Mapping[Partition, Iterable[int]]) -> dict[Place, Message]:
        """The records at offsets; those that are gone are missing.

        Raises:
            BrokerUnavailableError: nothing came for half a minute.
        """
        names = {self._settings.topic(t): t for t, _ in wanted}
        found = self._rereader.read({(self._settings.topic(t), p): offsets for (t, p), offsets in wanted.items()})
        return {(names[t], p, offset): message for (t, p, offset), message in found.items()}

    def first_since(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """The first offset at or after an append time (milliseconds since the epoch), the end where there is none.

        Raises:
            BrokerUnavailableError: no answer.
        """
        asked = {(self._settings.topic(t), p): (t, p) for t, p in times}
        found = offsets_at(self._admin, {tp: times[key] for tp, key in asked.items()})
        offsets = {asked[tp]: offset for tp, offset in found.items()}
        none = [key for key, offset in offsets.items() if offset < 0]
        return offsets | self.ends(none) if none else offsets

    def committed(self, topic: str, partitions: Iterable[int]) -> dict[str, dict[int, int]]:
        """What each group of the pipeline has committed of a topic: by group (short name) and partition.

        Raises:
            BrokerUnavailableError: no answer.
        """
        prefix = self._settings.group("")
        name = self._settings.topic(topic)
        admin: Any = self._admin
        try:
            listed = admin.list_consumer_groups(request_timeout=ADMIN_SECONDS).result(ADMIN_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise BrokerUnavailableError(f"the brokers do not tell which groups there are: {error}") from error
        groups = [g.group_id.removeprefix(prefix) for g in listed.valid if g.group_id.startswith(prefix)]
        asked = [(name, p) for p in partitions]
        found = {group: self._offsets.committed(group, asked) for group in groups}
        return {group: {p: o for (_, p), o in offsets.items()} for group, offsets in found.items() if offsets}

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Deletes the records of partitions below offsets (DeleteRecords, KIP-107).

        Raises:
            BrokerUnavailableError: no answer, or a refusal.
        """
        asked = [TopicPartition(self._settings.topic(topic), p, offset) for p, offset in offsets.items()]
        answers = cast(dict[Any, Any], self._admin.delete_records(asked, request_timeout=ADMIN_SECONDS))
        try:
            for future in answers.values():
                future.result(ADMIN_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise BrokerUnavailableError(f"records of {topic} were not deleted: {error}") from error

    def close(self) -> None:
        """Lets the clients go."""
        self._rereader.close()
        self._offsets.close()
