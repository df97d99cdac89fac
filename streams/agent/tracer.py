"""The tracer of one attempt: it writes spans and rewards, and knows which of them the brokers still owe."""

import asyncio
import contextvars
import itertools
import os
from collections.abc import Callable, Generator
from concurrent.futures import Future as ThreadFuture
from typing import Any, Protocol

from headrace.schemas.records import Record, Span
from headrace.streams.agent.errors import AttemptOverError, NoRolloutError
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.errors import HeadraceError
from headrace.streams.tracecontext import attempt_trace_id

Position = tuple[int, int]
PRUNE_AT = 1000  # records that an attempt may have under way before it looks which are acknowledged


class Writer(Protocol):
    """What the tracer needs of `AckedProducer`."""

    def send(self, record: Record) -> asyncio.Future[Position]: ...


class SpanContexts(Protocol):
    """Where a tracing library keeps which span runs here; emitters and operations take their place by it.

    Attributes:
        trace_id: of the attempt's spans, 32 hex digits.
    """

    trace_id: str

    def current(self) -> str:
        """The id of the span that runs here, 16 hex digits; that of the rollout's span if no other does."""
        ...

    def enter(self, span_id: str) -> Any:
        """Makes a span that the library does not know the one that runs here; gives what `leave` wants."""
        ...

    def leave(self, token: Any) -> None:
        """The span before runs here again."""
        ...


class Sent:
    """What an emitter gives back. In a thread the record is acknowledged then; on the event loop, `await` it."""

    __slots__ = ("_futures", "id")

    def __init__(self, id: str, futures: "list[asyncio.Future[Position]]") -> None:
        self.id = id
        self._futures = futures

    def __await__(self) -> Generator[Any, None, "Sent"]:  # a generator of the event loop's own kind
        for future in self._futures:
            yield from future.__await__()
        return self

    def __repr__(self) -> str:
        return f"Sent({self.id!r})"


class AttemptTracer:
    """Writes what an attempt says, from the event loop or from threads.

    Make it on the event loop. `flush` returns when all is acknowledged, `close` refuses everything after it.

    Attributes:
        contexts: of the tracing library, if one traces the attempt.
        kept: the spans that were written, where somebody wants them afterwards.
    """

    def __init__(self, rollout: Rollout, writer: Writer, on_emit: Callable[[], None] | None = None) -> None:
        self.rollout = rollout
        self.contexts: SpanContexts | None = None
        self.kept: list[Span] | None = None
        self._trace_id: str | None = None
        self._writer = writer
        self._on_emit = on_emit
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._pending: list[asyncio.Future[Position]] = []
        self._traced: list[asyncio.Future[Position]] = []
        self._prune_at = PRUNE_AT
        self._numbers = itertools.count(1)
        self._closed = False

    @property
    def trace_id(self) -> str:
        """Of the spans of the attempt, 32 hex digits."""
        if self.contexts is not None:
            return self.contexts.trace_id
        if self._trace_id is None:
            self._trace_id = attempt_trace_id(self.rollout.rollout_id, self.rollout.attempt_id)
        return self._trace_id

    @property
    def span_id(self) -> str | None:
        """The id of the span that runs here; None if there is none."""
        return OPERATION.get() if self.contexts is None else self.contexts.current()

    def next_number(self) -> int:
        """Counts what the attempt emits, on whatever thread."""
        return next(self._numbers)

    def emit(self, id: str, records: list[Record], *, after_traced: bool = False) -> Sent:
        """Writes records; off the event loop it returns when they are acknowledged.

        Args:
            after_traced: once what was posted is acknowledged, so that a reward stands after the calls it judges.

        Raises:
            AttemptOverError: the attempt has ended.
            NoRolloutError: this process is a fork of the one in which the attempt runs.
            DeliveryError: the brokers did not take one.
        """
        if self.on_loop():
            return Sent(id, self._send(records, after_traced))
        if os.getpid() != self._process:
            raise self._forked()
        done: ThreadFuture[None] = ThreadFuture()
        try:
            self._loop.call_soon_threadsafe(self._send_for_thread, records, after_traced, done)
        except RuntimeError as error:  # the event loop is closed
            raise self._over() from error
        done.result()
        return Sent(id, [])

    def post(self, records: list[Record], refused: Callable[[HeadraceError], None]) -> None:
        """Writes records that nobody waits for but the end of the attempt; from any thread, and never blocks or raises.

        Args:
            refused: called with the reason where they are not written.
        """
        if self.on_loop():
            self._post(records, refused)
            return
        if os.getpid() != self._process:
            refused(self._forked())
            return
        try:
            self._loop.call_soon_threadsafe(self._post, records, refused)
        except RuntimeError:  # the event loop is closed
            refused(self._over())

    @property
    def pending(self) -> bool:
        """Whether something is not acknowledged yet."""
        return any(not future.done() for future in self._pending)

    async def flush(self) -> None:
        """Waits for every record that was emitted.

        Raises:
            DeliveryError: the brokers did not take one.
        """
        while self._pending:
            pending, self._pending = self._pending, []
            for future in pending:
                await future

    async def settle(self) -> None:
        """Waits until every record that was emitted is acknowledged or refused; `flush` tells which."""
        if waiting := [future for future in self._pending if not future.done()]:
            await asyncio.wait(waiting)

    def close(self) -> None:
        """Refuses what comes from now on."""
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether it refuses what comes."""
        return self._closed

    def on_loop(self) -> bool:
        """Whether the caller is on the event loop, where nothing may block."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _forked(self) -> NoRolloutError:
        return NoRolloutError(
            "this process is a fork of the agent's, and emitters and tracers work in the agent's own: "
            "hand the value back to it and emit it there"
        )

    def _over(self) -> AttemptOverError:
        return AttemptOverError(f"attempt {self.rollout.attempt_id} has ended: nothing more is recorded for it")

    def _send(self, records: list[Record], after_traced: bool) -> list[asyncio.Future[Position]]:
        if self._closed:
            raise self._over()
        before = [future for future in self._traced if not future.done()] if after_traced else None
        futures: list[asyncio.Future[Position]] = []
        for record in records:
            if before:
                futures.append(self._loop.create_task(self._send_after(before, record)))
            else:
                futures.append(self._writer.send(record))
            if self.kept is not None and isinstance(record, Span):
                self.kept.append(record)
        self._pending += futures
        if len(self._pending) >= self._prune_at:  # an agent that says much, and never waits for it
            self._pending = [f for f in self._pending if not f.done() or f.cancelled() or f.exception() is not None]
            self._prune_at = max(PRUNE_AT, 2 * len(self._pending))
        if self._on_emit is not None:
            self._on_emit()
        return futures

    async def _send_after(self, before: "list[asyncio.Future[Position]]", record: Record) -> Position:
        await asyncio.wait(before)
        return await self._writer.send(record)

    def _post(self, records: list[Record], refused: Callable[[HeadraceError], None]) -> None:
        try:
            for record in records:
                self._traced += self._send([record], after_traced=not isinstance(record, Span))
        except HeadraceError as error:
            refused(error)
        self._traced = [future for future in self._traced if not future.done()]

    def _send_for_thread(self, records: list[Record], after_traced: bool, done: "ThreadFuture[None]") -> None:
        try:
            futures = self._send(records, after_traced)
        except Exception as error:  # whatever it is belongs to the thread that waits
            done.set_exception(error)
            return
        left = len(futures)

        def acknowledged(future: "asyncio.Future[Position]") -> None:
            nonlocal left
            left -= 1
            error = None if future.cancelled() else future.exception()
            if error is not None and not done.done():
                done.set_exception(error)
            elif left == 0 and not done.done():
                done.set_result(None)

        for future in futures:
            future.add_done_callback(acknowledged)
        if not futures:
            done.set_result(None)


CURRENT: contextvars.ContextVar[AttemptTracer | None] = contextvars.ContextVar("headrace_attempt", default=None)
OPERATION: contextvars.ContextVar[str | None] = contextvars.ContextVar("headrace_operation", default=None)
"""The span id of the operation that runs here."""


def current_tracer() -> AttemptTracer:
    """The tracer of the attempt that runs in this context.

    Raises:
        NoRolloutError: none does.
    """
    tracer = CURRENT.get()
    if tracer is None:
        raise NoRolloutError(
            "no rollout runs here: emitters work inside an agent that a runner calls; in a thread of your own, run "
            "the code with contextvars.copy_context().run(...) or asyncio.to_thread(...)"
        )
    return tracer
