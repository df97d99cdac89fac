"""A consumer group that does something with each batch and commits afterwards: at least once, without transactions."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.fatal import is_fatal
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import poll_batch
from headrace.streams.kafka.sessions import run_sessions
from headrace.streams.kafka.transactional.errors import SessionLostError, cause
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25
FETCH_WAIT_MS = 100


class BatchHandler(Protocol):
    """What is done with the messages of a topic."""

    def handle(self, messages: Sequence[Message]) -> None:
        """Returns when they are done with: their offsets are committed then.

        Raises:
            HeadraceError: a retriable one has them read again, by this process or another.
        """
        ...

    def close(self) -> None:
        """Lets go; what `handle` waits for is given up. From any thread."""
        ...


class GroupLoop:
    """Reads topics as a group and gives what comes to a handler.

    Attributes:
        name: of the group, and of the worker.
        counters: messages read, batches, sessions lost, and the handler's own.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        topics: Sequence[str],
        handler: BatchHandler,
        worker_id: str,
        *,
        counters: dict[str, int],
        batch: int,
    ) -> None:
        self.name = name
        self.counters = counters
        self._settings = settings
        self._topics = list(topics)
        self._handler = handler
        self._client_id = f"{name}-{worker_id}"
        self._batch = batch
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ends `run`; a batch that is not done is read again. Callable from any thread."""
        self._stopping.set()
        self._handler.close()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Runs until `stop`; calls `ready` once, after the first assignment.

        Raises:
            HeadraceError: at the start, or one that is not retriable.
        """
        run_sessions(self.name, self._run_session, self._stopping, ready, lambda: self._count("sessions_lost", 1))

    def _run_session(self, assigned: Callable[[], None]) -> None:
        def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            log.info("%s: got %d partitions", self.name, len(partitions))
            assigned()

        consumer = make_consumer(self._settings, self._client_id, group=self.name, fetch_wait_ms=FETCH_WAIT_MS)
        consumer.subscribe(self._topics, on_assign=on_assign)
        try:
            while not self._stopping.is_set():
                self._turn(consumer)
        except HeadraceError:
            if not self._stopping.is_set():  # else it is of what the handler has given up
                raise
        finally:
            consumer.close()

    def _turn(self, consumer: Consumer) -> None:
        messages: list[Message] = []
        for message in poll_batch(consumer, POLL_SECONDS, self._batch):
            error: Any = message.error()
            if error is None:
                messages.append(message)
            elif is_fatal(error):
                raise SessionLostError(f"consumer: {error.str()}")
            elif error.code() != KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                log.warning("%s: consumer: %s", self.name, error.str())
        if not messages:
            return
        began = time.monotonic()
        self._handler.handle(messages)
        log.debug("%s: %d messages in %.3f s", self.name, len(messages), time.monotonic() - began)
        self._commit(consumer, messages)
        self._count("messages", len(messages))
        self._count("batches", 1)

    def _commit(self, consumer: Consumer, messages: Sequence[Message]) -> None:
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
        offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            # The group has moved on, or no broker answers: whoever has the partitions next does the batch again.
            raise SessionLostError(f"commit: {cause(error).str()}") from error

    def _count(self, name: str, more: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + more
