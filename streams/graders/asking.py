"""Asking a grader's function: sync or async, within its time, and again when it fails."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from headrace.streams.errors import HeadraceError
from headrace.streams.runner.threads import AgentThreads

T = TypeVar("T")
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
DETAIL_CHARACTERS = 2000
FAILED, TIMEOUT, DIED = "grader_failed", "grader_timeout", "grader_died"


class GraderError(HeadraceError):
    """A grader's function gave no answer that can be used.

    Attributes:
        reason: `grader_failed`, `grader_timeout` or `grader_died`, the reason of the dead letter.
        detail: what happened.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


async def insist(ask: Callable[[], Awaitable[T]], tries: int, first_wait: float = FIRST_WAIT_SECONDS) -> T:
    """Asks until there is an answer.

    Args:
        tries: at most.
        first_wait: seconds before the second try; then twice that, and so on to half a minute.

    Raises:
        GraderError: the last try's reason.
    """
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

    retrying = AsyncRetrying(
        stop=stop_after_attempt(tries),
        wait=wait_exponential_jitter(multiplier=first_wait, max=LONGEST_WAIT_SECONDS, jitter=first_wait),
        retry=retry_if_exception_type(GraderError),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            return await ask()
    raise AssertionError("tenacity reraises")


class Asker(Generic[T]):
    """Asks a function, and takes from its answer what is wanted.

    Args:
        take: makes of the answer what is wanted; what it raises counts as a failure.
        seconds: that it may take. A coroutine is cancelled then; a function's thread is left behind.
    """

    def __init__(self, function: Callable[[Any], Any], take: Callable[[Any, Any], T], *, seconds: float) -> None:
        self._function = function
        self._take = take
        self._seconds = seconds
        self._threads = AgentThreads()

    async def ask(self, subject: Any) -> T:
        """The answer about a subject.

        Raises:
            GraderError: why there is none.
        """
        call = self._start(subject)
        try:
            await asyncio.wait({call}, timeout=self._seconds)
        finally:
            if not call.done():
                call.cancel()
        if not call.done() or call.cancelled():
            raise GraderError(TIMEOUT, f"no answer within {self._seconds:g} s (--timeout)")
        answer, error = call.result()
        if error is None:
            try:
                return self._take(answer, subject)
            except BaseException as wrong:  # an answer may be any object, and raise anything where it is looked at
                error = wrong
        raise GraderError(FAILED, f"{type(error).__name__}: {_said(error)}") from error

    def _start(self, subject: Any) -> "asyncio.Future[tuple[Any, BaseException | None]]":
        loop = asyncio.get_running_loop()
        if inspect.iscoroutinefunction(self._function):
            return loop.create_task(_guarded(self._function(subject)))
        done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def tell(answer: Any, error: BaseException | None) -> None:
            if not done.done():
                done.set_result((answer, error))

        def run() -> None:
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = self._function(subject)
            except BaseException as raised:  # whatever a grader raises, SystemExit included, is a failed try
                error = raised
            with suppress(RuntimeError):  # a thread that was left behind outlives the event loop
                loop.call_soon_threadsafe(tell, answer, error)

        self._threads.submit(contextvars.copy_context(), run)
        return done


def _said(error: BaseException) -> str:
    try:
        return str(error)[:DETAIL_CHARACTERS]
    except BaseException:  # also `__str__` is the grader's, and may exit
        return "its message cannot be told"


async def _guarded(answer: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await answer, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # an event loop ends with a task's SystemExit
        return None, error
