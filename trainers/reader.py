"""The one reader of a run: all partitions of triplets, from the position that the last step has left."""

from collections.abc import Sequence
from typing import cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.schemas.records import PartitionPosition, Trajectory
from headrace.streams.errors import UnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.clock import LogClock
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.fatal import is_fatal
from headrace.streams.kafka.messages import Message, OutMessage
from headrace.streams.kafka.putting_back import PutBack
from headrace.streams.kafka.reading import BEGINNING
from headrace.streams.kafka.transactional.errors import SessionLostError
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings
from headrace.trainers.publish import group_of
from headrace.trainers.window import Windows

TRIPLETS = "triplets"
BATCH = 1000
POLL_SECONDS = 0.1


class Reader:
    """Feeds trajectories to windows; its dead letters wait for the next transaction."""

    def __init__(self, settings: Settings, run_id: str, windows: Windows, clock: LogClock) -> None:
        self._windows = windows
        self._clock = clock
        self._name = group_of(run_id)
        self._dead_letter = DeadLetterMaker(settings, self._name)
        self.dead_letters: list[OutMessage] = []
        topic = self._topic = settings.topic(TRIPLETS)
        partitions = partition_ids(settings, topic)
        self._intake = Intake(settings, (TRIPLETS,), len(partitions))
        starts = windows.starts()
        self.consumer: Consumer = make_consumer(settings, f"trainer-{run_id}", group=self._name, eof=True)
        self.consumer.assign([TopicPartition(topic, p, starts.get(p, BEGINNING)) for p in partitions])

    def read(self) -> int:
        """Takes what is there, waiting a little where nothing is; the number of records."""
        first = self.consumer.poll(POLL_SECONDS)
        if first is None:
            return 0
        count = 0
        put_back = PutBack(self.consumer)
        for message in cast(list[Message], [first, *self.consumer.consume(BATCH, 0)]):
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if put_back.later(message):
                continue
            if error is None:
                try:
                    self._take(message, partition, offset)
                except UnavailableError as unavailable:
                    put_back(message, unavailable)
                count += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                self._windows.reached(partition, offset)
            elif is_fatal(error):
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
            record = cast(Trajectory, self._intake.record(TRIPLETS, message))
        except RefusedError as refusal:
            letter = self._dead_letter(message, refusal.reason, str(refusal))
            if self._windows.unreadable((partition, offset)):
                self.dead_letters.append(letter)
            return
        self._windows.take((partition, offset), append_ms * 1000, record)
