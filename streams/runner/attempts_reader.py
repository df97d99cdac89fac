"""Reads back the attempts partitions of what is in hand, on a thread of its own, outside any group."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from headrace.streams.errors import UnavailableError
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.putting_back import PutBack
from headrace.streams.kafka.reading import poll_batch
from headrace.streams.runner.dispatch.values import Happened
from headrace.streams.runner.replay import attempts_intake, happened_of
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
FETCH_WAIT_MS = 50


class AttemptsReader:
    """Follows partitions that come and go.

    Args:
        deliver: called on the reader's thread with the events of a poll.
        failed: called on the reader's thread when it has died.
    """

    def __init__(
        self,
        settings: Settings,
        client_id: str,
        deliver: Callable[[list[Happened]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._topic = settings.topic("attempts")
        self._client_id = client_id
        self._deliver = deliver
        self._failed = failed
        self._commands: queue.SimpleQueue[tuple[int, int | None]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-attempts", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def follow(self, partition: int, offset: int) -> None:
        """Reads a partition from an offset on, anew if it is read already."""
        self._commands.put((partition, offset))

    def unfollow(self, partition: int) -> None:
        """Reads a partition no more."""
        self._commands.put((partition, None))

    def close(self) -> None:
        """Stops the thread."""
        self._closing.set()
        self._thread.join(10 * POLL_SECONDS)

    def _run(self) -> None:
        try:
            consumer = make_consumer(self._settings, self._client_id, fetch_wait_ms=FETCH_WAIT_MS)
            try:
                self._loop(consumer)
            finally:
                consumer.close()
        except BaseException as error:  # a thread that dies alone would leave the runner deaf
            self._failed(error)

    def _loop(self, consumer: Consumer) -> None:
        intake = attempts_intake(self._settings)
        followed: set[int] = set()
        while not self._closing.is_set():
            self._obey(consumer, followed)
            happened: list[Happened] = []
            put_back = PutBack(consumer)
            for message in poll_batch(consumer, POLL_SECONDS):
                error: Any = message.error()
                if error is not None:
                    log.warning("%s: %s", self._topic, error.str())
                elif not put_back.later(message):
                    try:
                        one = happened_of(intake, message)
                    except UnavailableError as unavailable:
                        put_back(message, unavailable)
                        continue
                    if one is not None:
                        happened.append(one)
            if happened:
                self._deliver(happened)

    def _obey(self, consumer: Consumer, followed: set[int]) -> None:
        while not self._commands.empty():
            partition, offset = self._commands.get()
            if partition in followed:
                consumer.incremental_unassign([TopicPartition(self._topic, partition)])
                followed.discard(partition)
            if offset is not None:
                consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])
                followed.add(partition)
