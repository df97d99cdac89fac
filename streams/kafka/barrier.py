"""Where a partition ends now, open transactions included.

The watermarks and end-of-partition marks of a read_committed consumer stop at the last stable offset; only
`list_offsets(READ_UNCOMMITTED)` sees what an open transaction has written (KIP-98, KIP-734).
"""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.streams.errors import BrokerUnavailableError

TIMEOUT_SECONDS = 30.0


def end_offsets(admin: AdminClient, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The read_uncommitted end of each (topic, partition).

    Raises:
        BrokerUnavailableError: no answer.
    """
    wanted: dict[TopicPartition, Any] = {
        TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in partitions
    }
    if not wanted:
        return {}
    futures: dict[TopicPartition, Any] = admin.list_offsets(
        wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=TIMEOUT_SECONDS
    )
    ends: dict[tuple[str, int], int] = {}
    for partition, future in futures.items():
        try:
            ends[partition.topic, partition.partition] = future.result().offset
        except Exception as error:  # confluent_kafka wraps whatever went wrong in KafkaException
            raise BrokerUnavailableError(f"the end of {partition.topic}[{partition.partition}]: {error}") from error
    return ends
