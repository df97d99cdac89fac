"""Records as Kafka messages: topic, key, headers; the same for every writer."""

from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from headrace.schemas import records as r
from headrace.streams.codec import Codec
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.partitioner import SEGMENT_MARK, partition_of
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPIC_OF_RECORD, TOPICS

ANY_PARTITION = -1  # librdkafka's PARTITION_UA: the partitioner decides
Headers = list[tuple[str, str | bytes | None]]


class Message(Protocol):
    """What Headrace reads of a `confluent_kafka.Message`."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Any: ...
    def timestamp(self) -> tuple[int, int]: ...
    def error(self) -> Any: ...


@dataclass(slots=True)
class OutMessage:
    """A message to be produced."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=list[tuple[str, str | bytes | None]])
    partition: int = ANY_PARTITION


def key_of(record: r.Record) -> str:
    """The key of a record in its topic."""
    if isinstance(record, r.Trajectory):
        return record.group_id or record.rollout_id
    if isinstance(record, r.ResourcesUpdate):
        return record.resources_id
    if isinstance(record, (r.RunManifest, r.TrainingStep)):
        return record.run_id
    if isinstance(record, r.WorkerState):
        return record.worker_id
    return cast(str, record.rollout_id)  # type: ignore[attr-defined]


def headers_of(record: r.Record) -> Headers:
    """What followers filter by without decoding."""
    if isinstance(record, r.RolloutState):
        return [("status", record.status)]
    if isinstance(record, r.AttemptEvent):
        return [("type", record.type)]
    return []


class MessageMaker:
    """Encodes records and checks their size before anything is sent."""

    def __init__(self, settings: Settings, codec: Codec | None = None) -> None:
        self._settings = settings
        self._codec = codec or Codec(settings)
        self._topics = {name: settings.topic(topic) for name, topic in TOPIC_OF_RECORD.items()}
        self._partitions: int | None = None

    def __call__(self, record: r.Record, headers: Headers | None = None) -> OutMessage:
        """The message of a record.

        Raises:
            EncodeError: a value does not fit the schema.
            RecordTooLargeError: it is above `max_message_bytes`.
        """
        value = self._codec.encode(record)
        if len(value) > self._settings.max_message_bytes:
            raise RecordTooLargeError(
                f"a {record.SCHEMA} of {len(value)} bytes ({key_of(record)}) is above max_message_bytes "
                f"({self._settings.max_message_bytes}); make it smaller, or raise the limit for the topics too"
            )
        key = key_of(record)
        own = headers_of(record)
        partition = ANY_PARTITION
        if SEGMENT_MARK in key and TOPICS[TOPIC_OF_RECORD[record.SCHEMA]].co_partitioned:
            partition = self._partition_of_segment(key)
        return OutMessage(
            self._topics[record.SCHEMA], key.encode(), value, own + headers if headers else own, partition
        )

    def tombstone(self, record_name: str, key: str) -> OutMessage:
        """The message that removes a key from a compacted topic."""
        partition = self._partition_of_segment(key) if SEGMENT_MARK in key else ANY_PARTITION
        return OutMessage(self._topics[record_name], key.encode(), None, [], partition)

    def _partition_of_segment(self, key: str) -> int:
        if self._partitions is None:  # asked of the cluster once: the settings of a writer may not know it
            self._partitions = len(partition_ids(self._settings, self._settings.topic("tasks")))
        return partition_of(key, self._partitions)
