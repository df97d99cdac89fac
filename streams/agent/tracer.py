"""The tracer of one attempt: it writes spans and rewards, and knows which of them the brokers still owe."""

import asyncio
import contextvars
import secrets
from collections.abc import Callable, Generator
from concurrent.futures import Future as ThreadFuture
from typing import Any, Protocol

from headrace.schemas.records import Record
from headrace.streams.agent.errors import AttemptOverError, NoRolloutError
from headrace.streams.agent.rollout_facts import Rollout

Position = tuple[int, int]


class Writer(Protocol):
    """What the tracer needs of `AckedProducer`."""

    def send(self, record: Record) -> asyncio.Future[Position]: ...


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
    """

    def __init__(self, rollout: Rollout, writer: Writer, on_emit: Callable[[], None] | None = None) -> None:
        self.rollout = rollout
        self._trace_id: str | None = None
        self._writer = writer
        self._on_emit = on_emit
        self._loop = asyncio.get_running_loop()
        self._pending: list[asyncio.Future[Position]] = []
        self._numbers = 0
        self._closed = False

    @property
    def trace_id(self) -> str:
        """Of every span of the attempt."""
        if self._trace_id is None:
            self._trace_id = secrets.token_hex(16)
        return self._trace_id

    def next_number(self) -> int:
        """Counts what the attempt emits."""
        self._numbers += 1
        return self._numbers

    def emit(self, id: str, records: list[Record]) -> Sent:
        """Writes records; off the event loop it returns when they are acknowledged.

        Raises:
            AttemptOverError: the attempt has ended.
            DeliveryError: the brokers did not take one.
        """
        if self.on_loop():
            return Sent(id, self._send(records))
        done: ThreadFuture[None] = ThreadFuture()
        self._loop.call_soon_threadsafe(self._send_for_thread, records, done)
        done.result()
        return Sent(id, [])

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

    def _send(self, records: list[Record]) -> list[asyncio.Future[Position]]:
        if self._closed:
            raise AttemptOverError(f"attempt {self.rollout.attempt_id} has ended: nothing more is recorded for it")
        futures = [self._writer.send(record) for record in records]
        self._pending += futures
        if self._on_emit is not None:
            self._on_emit()
        return futures

    def _send_for_thread(self, records: list[Record], done: "ThreadFuture[None]") -> None:
        try:
            futures = self._send(records)
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
