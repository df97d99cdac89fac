"""The one reader of a run: all partitions of triplets, from the position that the last step has left."""

from collections.abc import Sequence
from typing import cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.schemas.records import PartitionPosition, Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka import dead_letters
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.clock import LogClock
from headrace.streams.kafka.messages import Message, OutMessage
from headrace.streams.kafka.reading import BEGINNING
from headrace.streams.kafka.transactional.errors import SessionLostError
from headrace.streams.settings import Settings
from headrace.trainers.publish import group_of
from headrace.trainers.window import Windows

BATCH = 1000
POLL_SECONDS = 0.1


class Reader:
    """Feeds trajectories to windows; its dead letters wait for the next transaction."""

    def __init__(self, settings: Settings, run_id: str, windows: Windows, clock: LogClock) -> None:
        self._windows = windows
        self._clock = clock
        self._codec = Codec(settings)
        self._name = group_of(run_id)
        self.dead_letters: list[OutMessage] = []
        topic = self._topic = settings.topic("triplets")
        starts = windows.starts()
        self.consumer: Consumer = make_consumer(settings, f"trainer-{run_id}", group=self._name, eof=True)
        self.consumer.assign(
            [TopicPartition(topic, p, starts.get(p, BEGINNING)) for p in partition_ids(settings, topic)]
        )

    def read(self) -> int:
        """Takes what is there, waiting a little where nothing is; the number of records."""
        first = self.consumer.poll(POLL_SECONDS)
        if first is None:
            return 0
        count = 0
        for message in cast(list[Message], [first, *self.consumer.consume(BATCH, 0)]):
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                self._take(message, partition, offset)
                count += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                self._windows.reached(partition, offset)
            elif error.fatal():
                raise SessionLostError(f"{self._name}: the consumer failed: {error.str()}")
        return count

    def copy_position(self, position: Sequence[PartitionPosition]) -> None:
        """Commits a position to the group, where lag tools look; nobody waits for it, or reads it here."""
        offsets = [TopicPartition(self._topic, p.partition, p.next) for p in position]
        if offsets:
            self.consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Leaves."""
        self.consumer.close()

    def _take(self, message: Message, partition: int, offset: int) -> None:
        append_ms = message.timestamp()[1]
        self._clock.observe(append_ms)
        try:
            record = self._codec.decode_as(Trajectory, message.value())
        except DecodeError as error:
            if self._windows.unreadable((partition, offset)):
                self.dead_letters.append(dead_letters.make(message, error.reason, str(error), self._name))
            return
        self._windows.take((partition, offset), append_ms * 1000, record)
