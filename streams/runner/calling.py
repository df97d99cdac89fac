"""The agent's call itself, in whatever process it runs: as a task of the event loop, or on a thread."""

import asyncio
import contextvars
import json
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import msgspec

from headrace.schemas.records import ErrorInfo, Reward
from headrace.streams.agent.base import Agent
from headrace.streams.agent.emit import returned_reward, type_name
from headrace.streams.agent.errors import AgentError
from headrace.streams.agent.resources import Resources
from headrace.streams.agent.tracer import CURRENT, AttemptTracer
from headrace.streams.runner.threads import AgentThreads

ABANDONED = "abandoned"
SUCCEEDED = "succeeded"
FAILED = "failed"
TIMEOUT = "timeout"
LOST = "lost"
CANCELLED = "cancelled"
MESSAGE_BYTES = 8_192
STACK_BYTES = 32_768  # the end of a stack trace is what tells
TASK_NAME = "attempt "  # before the attempt_id, in the names of the event loop's tasks


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How an attempt ended: the type of its end, or `abandoned`, when its end is another's to write.

    Attributes:
        reward: what the agent returned, to be written before the end.
    """

    status: str
    reward: Reward | None = None
    error: ErrorInfo | None = None
    lost_reason: str | None = None


class InvalidTaskError(AgentError):
    """The task's input is no JSON."""


class Call(Protocol):
    """A call of the agent, wherever it runs."""

    def stop(self) -> None:
        """The attempt was ended from outside: what the agent says from now on is refused."""
        ...

    async def flush(self) -> None:
        """Waits until what the agent has said is acknowledged.

        Raises:
            DeliveryError: the brokers did not take it.
        """
        ...

    def close(self) -> None:
        """Refuses what the agent says from now on."""
        ...


class LocalCall:
    """A call of the agent in this process; make it on the event loop.

    Args:
        done: called on the event loop with the outcome.
    """

    __slots__ = ("_task", "_tracer")

    def __init__(
        self,
        agent: Agent,
        tracer: AttemptTracer,
        resources: Resources,
        threads: AgentThreads,
        done: Callable[[Outcome], object],
    ) -> None:
        self._tracer = tracer
        self._task: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        CURRENT.set(tracer)  # the agent's own tasks and threads inherit it
        if agent.is_async():
            name = TASK_NAME + tracer.rollout.attempt_id
            self._task = loop.create_task(_await(agent, resources, tracer, done), name=name)
            return

        def call() -> None:
            outcome = _call(agent, resources, tracer)
            loop.call_soon_threadsafe(done, outcome)

        threads.submit(contextvars.copy_context(), call)

    async def flush(self) -> None:
        """See `Call`."""
        await self._tracer.flush()

    def close(self) -> None:
        """See `Call`."""
        self._tracer.close()

    def stop(self) -> None:
        """Refuses what the agent still says; a coroutine is cancelled, a thread is left behind."""
        self._tracer.close()
        if self._task is not None:
            self._task.cancel()


async def _await(agent: Agent, resources: Resources, tracer: AttemptTracer, done: Callable[[Outcome], object]) -> None:
    try:
        value = await cast(Awaitable[Any], agent.call(tracer.rollout.input, resources, tracer.rollout))
        outcome = _returned(tracer, value)
    except BaseException as error:  # whatever an agent raises, SystemExit included, ends its attempt and nothing else
        # Of one that was stopped nobody asks for the reason, and a stack trace costs a millisecond.
        outcome = Outcome(FAILED, error=None if tracer.closed else error_info(error))
    done(outcome)


def _call(agent: Agent, resources: Resources, tracer: AttemptTracer) -> Outcome:
    try:
        return _returned(tracer, agent.call(tracer.rollout.input, resources, tracer.rollout))
    except BaseException as error:  # as for an async agent
        return Outcome(FAILED, error=error_info(error))


def _returned(tracer: AttemptTracer, value: Any) -> Outcome:
    return Outcome(SUCCEEDED, None if value is None else returned_reward(tracer, value))


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


def error_info(error: BaseException) -> ErrorInfo:
    """An exception as the log keeps it."""
    try:
        message = str(error)
        stack = "".join(traceback.format_exception(error))
    except Exception as second:  # its own __str__ or __repr__ raises: the attempt must end all the same
        message = stack = f"{type(error).__name__}, which cannot be shown: {type(second).__name__}"
    return ErrorInfo(
        type=type_name(error),
        message=_text(message, MESSAGE_BYTES),
        stacktrace=_text(stack, STACK_BYTES, end=True),
    )


def _text(text: str, limit: int, *, end: bool = False) -> str:
    """The beginning or the end of a text in so many bytes of UTF-8; what UTF-8 has not (surrogates) is escaped."""
    if len(text) > limit:
        text = text[-limit:] if end else text[:limit]
    encoded = text.encode("utf-8", "backslashreplace")
    cut = encoded[-limit:] if end else encoded[:limit]
    return cut.decode("utf-8", "ignore")
