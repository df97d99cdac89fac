"""The agent's call itself, in whatever process it runs: as a task of the event loop, or on a thread."""

import asyncio
import contextvars
import json
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import msgspec

from headrace.schemas.records import ErrorInfo, Reward
from headrace.streams.agent.base import Agent
from headrace.streams.agent.emit import returned_reward, type_name
from headrace.streams.agent.errors import AgentError
from headrace.streams.agent.resources import Resources
from headrace.streams.agent.tracer import CURRENT, AttemptTracer
from headrace.streams.runner.hooks import Hooks
from headrace.streams.runner.observing import Observers
from headrace.streams.runner.threads import AgentThreads

if TYPE_CHECKING:
    from headrace.streams.tracing.attempt import AttemptTrace

ABANDONED = "abandoned"
SUCCEEDED = "succeeded"
FAILED = "failed"
TIMEOUT = "timeout"
LOST = "lost"
CANCELLED = "cancelled"
MESSAGE_BYTES = 8_192
STACK_BYTES = 32_768  # the end of a stack trace is what tells
STOPPED = ErrorInfo(type="Stopped", message="the attempt was ended from outside")
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
        observers: the process's tracer and hooks.
    """

    __slots__ = ("_observers", "_task", "_trace", "_tracer")

    def __init__(
        self,
        agent: Agent,
        tracer: AttemptTracer,
        resources: Resources,
        threads: AgentThreads,
        done: Callable[[Outcome], object],
        observers: Observers,
    ) -> None:
        self._tracer = tracer
        self._task: asyncio.Task[None] | None = None
        self._observers = observers
        loop = asyncio.get_running_loop()
        CURRENT.set(tracer)  # the agent's own tasks and threads inherit it
        self._trace = observers.begin(tracer)
        work = _Work(agent, resources, tracer, self._trace)
        name = TASK_NAME + tracer.rollout.attempt_id
        if observers.hooks is not None:
            context = contextvars.copy_context()
            hooked = _hooked(work, threads, observers.hooks, context, done)
            self._task = loop.create_task(hooked, name=name, context=context)
        elif agent.is_async():
            self._task = loop.create_task(_await(work, done), name=name)
        else:
            _on_thread(work, threads, contextvars.copy_context(), work.ended, done)

    async def flush(self) -> None:
        """See `Call`."""
        await self._tracer.flush()

    def close(self) -> None:
        """See `Call`."""
        self._tracer.close()
        self._observers.end(self._trace)

    def stop(self) -> None:
        """Refuses what the agent still says; a coroutine is cancelled, a thread is left behind."""
        if self._trace is not None:
            self._trace.end(STOPPED)
        self._tracer.close()
        if self._task is not None:
            self._task.cancel()


class _Work(NamedTuple):
    """One call of the agent."""

    agent: Agent
    resources: Resources
    tracer: AttemptTracer
    trace: "AttemptTrace | None"

    def call(self) -> Any:
        """What the agent returns, or its awaitable."""
        return self.agent.call(self.tracer.rollout.input, self.resources, self.tracer.rollout)

    def ended(self, outcome: Outcome) -> None:
        """Ends the rollout's span."""
        if self.trace is not None:
            self.trace.end(outcome.error)


async def _await(work: _Work, done: Callable[[Outcome], object]) -> None:
    outcome = await _awaited(work)
    work.ended(outcome)
    done(outcome)


async def _awaited(work: _Work) -> Outcome:
    try:
        return _returned(work.tracer, await cast(Awaitable[Any], work.call()))
    except BaseException as error:  # whatever an agent raises, SystemExit included, ends its attempt and nothing else
        # Of one that was stopped nobody asks for the reason, and a stack trace costs a millisecond.
        return Outcome(FAILED, error=None if work.tracer.closed else error_info(error))


def _on_thread(
    work: _Work,
    threads: AgentThreads,
    context: contextvars.Context,
    ended: Callable[[Outcome], object],
    done: Callable[[Outcome], object],
) -> None:
    """Calls `ended` there, and `done` on the event loop."""
    loop = asyncio.get_running_loop()

    def call() -> None:
        outcome = _called(work)
        ended(outcome)
        with suppress(RuntimeError):  # a thread that was left behind outlives the event loop
            loop.call_soon_threadsafe(done, outcome)

    threads.submit(context, call)


def _called(work: _Work) -> Outcome:
    try:
        return _returned(work.tracer, work.call())
    except BaseException as error:  # as for an async agent
        return Outcome(FAILED, error=error_info(error))


async def _hooked(
    work: _Work,
    threads: AgentThreads,
    hooks: Hooks,
    context: contextvars.Context,
    done: Callable[[Outcome], object],
) -> None:
    """The agent between its hooks, all in one context. A stop cancels it, and still comes to `on_rollout_end`."""
    agent, tracer, rollout = work.agent, work.tracer, work.tracer.rollout
    outcome = Outcome(FAILED)
    try:
        await hooks.call("on_rollout_start", context, agent, rollout=rollout)
        await hooks.call("on_trace_start", context, agent, tracer=tracer, rollout=rollout)
        outcome = await _awaited(work) if agent.is_async() else await _threaded(work, threads, context)
        if outcome.status == SUCCEEDED:
            await hooks.call("on_trace_end", context, agent, tracer=tracer, rollout=rollout)
        work.ended(outcome)
        await tracer.settle()
    except asyncio.CancelledError:
        pass  # the attempt was stopped, and its end is another's to write
    with suppress(asyncio.CancelledError):  # stopped within its last hook, it is over all the same
        await hooks.call("on_rollout_end", context, agent, rollout=rollout, spans=list(tracer.kept or ()))
    done(outcome)


async def _threaded(work: _Work, threads: AgentThreads, context: contextvars.Context) -> Outcome:
    returned: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def tell(outcome: Outcome) -> None:
        if not returned.done():
            returned.set_result(outcome)

    # A thread cannot be in a context that the event loop's task is in.
    _on_thread(work, threads, context.copy(), lambda _: None, tell)
    return await returned


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
    except BaseException as second:  # its own __str__ or __repr__ raises, or exits: the attempt must end all the same
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
