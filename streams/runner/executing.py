"""An attempt from its start to its acknowledged end."""

import asyncio
import logging
import time
from typing import Protocol

from headrace.schemas.records import AttemptEvent, Record
from headrace.streams.agent.base import Agent
from headrace.streams.agent.emit import returned_reward
from headrace.streams.agent.errors import InvalidRewardError, ResourceError
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import CURRENT, AttemptTracer, Position
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import DeliveryError
from headrace.streams.runner import events
from headrace.streams.runner.attempt import (
    ABANDONED,
    FAILED,
    SUCCEEDED,
    InvalidTaskError,
    Outcome,
    RunningAttempt,
    decode_input,
)
from headrace.streams.runner.dispatch.values import Start, Withdraw
from headrace.streams.runner.resolving import ResourceResolver
from headrace.streams.runner.threads import AgentThreads

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
ACTIVITY_SECONDS = 5.0
ACTIVITY_SHARE = 3  # of unresponsive_seconds: so many signs of activity within it


class Sender(Protocol):
    """What is needed of `AckedProducer`."""

    def send(self, record: Record) -> asyncio.Future[Position]: ...


class AttemptExecutor:
    """Runs attempts. Everything here is on the event loop.

    Args:
        attempts: writes attempt events.
        speech: writes what agents say: spans and rewards.
    """

    def __init__(
        self, agent: Agent, resolver: ResourceResolver, attempts: Sender, speech: Sender, worker_id: str
    ) -> None:
        self._agent = agent
        self._resolver = resolver
        self._attempts = attempts
        self._speech = speech
        self._worker_id = worker_id
        self._threads = AgentThreads()

    async def execute(self, running: RunningAttempt) -> bool:
        """Starts an attempt and sees it to its end; False if its start could not be written."""
        start = running.start
        task = start.entry.task
        problem: Outcome | None = None
        value, update = None, None
        try:
            value = decode_input(task.input)
            update = await self._resolver.find(task.resources_id)
        except (InvalidTaskError, ResourceError) as error:
            problem = Outcome(FAILED, error=events.error_info(error))
        readable = not (problem and problem.error and problem.error.type.endswith(InvalidTaskError.__name__))
        resources_id = update.resources_id if update else task.resources_id
        if self._agent.uses_llm:
            await self._resolver.gateway_there()
        if not await self._write_start(start, resources_id, with_input=readable):
            return False
        running.announced.set_result(None)
        tracer = self._tracer(running, value, resources_id)
        if problem is None and self._agent.uses_llm:  # it may have gone while the start was written
            await self._resolver.gateway_there(running.outcome.done)
        if problem is None:
            try:
                resources = self._resolver.bind(update, task.rollout_id, start.attempt_id)
                CURRENT.set(tracer)
                running.run(self._agent, tracer, resources, self._threads)
            except ResourceError as error:
                problem = Outcome(FAILED, error=events.error_info(error))
        if problem is not None:
            running.decide(problem)
        outcome = await running.outcome
        outcome = await self._reward(tracer, outcome)
        tracer.close()
        if outcome.status != ABANDONED:
            await self._write_end(events.ended(start, outcome.status, self._worker_id, outcome.error))
        running.over = True
        return True

    async def withdraw(self, withdraw: Withdraw) -> None:
        """Writes the end of a task that was cancelled before it started."""
        try:
            await self._write_end(events.withdrawn(withdraw.entry, self._worker_id))
        except RecordTooLargeError:  # as with a start
            await self._write_end(events.withdrawn(withdraw.entry, self._worker_id, with_input=False))

    def _tracer(self, running: RunningAttempt, value: object, resources_id: str | None) -> AttemptTracer:
        start, task = running.start, running.start.entry.task
        rollout = Rollout(
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
        every = ACTIVITY_SECONDS
        if task.config.unresponsive_seconds is not None:
            every = min(every, task.config.unresponsive_seconds / ACTIVITY_SHARE)
        last = time.monotonic()

        def emitted() -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= every:
                last = now
                self.sign(running, "activity")

        return AttemptTracer(rollout, self._speech, emitted)

    def sign(self, running: RunningAttempt, kind: str) -> None:
        """Writes a `heartbeat` or an `activity`; nobody waits for it."""
        self._attempts.send(events.sign(running.start, kind, self._worker_id)).add_done_callback(_logged)

    async def _write_start(self, start: Start, resources_id: str | None, *, with_input: bool) -> bool:
        try:
            try:
                sent = self._attempts.send(events.started(start, self._worker_id, resources_id, with_input=with_input))
            except RecordTooLargeError:  # the input fits into a task, but not beside what a start says more
                sent = self._attempts.send(events.started(start, self._worker_id, resources_id, with_input=False))
            await sent
        except DeliveryError as error:
            log.warning("the start of %s was not written, and will be tried again: %s", start.attempt_id, error)
            return False
        return True

    async def _write_end(self, event: AttemptEvent) -> None:
        while True:
            try:
                await self._attempts.send(event)
                return
            except DeliveryError as error:
                log.warning("the end of %s was not written, trying again: %s", event.attempt_id, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _reward(self, tracer: AttemptTracer, outcome: Outcome) -> Outcome:
        """Writes the reward that was returned, and waits for all that the attempt has said."""
        try:
            await tracer.flush()
            if outcome.status == SUCCEEDED and outcome.value is not None:
                # No agent waits for this one, so it goes with the attempt events, in fewer requests.
                await self._attempts.send(returned_reward(tracer, outcome.value))
        except (InvalidRewardError, DeliveryError) as error:
            if outcome.status == SUCCEEDED:
                return Outcome(FAILED, error=events.error_info(error))
            log.warning("attempt %s: %s", tracer.rollout.attempt_id, error)
        return outcome


def _logged(future: "asyncio.Future[Position]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        log.warning("a sign of life was not written: %s", error)
