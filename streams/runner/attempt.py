"""One attempt while it runs here: the agent's call, and the first thing that ends it."""

import asyncio
import contextvars
import json
from collections.abc import Awaitable
from typing import Any, cast

import msgspec

from headrace.schemas.records import ErrorInfo
from headrace.streams.agent.base import Agent
from headrace.streams.agent.errors import AgentError
from headrace.streams.agent.resources import Resources
from headrace.streams.agent.tracer import AttemptTracer
from headrace.streams.runner.dispatch.values import Start
from headrace.streams.runner.events import error_info
from headrace.streams.runner.threads import AgentThreads

ABANDONED = "abandoned"
SUCCEEDED = "succeeded"
FAILED = "failed"
TIMEOUT = "timeout"


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How an attempt ended: the type of its end, or `abandoned`, when its end is another's to write."""

    status: str
    value: Any = None
    error: ErrorInfo | None = None


class InvalidTaskError(AgentError):
    """The task's input is no JSON."""


class RunningAttempt:
    """An attempt in hand. Make it, and call all of it, on the event loop."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.tracer: AttemptTracer | None = None
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.announced: asyncio.Future[None] = self.outcome.get_loop().create_future()
        """Done when its start is acknowledged, or was given up."""
        self.over = False
        """Its end is written, or another's to write."""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def decide(self, outcome: Outcome) -> bool:
        """Ends the attempt, unless something has ended it before; what the agent says after that is refused."""
        if self.outcome.done():
            return False
        self.outcome.set_result(outcome)
        if self._timer is not None:
            self._timer.cancel()
        if outcome.status not in (SUCCEEDED, FAILED):  # decided from outside, while the agent still runs
            if self.tracer is not None:
                self.tracer.close()
            if self._task is not None:
                self._task.cancel()
        return True

    def run(self, agent: Agent, tracer: AttemptTracer, resources: Resources, threads: AgentThreads) -> None:
        """Calls the agent; `outcome` tells the rest.

        The context in which it is called must have `CURRENT` set to the tracer: the agent's own tasks and threads
        inherit it.
        """
        self.tracer = tracer
        if self.outcome.done():
            return
        loop = asyncio.get_running_loop()
        seconds = self.start.entry.task.config.timeout_seconds
        if seconds is not None:
            self._timer = loop.call_later(seconds, self._time_out, seconds)
        task = tracer.rollout.input
        if agent.is_async():
            self._task = loop.create_task(self._call_async(agent, task, resources, tracer))
            return

        def call() -> None:
            outcome = _call(agent, task, resources, tracer)
            loop.call_soon_threadsafe(self.decide, outcome)

        threads.submit(contextvars.copy_context(), call)

    def _time_out(self, seconds: float) -> None:
        message = f"the agent did not return within timeout_seconds = {seconds:g}"
        self.decide(Outcome(TIMEOUT, error=ErrorInfo(type="Timeout", message=message)))

    async def _call_async(self, agent: Agent, task: Any, resources: Resources, tracer: AttemptTracer) -> None:
        try:
            value = await cast(Awaitable[Any], agent.call(task, resources, tracer.rollout))
        except (
            BaseException
        ) as error:  # whatever an agent raises, SystemExit included, ends its attempt and nothing else
            self.decide(Outcome(FAILED, error=error_info(error)))
        else:
            self.decide(Outcome(SUCCEEDED, value))


def _call(agent: Agent, task: Any, resources: Resources, tracer: AttemptTracer) -> Outcome:
    try:
        return Outcome(SUCCEEDED, agent.call(task, resources, tracer.rollout))
    except BaseException as error:  # as for an async agent
        return Outcome(FAILED, error=error_info(error))


def decode_input(text: str) -> Any:
    """The input of a task.

    Raises:
        InvalidTaskError: it is no JSON.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        return json.loads(text)  # takes the NaN that Python writes
    except ValueError as error:
        raise InvalidTaskError(f"the task's input is no JSON: {error}: {text[:80]!r}") from error
