"""Fetches tasks as a member of the runners' group, on a thread of its own: every call on the consumer stands here."""

import logging
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import before_sleep_log, retry, retry_if_exception_type, stop_after_delay, wait_fixed

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.reading import BEGINNING, poll_batch
from headrace.streams.runner.decoding import Fetched, TaskDecoder
from headrace.streams.runner.loop_calls import LoopCalls
from headrace.streams.runner.replay import PartitionReplay, replay
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

GROUP = "runner"
POLL_SECONDS = 0.1
BATCH = 500
COMMIT_SECONDS = 0.5
FULL_SECONDS = 1.0  # a pause throws away what is fetched ahead, so a moment's fullness only waits
REVOKE_SECONDS = 10.0  # for the acknowledgement of starts in flight
COMMITTED_SECONDS = 10.0
RETRY_SECONDS = 0.5
PATIENCE_SECONDS = 120.0  # of an assignment, well within max.poll.interval.ms
LEAVE_SECONDS = 30.0


class TasksReader:
    """Polls for as long as it lives; partitions pause where there is no room, so that no rollout causes a rebalance.

    `set_positions` is told what is finished, `set_full` whether there is room.
    """

    def __init__(self, settings: Settings, client_id: str, loop_calls: LoopCalls) -> None:
        self._settings = settings
        self._topic = settings.topic("tasks")
        self._client_id = client_id
        self._calls = loop_calls
        self._decoder = TaskDecoder(settings)
        self._positions: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._room = threading.Event()
        self._room.set()
        self._closing = threading.Event()
        self._paused = False
        self._assigned: set[int] = set()
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-tasks", daemon=True)

    def start(self) -> None:
        """Joins the group."""
        self._thread.start()

    def set_positions(self, positions: dict[int, int]) -> None:
        """The first unfinished offset of each owned partition, to be committed with the next beat."""
        self._positions = positions

    def set_full(self, full: bool) -> None:
        """Whether further tasks would only wait."""
        if full:
            self._room.clear()
        else:
            self._room.set()

    def close(self, positions: dict[int, int]) -> None:
        """Commits, leaves the group and returns when both are done."""
        self._positions = positions
        self._closing.set()
        self._room.set()
        self._thread.join(LEAVE_SECONDS)

    def _run(self) -> None:
        try:
            consumer = make_consumer(self._settings, self._client_id, group=GROUP)
            try:
                consumer.subscribe(
                    [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
                )
                self._loop(consumer)
                self._commit(consumer, wait=True)
            finally:
                consumer.close()
        except BaseException as error:  # a thread that dies alone would leave a runner that takes no tasks
            self._calls.failed(error)

    def _loop(self, consumer: Consumer) -> None:
        full_since: float | None = None
        next_commit = time.monotonic() + COMMIT_SECONDS
        while not self._closing.is_set():
            now = time.monotonic()
            if now >= next_commit:
                self._commit(consumer)
                next_commit = now + COMMIT_SECONDS
            if self._room.is_set():
                full_since = None
                self._pause(consumer, False)
            elif full_since is None or now - full_since < FULL_SECONDS:
                full_since = full_since or now
                self._room.wait(POLL_SECONDS)
                continue
            else:
                self._pause(consumer, True)
            self._fetch(consumer)

    def _fetch(self, consumer: Consumer) -> None:
        batch: list[Fetched] = []
        for message in poll_batch(consumer, POLL_SECONDS, BATCH):
            error: Any = message.error()
            if error is None:
                batch.append(self._decoder(message))
            elif error.fatal():
                raise KafkaException(error)
            elif error.code() != KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                log.warning("%s: %s", self._topic, error.str())
        if batch:
            self._calls.fetched(batch)

    def _pause(self, consumer: Consumer, paused: bool) -> None:
        if paused == self._paused:
            return
        partitions = [TopicPartition(self._topic, p) for p in self._assigned]
        (consumer.pause if paused else consumer.resume)(partitions)
        self._paused = paused

    def _commit(self, consumer: Consumer, *, wait: bool = False) -> None:
        moved = {p: at for p, at in self._positions.items() if p in self._assigned and self._committed.get(p) != at}
        if not moved:
            return
        offsets = [TopicPartition(self._topic, p, at) for p, at in moved.items()]
        try:
            if wait:
                consumer.commit(offsets=offsets, asynchronous=False)
            else:
                consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:  # the next beat tries again; what is not committed is recognised as ended
            log.warning("offsets of %s were not committed: %s", self._topic, error)
            return
        self._committed |= moved

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [tp.partition for tp in partitions]
        if not numbers:
            return
        committed, replayed = self._look(consumer, partitions)
        self._calls.assigned(replayed)
        self._assigned |= set(numbers)
        self._committed |= {p: at for p, at in committed.items() if at >= 0}
        self._committed |= {p: 0 for p, at in committed.items() if at < 0}
        consumer.incremental_assign(
            [TopicPartition(self._topic, p, at if at >= 0 else BEGINNING) for p, at in committed.items()]
        )
        if self._paused:
            consumer.pause(partitions)
        log.info("runner %s works on partitions %s of %s", self._client_id, sorted(self._assigned), self._topic)

    @retry(
        retry=retry_if_exception_type((KafkaException, BrokerUnavailableError)),
        wait=wait_fixed(RETRY_SECONDS),
        stop=stop_after_delay(PATIENCE_SECONDS),
        before_sleep=before_sleep_log(log, logging.WARNING),
        reraise=True,
    )
    def _look(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> tuple[dict[int, int], dict[int, PartitionReplay]]:
        """What is committed, and what the log says; brokers that come back may need a moment."""
        committed = {tp.partition: tp.offset for tp in consumer.committed(partitions, COMMITTED_SECONDS)}
        return committed, replay(self._settings, committed, client_id=self._client_id)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [tp.partition for tp in partitions]
        try:
            self._positions = {**self._positions, **self._calls.revoking(numbers).result(REVOKE_SECONDS)}
        except FutureTimeoutError:
            log.warning("starts in flight were not acknowledged within %.0f s of a rebalance", REVOKE_SECONDS)
        self._commit(consumer, wait=True)
        self._forget(numbers)
        consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [tp.partition for tp in partitions]
        log.warning("runner %s was put out of its group: partitions %s are another's", self._client_id, numbers)
        self._calls.lost(numbers)
        self._forget(numbers)
        consumer.incremental_unassign(partitions)

    def _forget(self, numbers: list[int]) -> None:
        self._assigned -= set(numbers)
        for number in numbers:
            self._positions.pop(number, None)
            self._committed.pop(number, None)
