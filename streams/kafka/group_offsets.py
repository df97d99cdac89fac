"""What consumer groups have committed.

Asked by consumers that bear a group's id and never join it. `AdminClient.list_consumer_group_offsets` needs none, but
reads a null pointer where a group has no coordinator yet, as on a new cluster (librdkafka 2.16: measured).
"""

import logging
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tenacity import before_sleep_log, retry, retry_if_exception_type, stop_after_delay, wait_fixed

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

ATTEMPT_SECONDS = 5.0
PATIENCE_SECONDS = 30.0
RETRY_SECONDS = 0.1

Partition = tuple[str, int]
"""Full name of a topic, and number."""


class GroupOffsets:
    """The committed offsets of a pipeline's groups. For one thread at a time."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._consumers: dict[str, Consumer] = {}

    def committed(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offsets that a group (short name) has committed; partitions without one are missing.

        Raises:
            BrokerUnavailableError: no answer.
        """
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        if not asked:
            return {}
        consumer = self._consumers.get(group)
        if consumer is None:
            consumer = self._consumers[group] = make_consumer(self._settings, self._client_id, group=group)
        try:
            found = _ask(consumer, asked)
        except KafkaException as error:
            raise BrokerUnavailableError(f"no broker tells what group {group} has committed: {error}") from error
        return {(tp.topic, tp.partition): tp.offset for tp in found if tp.offset >= 0}

    def close(self) -> None:
        """Lets the clients go."""
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()


@retry(
    retry=retry_if_exception_type(KafkaException),
    wait=wait_fixed(RETRY_SECONDS),
    stop=stop_after_delay(PATIENCE_SECONDS),
    before_sleep=before_sleep_log(log, logging.DEBUG),
    reraise=True,
)
def _ask(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """A coordinator that is not there yet, or is another now, is asked for again."""
    return consumer.committed(asked, ATTEMPT_SECONDS)
