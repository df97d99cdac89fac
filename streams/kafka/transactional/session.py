"""One life of a consumer and its transactional producer, from joining the group to leaving it or to an error."""

import logging
import time
from collections.abc import Callable
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.clock import LogClock
from headrace.streams.kafka.dead_letters import make as make_dead_letter
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.transactional.assignment import aligned
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
SILENCE_SECONDS = 1.0


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
        self._assigned = assigned
        self._admin = make_admin(settings, client_id)
        partitions = len(partition_ids(settings, settings.topic(processor.topics[0]), self._admin))
        self._intake = Intake(settings, processor.topics, partitions)
        self._rank = {topic: i for i, topic in enumerate(processor.topics)}
        self._clock = LogClock()
        self._positions: dict[TopicPartitionKey, int] = {}
        self._sent: dict[TopicPartitionKey, int] = {}
        self._catching: dict[TopicPartitionKey, int] = {}
        self._caught_up = False
        self._disturbed = False
        self._error: Exception | None = None
        self._group_metadata: Any = None
        self._last_turn = self._last_tick = self._last_transaction = time.monotonic()
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
        self._watch_silence()
        if messages:
            self._read(messages)
        if messages or processor.waiting:
            processor.advance(self._positions, self._clock.now())
        now = time.monotonic()
        if self._catching or self._disturbed:
            self._catch_up()
        if self._caught_up and now - self._last_tick >= TICK_SECONDS:
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
        letters = [make_dead_letter(e.message, reason, detail, processor.name) for e, reason, detail in refused]
        # Only the group's check of who commits offsets fences a member that slept past its session (KIP-447), so no
        # transaction goes without: where no offset moves, those that stand are committed again.
        fencing = offsets or self._sent or dict.fromkeys(self._positions, 0)
        commit = [TopicPartition(self._settings.topic(t), p, offset) for (t, p), offset in fencing.items()]
        positions = self._transactions.write(output, letters, commit, self._group_metadata)
        self._sent |= offsets
        processor.count("transactions")
        processor.committed(positions)

    def close(self) -> None:
        """Leaves the group; what is not committed is forgotten."""
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
        entries: list[LogEntry] = []
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
            newest = max(newest, at)
            self._positions[name, partition] = offset + 1
            entries.append(LogEntry(name, partition, offset, at * 1000, message))
        if newest:
            self._clock.observe(newest)
        entries.sort(key=lambda entry: self._rank[entry.topic])  # stable: a partition keeps its order
        processor = self._processor
        for entry in entries:
            try:
                record = self._intake.record(entry.topic, entry.message)
            except RefusedError as refusal:
                processor.refuse(entry, refusal.reason, str(refusal))
            else:
                processor.read(record, entry)

    def _read_error(self, error: Any, topic: str | None, partition: int | None, offset: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
            key = (self._intake.short_name(topic or ""), partition or 0)
            if key in self._positions and offset is not None:
                self._positions[key] = max(self._positions[key], offset)
        elif error.fatal():
            raise SessionLostError(f"consumer: {error.str()}")
        else:
            log.warning("%s: consumer: %s", self._processor.name, error.str())
            self._disturbed = True

    def _watch_silence(self) -> None:
        now = time.monotonic()
        if now - self._last_turn > SILENCE_SECONDS + TICK_SECONDS:
            self._disturbed = True
        self._last_turn = now

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

    def _catch_up(self) -> None:
        if self._disturbed:
            self._caught_up = False
            try:
                self._catching = end_offsets(self._admin, self._topic_names())
            except BrokerUnavailableError as error:
                log.warning("%s: %s", self._processor.name, error)
                return
            self._catching = {(self._intake.short_name(t), p): end for (t, p), end in self._catching.items()}
            self._disturbed = False
        self._catching = {k: end for k, end in self._catching.items() if self._positions.get(k, end) < end}
        if not self._catching:
            self._caught_up = True
            self._processor.restart_timers(self._clock.now())

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
        self._caught_up = False
        self._disturbed = True  # the timers begin anew once the new partitions are read to their ends
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
            self._catching.pop(key, None)
        if self._settings.group_protocol == "classic":
            consumer.unassign()
        else:
            consumer.incremental_unassign(partitions)
        log.info("%s: gave up partitions %s", self._processor.name, sorted(gone))
