"""The runner: reading threads, a thread for signs of life, and an event loop on which everything else happens."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future as ThreadFuture
from typing import Any

from headrace.streams.agent.base import Agent
from headrace.streams.agent.clients import close_async_client
from headrace.streams.agent.failover import use_gateways
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.resources import ResourceFollower
from headrace.streams.runner.attempt import RunningAttempt
from headrace.streams.runner.attempts_reader import AttemptsReader
from headrace.streams.runner.calling import ABANDONED, CANCELLED, LOST, Outcome
from headrace.streams.runner.children.frames import Setup
from headrace.streams.runner.children.pool import ChildPool
from headrace.streams.runner.decoding import Fetched
from headrace.streams.runner.dispatch.dispatcher import GIVEN_BACK, Action, Dispatcher
from headrace.streams.runner.dispatch.values import Abandon, GiveUp, Happened, Start, Withdraw
from headrace.streams.runner.executing import AttemptExecutor
from headrace.streams.runner.loop_calls import LoopCalls
from headrace.streams.runner.observing import Observers
from headrace.streams.runner.options import Isolation, RunnerOptions
from headrace.streams.runner.pulse import Heartbeats, LoopWatch, Pulse
from headrace.streams.runner.recording import Recorder
from headrace.streams.runner.replay import PartitionReplay
from headrace.streams.runner.resolving import Gateways, ResourceResolver
from headrace.streams.runner.spawned import guard_spawned_tasks
from headrace.streams.runner.tasks_reader import TasksReader
from headrace.streams.settings import Settings
from headrace.streams.workers import WorkerAnnouncer, Workers, new_worker_id

log = logging.getLogger(__name__)

TICK_SECONDS = 0.2
PROBE_EVERY_SECONDS = 0.5
LOG_EVERY_SECONDS = 20.0
READ_BACK_SECONDS = 5.0
FORGET_SECONDS = 600.0  # ages are days
PREFETCH = 2  # tasks that wait here, in multiples of the concurrency
PREFETCH_AT_LEAST = 100
ATTEMPTS_LINGER_MS = 5  # nobody notices, and a busy runner sends half as many requests
SPEECH_LINGER_MS = 0  # agents wait for their rewards


class Runner:
    """Takes tasks, runs the agent on `concurrency` of them at once, and writes what happened.

    Make it, and call all of it, on one event loop.
    """

    def __init__(self, settings: Settings, agent: Agent, options: RunnerOptions | None = None) -> None:
        self._settings = settings
        self._agent = agent
        self._options = options or RunnerOptions()
        self.worker_id = self._options.worker_id or new_worker_id("runner")
        self._observers = Observers(self._options.observers, self.worker_id, alone=False).load()
        self._loop = asyncio.get_running_loop()
        self._dispatcher = Dispatcher(self.worker_id, settings.max_deliveries)
        self._retention_ms = int(settings.retention.total_seconds() * 1000)
        self._running: dict[str, RunningAttempt] = {}
        self._jobs: set[asyncio.Task[Any]] = set()
        self._following: set[int] = set()
        self._heartbeats = Heartbeats(settings.heartbeat.total_seconds())
        self._watch = LoopWatch(self._loop, time.monotonic())
        self._draining = False
        self._died: asyncio.Future[None] = self._loop.create_future()
        self._told_waiting = 0.0
        self._full = False
        self.counters = {"started": 0, "ended": 0, "dead_letters": 0, "quarantined": 0, "given_up": 0}
        loop_calls = LoopCalls(
            self._call,
            self._assigned,
            self._revoking,
            self._lost,
            self._fetched,
            self._caught_up,
            self._reader_died,
        )
        self._loop_calls = loop_calls
        self._tasks = TasksReader(settings, self.worker_id, loop_calls, static=self._options.static)
        self._attempts_reader = AttemptsReader(
            settings, self.worker_id, lambda batch: self._call(self._read_batch, batch), loop_calls.failed
        )
        self._prefetch = max(PREFETCH_AT_LEAST, PREFETCH * self._options.concurrency)
        self._children: ChildPool | None = None

    async def start(self) -> None:
        """Joins the pipeline; tasks are taken from now on."""
        settings = self._settings
        guard_spawned_tasks(asyncio.get_running_loop())
        self._producer = AckedProducer(settings, self.worker_id, linger_ms=ATTEMPTS_LINGER_MS)
        self._speech = AckedProducer(settings, f"{self.worker_id}-speech", linger_ms=SPEECH_LINGER_MS)
        self._workers = None
        if self._agent.uses_llm and not settings.gateway:
            self._workers = Workers(
                settings, client_id=f"{self.worker_id}-workers", changed=lambda _: self._call(self._pump)
            )
            await asyncio.to_thread(self._workers.start)
        self._gateways = Gateways(settings.gateway, self._workers)
        use_gateways(self._gateways.urls)
        self._resources = ResourceFollower(settings, client_id=f"{self.worker_id}-resources")
        await asyncio.to_thread(self._resources.start)
        self._executor = self._make_executor()
        self._announcer = WorkerAnnouncer(
            settings, self._producer, "runner", worker_id=self.worker_id, counters=self._count
        )
        await self._announcer.announce()
        self._pulse = Pulse(
            self._heartbeats,
            self._watch,
            lambda r: self._recorder.sign(r.start, "heartbeat"),
            self._announcer.beat,
            self._loop_calls.failed,
        )
        self._attempts_reader.start()
        self._tasks.start()
        self._ticker = self._loop.create_task(self._tick())
        self._watch.alive(time.monotonic())
        self._pulse.start()
        if self._agent.uses_llm:
            self._spawn(self._probe())

    def _make_executor(self) -> AttemptExecutor:
        options, settings = self._options, self._settings
        resolver = ResourceResolver(self._resources, self._gateways, options.policy, options.resources)
        self._recorder = Recorder(settings, self._producer, self.worker_id)
        if options.spec is not None:
            level = logging.getLogger().getEffectiveLevel()
            setup = Setup(options.spec, settings.model_dump_json(), level, self.worker_id, options.observers)
            self._children = ChildPool(setup)
        return AttemptExecutor(
            self._agent,
            resolver,
            self._recorder,
            self._producer,
            self._speech,
            self._children,
            self._observers,
            isolated=options.isolation is Isolation.PROCESS,
        )

    async def run(self) -> None:
        """Works until it is cancelled.

        Raises:
            Exception: a reading thread died of it.
        """
        await asyncio.wait({asyncio.ensure_future(self._died), self._ticker}, return_when=asyncio.FIRST_COMPLETED)
        for ended in (self._died, self._ticker):
            if ended.done():
                ended.result()

    async def drain(self) -> None:
        """Takes no more tasks, and finishes what runs; what is not done within `options.drain` is given back."""
        self._draining = True
        self._tasks.set_full(True)
        await self._until(lambda: not self._running, self._options.drain.total_seconds())
        for running in list(self._running.values()):
            if not running.drop():
                running.decide(Outcome(LOST, lost_reason=GIVEN_BACK))
        await self._until(lambda: not self._running and self._dispatcher.in_hand == 0, READ_BACK_SECONDS)

    async def close(self) -> None:
        """Commits, leaves the group and says goodbye."""
        self._draining = True
        self._ticker.cancel()
        await asyncio.to_thread(self._tasks.close, self._dispatcher.positions())
        await asyncio.to_thread(self._attempts_reader.close)
        await asyncio.to_thread(self._pulse.close)
        await self._announcer.stop()
        for job in list(self._jobs):
            job.cancel()
        if self._children is not None:
            await self._children.close()
        await self._producer.close()
        await self._speech.close()
        use_gateways(None)
        await close_async_client()
        for follower in (self._resources, self._workers):
            if follower is not None:
                await asyncio.to_thread(follower.close)

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110  # at the end only
            await asyncio.sleep(0.01)

    def _call(self, function: Callable[..., object], *args: Any) -> None:
        """Calls something on the event loop, from a reader's thread."""
        self._loop.call_soon_threadsafe(function, *args)

    def _count(self) -> dict[str, int]:
        """From the thread of the signs of life too: whatever blocks the loop, others see it."""
        return {
            **self.counters,
            **self._observers.counts.values(),
            "running": len(self._running),
            "repeated": self._dispatcher.repeated,
            "remembered": self._dispatcher.remembered,
            "blocked_seconds": int(self._watch.blocked(time.monotonic())),
        }

    # what the readers tell

    def _assigned(self, partitions: dict[int, PartitionReplay]) -> None:
        for number, replayed in partitions.items():
            self._act(self._dispatcher.assigned(number, replayed.position, replayed.ended, replayed.events))
            self._following.add(number)
            self._attempts_reader.follow(number, replayed.follow_from)

    def _revoking(self, partitions: list[int], done: "ThreadFuture[dict[int, int]]") -> None:
        positions = {p: at for p, at in self._dispatcher.positions().items() if p in partitions}
        starting = [r.announced for r in self._drop(partitions) if not r.announced.done()]

        async def answer() -> None:
            if starting:
                await asyncio.wait(starting)
            done.set_result(positions)

        self._spawn(answer())

    def _lost(self, partitions: list[int]) -> None:
        self._drop(partitions)

    def _drop(self, partitions: list[int]) -> list[RunningAttempt]:
        """Forgets what of partitions has not begun to start; what has, and stays in hand."""
        self._dispatcher.revoked(partitions)
        concerned = [r for r in self._running.values() if r.start.entry.partition in partitions]
        return [r for r in concerned if not r.drop()]

    def _fetched(self, batch: list[Fetched]) -> None:
        for fetched in batch:
            if fetched.task is not None:
                self._dispatcher.fetched(fetched.partition, fetched.offset, fetched.at, fetched.task)
            else:
                self._dispatcher.unreadable(fetched.partition, fetched.offset)
                self._spawn(self._put_away(fetched))
        self._pump()

    def _caught_up(self, partitions: frozenset[int]) -> None:
        for partition in partitions:
            self._dispatcher.caught_up(partition)

    async def _put_away(self, fetched: Fetched) -> None:
        assert fetched.dead is not None
        log.warning("task %s[%d]@%d is a dead letter", self._settings.topic("tasks"), fetched.partition, fetched.offset)
        await self._recorder.put_away(fetched.dead)
        self.counters["dead_letters"] += 1
        self._dispatcher.put_away(fetched.partition, fetched.offset)

    def _read_batch(self, batch: list[Happened]) -> None:
        for happened in batch:
            self._act(self._dispatcher.read(happened))
        self._pump()

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            running = self._running.get(action.attempt_id)
            if running is not None:
                running.decide(Outcome(ABANDONED if isinstance(action, Abandon) else CANCELLED))

    def _reader_died(self, error: BaseException) -> None:
        if not self._died.done():
            self._died.set_exception(error)

    # starting

    def _pump(self) -> None:
        """Starts what there is room for."""
        while not self._draining and len(self._running) < self._options.concurrency and self._dispatcher.ready:
            if self._agent.uses_llm and not self._gateways.there():
                self._tell_waiting()
                break
            action = self._dispatcher.take()
            if action is None:
                break
            if isinstance(action, Withdraw):
                self._spawn(self._recorder.withdraw(action))
            elif isinstance(action, GiveUp):
                self.counters["given_up"] += 1
                self._spawn(self._recorder.give_up(action))
            else:
                self._start(action)
        waiting = self._dispatcher.ready
        full = self._draining or waiting >= self._prefetch or (self._full and waiting > self._prefetch // 2)
        if full != self._full:
            self._full = full
            self._tasks.set_full(full)

    def _start(self, start: Start) -> None:
        running = RunningAttempt(start)
        self._running[start.attempt_id] = running
        self.counters["started"] += 1
        self.counters["quarantined"] += start.alone
        self._heartbeats.add(running, time.monotonic())
        self._spawn(self._execute(running))

    async def _execute(self, running: RunningAttempt) -> None:
        attempt_id = running.start.attempt_id
        try:
            if await self._executor.execute(running):
                self.counters["ended"] += 1
            else:
                self._dispatcher.unstarted(running.start)
        finally:
            running.over = True
            self._running.pop(attempt_id, None)
            if not running.announced.done():
                running.announced.set_result(None)
            self._pump()

    def _spawn(self, coroutine: Coroutine[Any, Any, object]) -> None:
        job = self._loop.create_task(coroutine)
        self._jobs.add(job)
        job.add_done_callback(self._job_done)

    def _job_done(self, job: "asyncio.Task[Any]") -> None:
        self._jobs.discard(job)
        if not job.cancelled() and (error := job.exception()) is not None and not self._died.done():
            self._died.set_exception(error)

    def _tell_waiting(self) -> None:
        now = time.monotonic()
        if now - self._told_waiting > LOG_EVERY_SECONDS:
            self._told_waiting = now
            log.info("waiting for a gateway: start one with `headrace gateway`, or set HEADRACE_GATEWAY")

    async def _probe(self) -> None:
        while True:
            await self._gateways.probe()
            if self._children is not None:
                self._children.tell_gateways(*self._gateways.urls())
            await asyncio.sleep(PROBE_EVERY_SECONDS)

    async def _tick(self) -> None:
        next_forgetting = time.monotonic() + FORGET_SECONDS
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            self._watch.alive(now)
            if now >= next_forgetting:
                self._dispatcher.forget_ended(self._retention_ms)
                next_forgetting = now + FORGET_SECONDS
            if self._children is not None:
                self._children.reap(now)
            self._tasks.set_positions(self._dispatcher.positions())
            for number in self._following - self._dispatcher.followed:
                self._following.discard(number)
                self._attempts_reader.unfollow(number)
            self._pump()
