"""One life of the view's consumer, from joining the group to leaving it or to an error."""

import logging
import time
from collections.abc import Callable
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.streams.errors import UnavailableError
from headrace.streams.kafka.admin import partition_ids, topic_ids
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.dead_letters.refusals import Refusals
from headrace.streams.kafka.fatal import is_fatal
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.putting_back import PutBack
from headrace.streams.kafka.transactional.errors import SessionLostError, cause
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPICS as CATALOGUE
from headrace.streams.view.batch import TOPICS, Batch
from headrace.streams.view.errors import RefusedRowsError
from headrace.streams.view.rows import Place
from headrace.streams.view.writer import Move, Partition, ViewWriter

log = logging.getLogger(__name__)

NAME = "view"
BATCH = 5000
GAP_SECONDS = 0.1  # a batch is filled for so long: fewer, bigger transactions cost less
POLL_SECONDS = 0.25
IDLE_SECONDS = 1.0  # positions alone (the marks of transactions have offsets too) are written no more often than that
FETCH_WAIT_MS = 200
FETCH_PAUSE_MS = 8
COPY_SECONDS = 2.0  # the group's offsets are a copy for lag tools
REFUSED_ROW = "refused_by_database"
Count = Callable[[str, int], None]


class ViewSession:
    """Reads what comes and writes it; `turn` is one batch."""

    def __init__(
        self, settings: Settings, writer: ViewWriter, worker_id: str, count: Count, assigned: Callable[[], None]
    ) -> None:
        client_id = f"{NAME}-{worker_id}"
        admin = make_admin(settings, client_id)
        partitions = len(partition_ids(settings, settings.topic(TOPICS[0]), admin))
        names = [settings.topic(topic) for topic in TOPICS]
        self._settings = settings
        self._writer = writer
        self._count = count
        self._assigned = assigned
        self._topic_ids = topic_ids(names, admin)
        self._intake = Intake(settings, TOPICS, partitions)
        self._refusals = Refusals(settings, client_id, NAME)
        self._began: dict[Partition, int] = {}  # where the database stands
        self._positions: dict[Partition, int] = {}
        self._batch = Batch()
        self._messages: dict[tuple[str, Place], Message] = {}
        self._error: Exception | None = None
        self._written = self._copied = time.monotonic()
        self._consumer: Consumer = make_consumer(
            settings,
            client_id,
            group=NAME,
            fetch_wait_ms=FETCH_WAIT_MS,
            fetch_pause_ms=FETCH_PAUSE_MS,
            eof=True,
        )
        self._consumer.subscribe(names, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke)

    def turn(self) -> None:
        """Reads a batch and writes it.

        Raises:
            HeadraceError: a retriable one asks for a new session.
        """
        messages = self._consume()
        if self._error is not None:
            raise self._error
        put_back = PutBack(self._consumer)
        for message in messages:
            if not (put_back and put_back.later(message)):
                self._read(message, put_back)
        idle = time.monotonic() - self._written > IDLE_SECONDS
        if self._batch or self._refusals or (idle and self._positions != self._began):
            self._write()

    def close(self) -> None:
        """Leaves the group. What was read and not written is read again by whoever comes next."""
        self._consumer.close()

    def _consume(self) -> list[Message]:
        first = cast(Message | None, self._consumer.poll(POLL_SECONDS))
        if first is None:
            return []
        return [first, *cast(list[Message], self._consumer.consume(BATCH - 1, GAP_SECONDS))]

    def _read(self, message: Message, put_back: PutBack) -> None:
        at = (message.topic() or "", message.partition() or 0)
        offset = message.offset() or 0
        error = message.error()
        if error is not None:
            self._read_error(error, at, offset)
            return
        if at not in self._positions:
            return  # left over from a partition that was revoked
        self._positions[at] = offset + 1
        topic = self._intake.short_name(at[0])
        self._count(topic, 1)
        try:
            if message.value() is None and CATALOGUE[topic].compact:
                self._batch.remove(topic, self._intake.key(topic, message))
                return
            record = self._intake.record(topic, message)
        except RefusedError as refusal:
            self._refuse(message, refusal.reason, str(refusal))
            return
        except UnavailableError as unavailable:
            put_back(message, unavailable)
            self._positions[at] = offset
            return
        place = Place(at[1], offset, message.timestamp()[1] * 1000)
        self._messages[topic, place] = message
        self._batch.add(topic, record, place)

    def _read_error(self, error: Any, at: Partition, offset: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
            if at in self._positions:
                self._positions[at] = max(self._positions[at], offset)
        elif is_fatal(error):
            raise SessionLostError(f"consumer: {error.str()}")
        else:
            log.warning("%s: consumer: %s", NAME, error.str())

    def _refuse(self, message: Message, reason: str, detail: str) -> None:
        self._count(f"dead_{reason}", 1)
        self._refusals.add(message, reason, detail)

    def _write(self) -> None:
        """Dead letters first: a position in the database has nothing before it that stands nowhere."""
        batch = self._batch
        moves: dict[Partition, Move] = {
            at: (self._began[at], end) for at, end in self._positions.items() if end != self._began[at]
        }
        self._refusals.write()
        try:
            self._writer.write(batch, moves)
        except RefusedRowsError:
            refused = self._writer.refused(batch)
            for (topic, place), detail in refused.items():
                self._refuse(self._messages[topic, place], REFUSED_ROW, detail)
            self._refusals.write()
            self._writer.write(batch.without(set(refused)), moves)
        self._began |= {at: end for at, (_, end) in moves.items()}
        self._batch = Batch()
        self._messages.clear()
        self._written = time.monotonic()
        self._count("transactions", 1)
        if self._written - self._copied > COPY_SECONDS:
            self._copy_positions()

    def _copy_positions(self) -> None:
        self._copied = time.monotonic()
        offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in self._began.items() if end]
        try:
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:  # nobody reads on from them
            log.info("%s: positions not copied: %s", NAME, cause(error).str())

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # What a callback raises leaves the client without an assignment: it is kept, and raised by the next turn.
        try:
            began = self._writer.positions([(tp.topic, tp.partition) for tp in partitions], self._topic_ids)
            self._began |= began
            self._positions |= began
            consumer.incremental_assign([TopicPartition(*at, start) for at, start in began.items()])
            log.info("%s: has %d partitions", NAME, len(self._positions))
            self._assigned()
        except KafkaException as error:
            self._error = SessionLostError(f"assignment: {cause(error).str()}")
        except Exception as error:  # of any kind: the next turn raises it as it is
            self._error = error

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            self._began.pop((tp.topic, tp.partition), None)
            self._positions.pop((tp.topic, tp.partition), None)
        consumer.incremental_unassign(partitions)
        log.info("%s: gave up %d partitions", NAME, len(partitions))
