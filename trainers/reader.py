"""The one reader of a run: all partitions of triplets, from the position that the last step has left."""

import logging
import time
from collections.abc import Sequence
from typing import cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.schemas.records import PartitionPosition, Trajectory
from headrace.streams.errors import BrokerUnavailableError, UnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.clock import LogClock
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.fatal import is_fatal
from headrace.streams.kafka.messages import Message, OutMessage
from headrace.streams.kafka.putting_back import PutBack
from headrace.streams.kafka.reading import BEGINNING
from headrace.streams.kafka.transactional.catch_up import CatchUp
from headrace.streams.kafka.transactional.errors import SessionLostError
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings
from headrace.trainers.groups import At
from headrace.trainers.publish import group_of
from headrace.trainers.window import Windows

log = logging.getLogger(__name__)

TRIPLETS = "triplets"
BATCH = 1000
POLL_SECONDS = 0.1
ENDS_SECONDS = 1.0


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
        self._admin = make_admin(settings, f"trainer-{run_id}-ends")
        self._positions = {(TRIPLETS, p): starts.get(p, 0) for p in partitions}
        self._catch_up = CatchUp(time.monotonic())
        self._catch_up.disturb()
        self._was_away = True  # this process, or the brokers: timers begin anew once all is read

    @property
    def timers(self) -> bool:
        """Whether time may judge groups: all is read that the log held when this process came back to it."""
        return self._catch_up.caught_up

    def read(self) -> int:
        """Takes what is there, waiting a little where nothing is; the number of records."""
        first = self.consumer.poll(POLL_SECONDS)
        self._catch_up.turn(time.monotonic(), POLL_SECONDS)
        count = 0 if first is None else self._take_all(first)
        self._note_ends()
        if self._catch_up.reached(self._positions) and self._was_away:
            self._was_away = False
            self._windows.restart_timers(self._clock.now())
        return count

    def _take_all(self, first: Message) -> int:
        self._catch_up.heard(time.monotonic())
        count = newest = 0
        put_back = PutBack(self.consumer)
        for message in cast(list[Message], [first, *self.consumer.consume(BATCH, 0)]):
            if put_back and put_back.later(message):
                continue
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                append_ms = message.timestamp()[1]
                if append_ms > newest:
                    newest = append_ms
                try:
                    self._take(message, (partition, offset), append_ms)
                    self._positions[TRIPLETS, partition] = offset + 1
                except UnavailableError as unavailable:
                    put_back(message, unavailable)
                    self._catch_up.disturb()
                count += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                self._windows.reached(partition, offset)
                self._positions[TRIPLETS, partition] = offset
            elif is_fatal(error):
                raise SessionLostError(f"{self._name}: the consumer failed: {error.str()}")
            else:
                self._failed()
        if newest:
            self._clock.observe(newest)
        return count

    def _note_ends(self) -> None:
        """Asks how far there is to read, after a time in which nothing was read."""
        if not self._catch_up.needs_ends(time.monotonic()):
            return
        try:
            ends = end_offsets(
                self._admin, [(self._topic, partition) for _, partition in self._positions], patience=ENDS_SECONDS
            )
        except BrokerUnavailableError as error:
            log.warning("%s: the timers of groups stand still: %s", self._name, error)
            self._failed()
            return
        self._catch_up.noted({(TRIPLETS, partition): end for (_, partition), end in ends.items()}, time.monotonic())

    def _failed(self) -> None:
        self._was_away = True
        self._catch_up.failed(time.monotonic())

    def copy_position(self, position: Sequence[PartitionPosition]) -> None:
        """Commits a position to the group, where lag tools look; nobody waits for it, or reads it here."""
        offsets = [TopicPartition(self._topic, p.partition, p.next) for p in position]
        if offsets:
            self.consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Leaves."""
        self.consumer.close()

    def _take(self, message: Message, at: At, append_ms: int) -> None:
        try:
            record = cast(Trajectory, self._intake.record(TRIPLETS, message))
        except RefusedError as refusal:
            letter = self._dead_letter(message, refusal.reason, str(refusal))
            if self._windows.unreadable(at):
                self.dead_letters.append(letter)
            return
        self._windows.take(at, append_ms * 1000, record)
