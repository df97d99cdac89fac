"""An attempt from its start to its acknowledged end."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from headrace.schemas.records import ResourcesUpdate
from headrace.streams.agent.base import Agent
from headrace.streams.agent.errors import ResourceError
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import AttemptTracer
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import DeliveryError
from headrace.streams.kafka.client_log import Seldom
from headrace.streams.runner.attempt import RunningAttempt
from headrace.streams.runner.calling import (
    ABANDONED,
    FAILED,
    SUCCEEDED,
    Call,
    InvalidTaskError,
    LocalCall,
    Outcome,
    decode_input,
    error_info,
)
from headrace.streams.runner.children.frames import work_of
from headrace.streams.runner.children.pool import ChildPool
from headrace.streams.runner.children.process import ChildCall, ChildProcess, ChildStartError
from headrace.streams.runner.dispatch.values import Start
from headrace.streams.runner.observing import Observers
from headrace.streams.runner.recording import Recorder, Sender
from headrace.streams.runner.resolving import ResourceResolver
from headrace.streams.runner.threads import AgentThreads

log = logging.getLogger(__name__)
failures = logging.getLogger(f"{__name__}.failures")
failures.addFilter(Seldom())

ACTIVITY_SECONDS = 5.0
ACTIVITY_SHARE = 3  # of unresponsive_seconds: so many signs of activity within it
RETRY_SECONDS = 1.0
CROWD = 16  # attempts at once from which on what they say goes out in batches


class AttemptExecutor:
    """Runs attempts. Everything here is on the event loop.

    Args:
        attempts: writes attempt events, and the reward that an agent returns, in batches.
        speech: writes what agents say while they run, spans and rewards, at once.
        children: where agents run in processes of their own; None if this runner cannot start any.
        observers: the tracer and the hooks of this process; a child has its own.
        isolated: every attempt runs in a child, not only those in quarantine.
    """

    def __init__(
        self,
        agent: Agent,
        resolver: ResourceResolver,
        recorder: Recorder,
        attempts: Sender,
        speech: Sender,
        children: ChildPool | None,
        observers: Observers,
        *,
        isolated: bool,
    ) -> None:
        self._agent = agent
        self._cancellable = agent.is_async()
        self._resolver = resolver
        self._recorder = recorder
        self._attempts = attempts
        self._speech = speech
        self._children = children
        self._observers = observers
        self._isolated = isolated
        self._threads = AgentThreads()
        self._under_way = 0

    async def execute(self, running: RunningAttempt) -> bool:
        """Starts an attempt and sees it to its end; False if its start was not written."""
        self._under_way += 1
        try:
            return await self._execute(running)
        finally:
            self._under_way -= 1

    def _speech_of_one(self) -> Sender:
        """The writer for all that one attempt says: its records keep their order.

        In a crowd a batch of a few milliseconds costs agents little, and halves what runner and brokers spend on a
        record.
        """
        return self._speech if self._under_way < CROWD else self._attempts

    async def _execute(self, running: RunningAttempt) -> bool:
        start = running.start
        task = start.entry.task
        problem: Outcome | None = None
        value: Any = None
        update: ResourcesUpdate | None = None
        child: ChildProcess | None = None
        readable = True
        try:
            value = decode_input(task.input)
            update = await self._resolver.find(task.resources_id)
        except (InvalidTaskError, ResourceError) as error:
            problem = Outcome(FAILED, error=error_info(error))
            readable = not isinstance(error, InvalidTaskError)
        if self._agent.uses_llm:
            await self._resolver.gateway_there(lambda: running.dropped)
        if problem is None and self._children is not None and (self._isolated or start.alone):
            child = await self._child(self._children, start)
            if child is None:
                return False
        resources_id = update.resources_id if update else task.resources_id
        if not (running.announce() and await self._recorder.start(start, resources_id, with_input=readable)):
            self._give_back(child)
            return False
        running.announced.set_result(None)
        if problem is None and self._agent.uses_llm:  # it may have gone while the start was written
            await self._resolver.gateway_there(running.outcome.done)
        call: Call | None = None
        if problem is None and not running.outcome.done():
            try:
                call = self._call(running, _rollout(start, value, resources_id), update, child)
            except ResourceError as error:
                problem = Outcome(FAILED, error=error_info(error))
        if call is None:
            self._give_back(child)
        if problem is not None:
            running.decide(problem)
        outcome = await running.outcome
        if call is not None:
            outcome = await self._last_words(start, call, outcome)
        if outcome.status != ABANDONED:
            if outcome.error is not None:
                failures.warning(
                    "%s %s: attempt %s: %s (headrace rollouts show %s)",
                    *(outcome.error.type, outcome.status, start.attempt_id, outcome.error.message[:200]),
                    start.entry.task.rollout_id,
                )
            await self._recorder.end(start, outcome)
        running.over = True
        return True

    def _call(
        self, running: RunningAttempt, rollout: Rollout, update: ResourcesUpdate | None, child: ChildProcess | None
    ) -> Call:
        start = running.start
        resources = self._resolver.bind(update, rollout.rollout_id, start.attempt_id)
        emitted = self._activity(start)
        call: Call
        if child is None:
            tracer = AttemptTracer(rollout, self._speech_of_one(), emitted)
            call = LocalCall(self._agent, tracer, resources, self._threads, running.decide, self._observers)
        else:
            call = ChildCall(
                child,
                work_of(rollout, start.entry.task.input, resources),
                self._speech_of_one(),
                cancellable=self._cancellable,
                emitted=emitted,
                done=running.decide,
                freed=self._give_back,
                counted=self._observers.counts.merge,
            )
        running.called(call)
        return call

    async def _child(self, children: ChildPool, start: Start) -> ChildProcess | None:
        try:
            return await children.take()
        except ChildStartError as error:
            log.warning("attempt %s waits: %s", start.attempt_id, error)
            await asyncio.sleep(RETRY_SECONDS)
            return None

    def _give_back(self, child: ChildProcess | None) -> None:
        if child is not None and self._children is not None:
            self._children.give(child)

    def _activity(self, start: Start) -> Callable[[], None]:
        every, limit = ACTIVITY_SECONDS, start.entry.task.config.unresponsive_seconds
        if limit is not None:
            every = min(every, limit / ACTIVITY_SHARE)
        last = time.monotonic()

        def emitted() -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= every:
                last = now
                self._recorder.sign(start, "activity")

        return emitted

    async def _last_words(self, start: Start, call: Call, outcome: Outcome) -> Outcome:
        """Waits for all that the attempt has said, and writes the reward that was returned."""
        try:
            await call.flush()
            if outcome.reward is not None:
                # No agent waits for this one, so it goes with the attempt events, in fewer requests.
                await self._attempts.send(outcome.reward)
        except (DeliveryError, RecordTooLargeError) as error:
            if outcome.status == SUCCEEDED:
                outcome = Outcome(FAILED, error=error_info(error))
            else:
                log.warning("attempt %s: %s", start.attempt_id, error)
        call.close()
        return outcome


def _rollout(start: Start, value: Any, resources_id: str | None) -> Rollout:
    task = start.entry.task
    return Rollout(
        rollout_id=task.rollout_id,
        attempt_id=start.attempt_id,
        attempt=task.attempt,
        delivery=start.delivery,
        input=value,
        mode=task.mode,
        group_id=task.group_id,
        group_size=task.group_size,
        sample_index=task.sample_index,
        run_id=task.run_id,
        resources_id=resources_id,
        metadata=task.metadata,
    )
