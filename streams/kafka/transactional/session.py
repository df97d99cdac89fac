"""One life of a consumer and its transactional producer, from joining the group to leaving it or to an error."""

import logging
import time
from collections.abc import Callable
from itertools import chain
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.streams.errors import BrokerUnavailableError, UnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.clock import LogClock
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.fatal import is_fatal
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.putting_back import PutBack
from headrace.streams.kafka.transactional.assignment import aligned
from headrace.streams.kafka.transactional.catch_up import CatchUp
from headrace.streams.kafka.transactional.errors import SessionLostError, cause
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.kafka.transactional.processor import LogEntry, Processor, TopicPartitionKey
from headrace.streams.kafka.transactional.transactions import Transactions
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

BATCH = 5000
FETCH_WAIT_MS = 200  # an idle processor costs five fetches a second
LOOK_AGAIN_SECONDS = 0.01  # while something waits for positions
POLL_STEP_SECONDS = 0.001  # waits are cut to whole milliseconds: the rest would be spent spinning
TICK_SECONDS = 0.25
IDLE_COMMIT_SECONDS = 1.0  # offsets alone are worth no transaction of their own more often than that
COMMITTED_SECONDS = 30.0  # blocks while a predecessor's transaction holds the group's offsets
ENDS_SECONDS = 1.0  # brokers that take longer are away: the loop goes on meanwhile


class Session:
    """Runs a processor until `turn` raises; `turn` is one batch."""

    def __init__(
        self,
        settings: Settings,
        processor: Processor,
        worker_id: str,
        assigned: Callable[[], None],
        stopping: Callable[[], bool],
    ) -> None:
        client_id = f"{processor.name}-{worker_id}"
        self._settings = settings
        self._processor = processor
        self._stopping = stopping
        self._assigned = assigned
        self._admin = make_admin(settings, client_id)
        partitions = len(partition_ids(settings, settings.topic(processor.topics[0]), self._admin))
        self._intake = Intake(settings, processor.topics, partitions)
        self._dead_letter = DeadLetterMaker(settings, processor.name)
        self._rank = {topic: i for i, topic in enumerate(processor.topics)}
        self._clock = LogClock()
        self._positions: dict[TopicPartitionKey, int] = {}
        self._sent: dict[TopicPartitionKey, int] = {}
        self._error: Exception | None = None
        self._group_metadata: Any = None
        self._last_tick = self._last_transaction = time.monotonic()
        self._catch_up = CatchUp(self._last_tick)
        self._away = False  # the brokers, as far as is known
        self._transactions = Transactions(
            settings, client_id, f"{settings.prefix}.{processor.name}.{worker_id}", stopping
        )
        self._consumer: Consumer = make_consumer(
            settings,
            client_id,
            group=processor.name,
            several_topics=True,
            fetch_wait_ms=FETCH_WAIT_MS,
            fetch_pause_ms=processor.fetch_pause_ms,
            eof=True,
        )
        self._consumer.subscribe(
            [settings.topic(t) for t in processor.topics],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )

    def turn(self) -> None:
        """Reads what there is, and writes a transaction if it is due.

        Raises:
            SessionLostError: close this session and make a new one.
            FencedError: another process has this one's transactional.id.
        """
        processor = self._processor
        messages = self._consume()
        if self._error is not None:
            raise self._error
        self._catch_up.turn(time.monotonic(), TICK_SECONDS)
        if messages:
            self._catch_up.heard(time.monotonic())
            self._read(messages)
        if messages or processor.waiting:
            processor.advance(self._positions, self._clock.now())
        now = time.monotonic()
        self._note_ends()
        if self._catch_up.reached(self._positions):
            processor.restart_timers(self._clock.now())
        if self._catch_up.caught_up and now - self._last_tick >= TICK_SECONDS:
            self._last_tick = now
            processor.tick(self._clock.now())
        if self._due(now):
            self.write()

    def write(self) -> None:
        """One transaction with all that is ready: output, dead letters, offsets."""
        processor = self._processor
        self._last_transaction = time.monotonic()
        output = processor.collect(self._clock.now())
        refused, processor.dead_letters = processor.dead_letters, []
        offsets = self._offsets()
        if not (output.messages or output.follow or refused or offsets):
            return
        for entry, reason, detail in refused:
            processor.count(f"dead_{reason}")
            log.warning("%s[%d] offset %d: %s: %s", entry.topic, entry.partition, entry.offset, reason, detail)
        letters = [self._dead_letter(e.message, reason, detail) for e, reason, detail in refused]
        # Only the group's check of who commits offsets fences a member that slept past its session (KIP-447), so no
        # transaction goes without: where no offset moves, those that stand are committed again.
        fencing = offsets or self._sent or dict.fromkeys(self._positions, 0)
        commit = [TopicPartition(self._settings.topic(t), p, offset) for (t, p), offset in fencing.items()]
        positions = self._transactions.write(output, letters, commit, self._group_metadata)
        self._sent |= offsets
        processor.count("transactions")
        processor.committed(positions)

    def close(self) -> None:
        """Leaves the group; what is not committed is forgotten.

        Brokers that are away are waited for, and a coordinator that still loads its groups: a member that goes without
        its hearing it keeps its partitions for a session time-out.
        """
        held = [TopicPartition(topic, number) for topic, number in self._topic_names()[:1]]
        while not self._stopping():
            try:
                if held:
                    self._consumer.committed(held, ENDS_SECONDS)
                else:
                    self._admin.list_topics(timeout=ENDS_SECONDS)
                break
            except KafkaException:
                log.debug("%s: no broker hears that this member leaves", self._processor.name)
        self._transactions.close()
        self._consumer.close()
        self._processor.drop(self._numbers())
        self._positions.clear()

    def _numbers(self) -> set[int]:
        return {partition for _, partition in self._positions}

    def _consume(self) -> list[Message]:
        processor = self._processor
        if processor.ready or processor.dead_letters:
            wait = max(0.0, self._last_transaction + processor.gap_seconds - time.monotonic() + POLL_STEP_SECONDS)
        else:
            wait = LOOK_AGAIN_SECONDS if processor.waiting else TICK_SECONDS
        first = cast(Message | None, self._consumer.poll(wait))
        if first is None:
            return []
        return [first, *cast(list[Message], self._consumer.consume(BATCH, 0))]

    def _read(self, messages: list[Message]) -> None:
        newest = 0
        by_rank: list[list[LogEntry]] = [[] for _ in self._rank]
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            error = message.error()
            if error is not None:
                self._read_error(error, topic, partition, offset)
                continue
            assert topic is not None
            assert partition is not None
            assert offset is not None
            name = self._intake.short_name(topic)
            if (name, partition) not in self._positions:
                continue  # left over from a partition that was revoked
            at = message.timestamp()[1]
            if at > newest:
                newest = at
            self._positions[name, partition] = offset + 1
            by_rank[self._rank[name]].append(LogEntry(name, partition, offset, at * 1000, message))
        if newest:
            self._clock.observe(newest)
        processor = self._processor
        put_back = PutBack(self._consumer)
        for entry in chain.from_iterable(by_rank):  # within a topic, a partition keeps its order
            if put_back and put_back.later(entry.message):
                continue
            try:
                record = self._intake.record(entry.topic, entry.message)
            except RefusedError as refusal:
                processor.refuse(entry, refusal.reason, str(refusal))
            except UnavailableError as unavailable:
                put_back(entry.message, unavailable)
                self._positions[entry.topic, entry.partition] = entry.offset
                self._catch_up.disturb()  # a sign of life may stand behind it
                processor.count("waited_for")
            else:
                processor.read(record, entry)

    def _read_error(self, error: Any, topic: str | None, partition: int | None, offset: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
            key = (self._intake.short_name(topic or ""), partition or 0)
            if key in self._positions and offset is not None:
                self._positions[key] = max(self._positions[key], offset)
        elif is_fatal(error):
            raise SessionLostError(f"consumer: {error.str()}")
        else:
            log.warning("%s: consumer: %s", self._processor.name, error.str())
            self._catch_up.failed(time.monotonic())

    def _due(self, now: float) -> bool:
        since = now - self._last_transaction
        if since < self._processor.gap_seconds:
            return False
        return self._processor.ready or bool(self._processor.dead_letters) or since >= IDLE_COMMIT_SECONDS

    def _offsets(self) -> dict[TopicPartitionKey, int]:
        """What has changed of the offsets that a successor begins at."""
        offsets: dict[TopicPartitionKey, int] = {}
        for key, position in self._positions.items():
            first = self._processor.first_needed(*key)
            offset = position if first is None else min(first, position)
            if offset > self._sent.get(key, -1) and offset > 0:
                offsets[key] = offset
        return offsets

    def _note_ends(self) -> None:
        if not self._catch_up.needs_ends(time.monotonic()):
            return
        try:
            ends = end_offsets(self._admin, self._topic_names(), patience=ENDS_SECONDS)
        except BrokerUnavailableError as error:
            if not self._away:
                log.warning("%s: timers stand still: %s", self._processor.name, error)
            self._away = True
            self._catch_up.failed(time.monotonic())
            return
        self._away = False
        by_key = {(self._intake.short_name(t), p): end for (t, p), end in ends.items()}
        self._catch_up.noted(by_key, time.monotonic())

    def _topic_names(self) -> list[TopicPartitionKey]:
        return [(self._settings.topic(t), p) for t, p in self._positions]

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # What a callback raises leaves the client without an assignment: it is kept, and raised by the next turn.
        try:
            self._group_metadata = consumer.consumer_group_metadata()
            self._take(consumer, partitions)
        except (KafkaException, BrokerUnavailableError) as error:
            text = cause(error).str() if isinstance(error, KafkaException) else str(error)
            self._error = SessionLostError(f"assignment: {text}")
        except Exception as error:  # of any kind: the next turn raises it as it is
            self._error = error

    def _take(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        names = {(self._intake.short_name(tp.topic), tp.partition) for tp in partitions}
        numbers = aligned(names | set(self._positions), self._processor.topics) - self._numbers()
        starts = consumer.committed(partitions, COMMITTED_SECONDS) if partitions else []
        if numbers:
            self._processor.restore(sorted(numbers))
        for start in starts:
            key = (self._intake.short_name(start.topic), start.partition)
            self._positions[key] = max(start.offset, 0)
            if start.offset >= 0:
                self._sent[key] = start.offset
        if self._settings.group_protocol == "classic":
            consumer.assign(starts)
        else:
            consumer.incremental_assign(starts)
        self._catch_up.disturb()  # the timers begin anew once the new partitions are read to their ends
        log.info("%s: has partitions %s", self._processor.name, sorted(self._numbers()))
        self._assigned()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        keys = {(self._intake.short_name(tp.topic), tp.partition) for tp in partitions}
        gone = {partition for _, partition in keys}
        self._processor.drop(gone)
        self._processor.dead_letters = [d for d in self._processor.dead_letters if d[0].partition not in gone]
        for key in keys:
            self._positions.pop(key, None)
            self._sent.pop(key, None)
        self._catch_up.forget(keys)
        if self._settings.group_protocol == "classic":
            consumer.unassign()
        else:
            consumer.incremental_unassign(partitions)
        log.info("%s: gave up partitions %s", self._processor.name, sorted(gone))
