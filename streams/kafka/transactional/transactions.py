"""One producer's transactions: begin, produce, offsets, commit."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.schemas.records import LogPosition
from headrace.streams.errors import FencedError
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import OutMessage
from headrace.streams.kafka.transactional.errors import SessionLostError, cause, is_fenced
from headrace.streams.kafka.transactional.processor import Output
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

CALL_SECONDS = 5.0
RETURN_SECONDS = CALL_SECONDS + 2.0  # whoever has not returned by then never will
PATIENCE_SECONDS = 60.0  # with a broker that is away; then the session is given up
FULL_QUEUE_POLL_SECONDS = 0.05


class Outage:
    """Whether a client has lost all brokers at once.

    librdkafka reports `_ALL_BROKERS_DOWN` also when idle connections are closed, and `_TRANSPORT` for each broker of a
    rolling restart; both together are an outage.
    """

    def __init__(self) -> None:
        self._codes: set[int] = set()

    def hear(self, error: KafkaError) -> None:
        """The client's error callback."""
        self._codes.add(error.code())

    @property
    def total(self) -> bool:
        """Whether there was one."""
        return self._codes >= {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}  # pyright: ignore[reportPrivateUsage]


class Transactions:
    """The producer of one transactional.id.

    Raises:
        FencedError: (any method) another process has taken the id.
        SessionLostError: (any method) make a new one.
    """

    def __init__(self, settings: Settings, client_id: str, transactional_id: str, stopping: Callable[[], bool]) -> None:
        """While `stopping()`, brokers that are away are not waited for."""
        self._timeout = settings.transaction_timeout.total_seconds()
        self._id = transactional_id
        self._outage = Outage()
        self._producer = make_producer(
            settings, client_id, transactional_id=transactional_id, on_error=self._outage.hear
        )
        self._began = time.monotonic()
        self._open = False
        self._stuck = False
        self._stopping = stopping
        self._retrying("init", lambda: self._producer.init_transactions(CALL_SECONDS))

    def write(
        self,
        output: Output,
        others: list[OutMessage],
        offsets: list[TopicPartition],
        group_metadata: Any,
    ) -> list[LogPosition]:
        """One transaction of an output, other messages and offsets; the positions of what `follow` returned."""
        self._began = time.monotonic()
        self._producer.poll(0)
        self._mistrust()
        self._call("begin", self._producer.begin_transaction)
        self._open = True
        after: list[LogPosition] = []
        for message in others:
            self._produce(message, None)
        if output.follow is None:
            for message in output.messages:
                self._produce(message, None)
            self._flushed([])  # the commit would, but here brokers that are away can be waited for
        else:
            positions = self._flushed(self._produce_with_positions(output.messages))
            after = self._produce_with_positions(output.follow(positions))
        self._mistrust()
        if offsets:
            self._once(
                "offsets",
                lambda: self._producer.send_offsets_to_transaction(offsets, group_metadata, CALL_SECONDS),
            )
        self._retrying("commit", lambda: self._producer.commit_transaction(CALL_SECONDS))
        self._open = False
        return after

    def abort(self) -> None:
        """Gives up the open transaction, as far as the brokers can be reached; they end it by themselves else."""
        if not self._open or self._stuck:
            return
        self._open = False
        try:
            self._producer.abort_transaction(CALL_SECONDS)
        except KafkaException as error:
            log.warning("%s: abort: %s", self._id, cause(error).str())

    def close(self) -> None:
        """Lets the producer go."""
        self.abort()
        if not self._stuck:
            self._producer.purge()

    def _produce_with_positions(self, messages: list[OutMessage]) -> list[LogPosition]:
        positions = [LogPosition(partition=-1, offset=-1) for _ in messages]
        for message, position in zip(messages, positions, strict=True):
            self._produce(message, _reporter(position))
        return positions

    def _flushed(self, positions: list[LogPosition]) -> list[LogPosition]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while self._producer.flush(CALL_SECONDS):
                if self._stopping() or time.monotonic() > deadline:
                    raise SessionLostError(
                        f"{self._id}: the brokers do not take records; trying again with new clients"
                    )
        except KafkaException as error:  # fenced, most often
            raise self._lost("flush", error) from error
        if any(p.offset < 0 for p in positions):
            raise SessionLostError(f"{self._id}: the brokers refused a record of the transaction")
        return positions

    def _produce(self, message: OutMessage, on_delivery: Callable[[Any, Any], None] | None) -> None:
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    message.value,
                    message.key,
                    message.partition,
                    on_delivery,
                    headers=message.headers or None,  # type: ignore[arg-type]
                )
                return
            except BufferError:
                self._producer.poll(FULL_QUEUE_POLL_SECONDS)
            except KafkaException as error:
                raise self._lost("produce", error) from error

    def _retrying(self, what: str, call: Callable[[], object]) -> None:
        """librdkafka's transactional calls may be called again after a retriable error, and go on where they were."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                call()
                return
            except KafkaException as error:
                if not cause(error).retriable() or self._stopping() or time.monotonic() > deadline:
                    raise self._lost(what, error) from error
                log.warning("%s: %s: %s; trying again", self._id, what, cause(error).str())

    def _once(self, what: str, call: Callable[[], object]) -> None:
        """A call that is not to be trusted with brokers that die.

        librdkafka (2.16) lets `send_offsets_to_transaction` time out where a broker has died, as it should; called
        again as its error allows, it does not return any more, whatever its time-out. So it is called once, on a thread
        that can be left behind with its producer.
        """
        answer: Future[object] = Future()

        def run() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:  # raised where the answer is waited for
                answer.set_exception(error)

        threading.Thread(target=run, name=f"{self._id}-{what}", daemon=True).start()
        try:
            answer.result(RETURN_SECONDS)
        except FutureTimeoutError as error:
            self._stuck = True
            raise SessionLostError(f"{self._id}: {what}: no answer for {RETURN_SECONDS:.0f} s") from error
        except KafkaException as error:
            raise self._lost(what, error) from error

    def _mistrust(self) -> None:
        """After an outage `send_offsets_to_transaction` would most often not return: new clients work again sooner."""
        if self._outage.total:
            raise SessionLostError(f"{self._id}: all brokers were away")

    def _call(self, what: str, call: Callable[[], object]) -> None:
        try:
            call()
        except KafkaException as error:
            raise self._lost(what, error) from error

    def _lost(self, what: str, error: KafkaException) -> Exception:
        # The coordinator fences a producer also when its own transaction ran into the time-out: that is no rival.
        if is_fenced(error) and (what == "begin" or time.monotonic() - self._began < self._timeout):
            return FencedError(
                f"{self._id}: another process has taken this transactional.id; "
                "give each process a --worker-id of its own"
            )
        return SessionLostError(f"{self._id}: {what}: {cause(error).str()}")


def _reporter(position: LogPosition) -> Callable[[Any, Any], None]:
    def report(error: Any, message: Any) -> None:
        if error is None:
            position.partition = message.partition()
            position.offset = message.offset()

    return report
