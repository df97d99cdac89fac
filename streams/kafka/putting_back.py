"""Records that cannot be read now, because a registry or a claim-check store is away: read again, and not lost."""

import logging

from confluent_kafka import Consumer, KafkaException, TopicPartition

from headrace.streams.errors import UnavailableError
from headrace.streams.kafka.messages import Message

log = logging.getLogger(__name__)


class PutBack:
    """Puts partitions of one batch back to the record that cannot be read; the others go on meanwhile.

    For the thread that polls the consumer. A store that is away has been waited for by then, so that no loop spins.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._batch: set[tuple[str, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._batch)

    def later(self, message: Message) -> bool:
        """Whether a message stands behind one that was put back in this batch: it comes again."""
        return (message.topic() or "", message.partition() or 0) in self._batch

    def __call__(self, message: Message, error: UnavailableError) -> None:
        """This record, and what follows it in its partition, comes again."""
        topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        log.warning("%s[%d] waits at offset %d: %s", topic, partition, offset, error)
        self._batch.add((topic, partition))
        try:
            self._consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException:
            if any((t.topic, t.partition) == (topic, partition) for t in self._consumer.assignment()):
                raise
            log.info("%s[%d] is another's: its next owner begins where this one committed", topic, partition)
