"""Fetches tasks as a member of the runners' group, on a thread of its own: every call on the consumer stands here."""

import logging
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import before_sleep_log, retry, retry_if_exception_type, stop_after_delay, wait_fixed

from headrace.streams.errors import BrokerUnavailableError, FencedError, UnavailableError
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.kafka.fatal import code_of, is_fatal
from headrace.streams.kafka.putting_back import PutBack
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
UNRELEASED_SECONDS = 15.0  # beyond the session time-out: for the brokers to notice that a killed member is gone


class UnreleasedError(BrokerUnavailableError):
    """The group still keeps the place of this static member's predecessor."""


class TasksReader:
    """Polls for as long as it lives; partitions pause where there is no room, so that no rollout causes a rebalance.

    `set_positions` is told what is finished, `set_full` whether there is room.

    Args:
        static: `client_id` is also the member's `group.instance.id` (KIP-345): it gets its partitions back when it
            comes again within the session time-out.
    """

    def __init__(self, settings: Settings, client_id: str, loop_calls: LoopCalls, *, static: bool = False) -> None:
        self._settings = settings
        self._topic = settings.topic("tasks")
        self._client_id = client_id
        self._calls = loop_calls
        self._static = static
        self._decoder = TaskDecoder(settings)
        self._positions: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._room = threading.Event()
        self._room.set()
        self._closing = threading.Event()
        self._taken = threading.Event()
        self._taken.set()
        self._held: list[Fetched] = []
        self._caught_up: set[int] = set()  # at the end of their partitions, with nothing more since
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
            self._join_and_work()
        except BaseException as error:  # a thread that dies alone would leave a runner that takes no tasks
            self._calls.failed(error)

    def _join_and_work(self) -> None:
        deadline = time.monotonic() + self._settings.session_timeout.total_seconds() + UNRELEASED_SECONDS
        while not self._closing.is_set():
            try:
                self._work()
                return
            except UnreleasedError:
                if time.monotonic() > deadline:
                    raise
                log.info("%s: waiting for the place of the member that was killed", self._client_id)
                self._closing.wait(RETRY_SECONDS)

    def _work(self) -> None:
        instance_id = self._client_id if self._static else None
        consumer = make_consumer(self._settings, self._client_id, group=GROUP, instance_id=instance_id, eof=True)
        try:
            consumer.subscribe(
                [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            self._loop(consumer)
            self._commit(consumer, wait=True)
        finally:
            consumer.close()

    def _loop(self, consumer: Consumer) -> None:
        full_since: float | None = None
        next_commit = time.monotonic() + COMMIT_SECONDS
        while not self._closing.is_set():
            now = time.monotonic()
            if now >= next_commit:
                self._commit(consumer)
                self._tell_caught_up()
                next_commit = now + COMMIT_SECONDS
            self._hand_over()
            waits_for = self._taken if self._held else self._room
            if waits_for.is_set():
                full_since = None
                self._pause(consumer, False)
            elif full_since is None or now - full_since < FULL_SECONDS:
                full_since = full_since or now
                waits_for.wait(POLL_SECONDS)
                continue
            else:
                self._pause(consumer, True)
            self._fetch(consumer)

    def _fetch(self, consumer: Consumer) -> None:
        put_back = PutBack(consumer)
        for message in poll_batch(consumer, POLL_SECONDS, BATCH):
            error: Any = message.error()
            partition = message.partition() or 0
            if error is None:
                self._caught_up.discard(partition)
                if put_back.later(message):
                    continue
                try:
                    self._held.append(self._decoder(message))
                except UnavailableError as unavailable:
                    put_back(message, unavailable)
            elif is_fatal(error):
                raise self._fatal(error)
            elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                if not put_back.later(message):
                    self._caught_up.add(partition)
            else:
                log.warning("%s: %s", self._topic, error.str())
        self._hand_over()

    def _hand_over(self) -> None:
        """A loop that is blocked must not be buried in tasks: it gets one batch at a time."""
        if self._held and self._taken.is_set():
            batch, self._held = self._held, []
            self._taken.clear()
            self._calls.fetched(batch, self._taken)

    def _tell_caught_up(self) -> None:
        if self._caught_up and not self._held:
            self._calls.caught_up(frozenset(self._caught_up))

    def _fatal(self, error: Any) -> Exception:
        code = code_of(error)
        if code == KafkaError.UNRELEASED_INSTANCE_ID:
            return UnreleasedError(
                f"another runner with worker id {self._client_id!r} is a member of the group; give each runner an id "
                "of its own"
            )
        if code == KafkaError.FENCED_INSTANCE_ID:
            return FencedError(f"another runner has taken the worker id {self._client_id!r}")
        return KafkaException(error)

    def _pause(self, consumer: Consumer, paused: bool) -> None:
        if paused == self._paused:
            return
        partitions = [TopicPartition(self._topic, p) for p in self._assigned]
        (consumer.pause if paused else consumer.resume)(partitions)
        self._paused = paused
        if paused:
            self._caught_up.clear()

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
        retry=retry_if_exception_type((KafkaException, BrokerUnavailableError, UnavailableError)),
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
        gone = set(numbers)
        self._assigned -= gone
        self._caught_up -= gone
        self._held = [fetched for fetched in self._held if fetched.partition not in gone]
        for number in gone:
            self._positions.pop(number, None)
            self._committed.pop(number, None)
