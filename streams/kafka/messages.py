"""Records as Kafka messages: topic, key, headers; the same for every writer."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from headrace.schemas import claim_check
from headrace.schemas import records as r
from headrace.streams.claims import ClaimStores
from headrace.streams.codec import Codec
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.admin import cluster_id, partition_ids
from headrace.streams.kafka.partitioner import SEGMENT_MARK, partition_of
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPIC_OF_RECORD, TOPICS

ANY_PARTITION = -1  # librdkafka's PARTITION_UA: the partitioner decides
BATCH_BYTES = 128  # of a batch (61) and of its record, numbers at their longest (KIP-98, "Message Format")
HEADER_BYTES = 10  # two lengths
Headers = list[tuple[str, str | bytes | None]]
ASSEMBLED_STATE = "state"
ASSEMBLED_ORIGIN = "origin"  # of external rollouts, whose records name their traces


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


def size_of(message: OutMessage) -> int:
    """What the brokers count of a message that stands alone in its batch, at most and before compression, in bytes."""
    size = BATCH_BYTES + len(message.value or b"") + len(message.key or b"")
    for name, value in message.headers:
        size += HEADER_BYTES + len(name) + len(value or b"")
    return size


def key_of(record: r.Record) -> str:
    """The key of a record in its topic."""
    if isinstance(record, r.Trajectory):
        return record.group_id or record.rollout_id
    if isinstance(record, r.ResourcesUpdate):
        return record.resources_id
    if isinstance(record, (r.RunManifest, r.TrainingStep, r.JournalEntry)):
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
    if isinstance(record, r.Assembled):
        external = [(ASSEMBLED_ORIGIN, "external")] if record.traces else []
        return [(ASSEMBLED_STATE, record.state), *external]
    return []


class MessageMaker:
    """Encodes records and checks their size before anything is sent; safe to share between threads.

    The one place where a value that is too large for a topic becomes a claim check.

    Args:
        partitions: how many the co-partitioned topics have; the cluster is asked where it is None.
    """

    def __init__(
        self, settings: Settings, codec: Codec | None = None, *, partitions: Callable[[], int] | None = None
    ) -> None:
        self._settings = settings
        self._codec = codec or Codec(settings)
        self._claims = ClaimStores(settings)
        self._topics = {name: settings.topic(topic) for name, topic in TOPIC_OF_RECORD.items()}
        self._ask_partitions = partitions or self._partitions_of_cluster
        self._partitions: int | None = None
        self._cluster: str | None = None

    def __call__(self, record: r.Record, headers: Headers | None = None) -> OutMessage:
        """The message of a record. A value that is too large is put into the claim-check store first, which may block.

        Raises:
            EncodeError: a value does not fit the schema.
            RecordTooLargeError: it is above `max_message_bytes`, and no store takes it.
            ClaimsUnavailableError: the store does not answer now.
        """
        message = self.whole(record, headers)
        if self.fits(message):
            return message
        self.check(message, f"a {record.SCHEMA}")
        return self.claimed(message)

    def fits(self, message: OutMessage) -> bool:
        """Whether a message may be sent as it is: the brokers count key, headers and framing too."""
        return size_of(message) <= self._settings.max_message_bytes

    def check(self, message: OutMessage, what: str) -> None:
        """Raises what can be known without the store.

        Args:
            what: is in the message, such as `a Task`.

        Raises:
            RecordTooLargeError: the message does not fit, and may go into no store.
        """
        if self.fits(message):
            return
        assert message.value is not None
        refusal = self._claims.refusal(len(message.value))
        if not self.fits(replace(message, value=None)):
            refusal = "its key and headers alone are; make them smaller"
        if refusal is not None:
            raise RecordTooLargeError(
                f"{what} of {len(message.value)} bytes ({(message.key or b'')[:200].decode('utf-8', 'replace')}) is "
                f"above max_message_bytes "
                f"({self._settings.max_message_bytes}); {refusal}"
            )

    def claimed(self, message: OutMessage) -> OutMessage:
        """Puts the value of a message that `check` does not refuse into the store; the message that refers to it.

        Raises:
            RecordTooLargeError: nothing can be written there.
            ClaimsUnavailableError: the store does not answer now.
            BrokerUnavailableError: no broker told the cluster's id, which is part of the place in the store.
        """
        assert message.value is not None
        if self._cluster is None:
            self._cluster = cluster_id(self._settings)
        claim = self._claims.put(f"{self._cluster}/{message.topic}", message.value)
        return replace(message, value=claim_check.encode(claim))

    def whole(self, record: r.Record, headers: Headers | None = None) -> OutMessage:
        """The message of a record, whatever its size.

        Raises:
            EncodeError: a value does not fit the schema.
        """
        value = self._codec.encode(record)
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
            self._partitions = self._ask_partitions()
        return partition_of(key, self._partitions)

    def _partitions_of_cluster(self) -> int:
        return len(partition_ids(self._settings, self._settings.topic("tasks")))
