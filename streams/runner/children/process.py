"""A child process as the runner sees it."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from headrace.schemas.records import ErrorInfo
from headrace.streams.agent.tracer import Position
from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.messages import OutMessage
from headrace.streams.runner.calling import LOST, Outcome
from headrace.streams.runner.children import frames
from headrace.streams.runner.children.spawning import spawn

log = logging.getLogger(__name__)

MODULE = "headrace.streams.runner.children.child"
CHILD_DIED = "child_died"
START_SECONDS = 60.0  # of Python and of the agent's own imports
GRACE_SECONDS = 2.0  # for a coroutine to clean up after its cancellation, and for an idle child to end
LAST_WORDS_SECONDS = 1.0  # what a dead child has said may still stand in the socket
MOST_THREADS = 64  # a child with more has an agent that leaks them, and is replaced


class ChildStartError(HeadraceError):
    """A child process could not be started, or could not load the agent."""

    retriable = True


class MessageSender(Protocol):
    """What is needed of `AckedProducer`."""

    def send_message(self, message: OutMessage) -> asyncio.Future[Position]: ...


class ChildProcess:
    """Runs one rollout after another. Make it with `start`.

    It lives in a session of its own, so that a Ctrl-C at the terminal ends the runner politely, and a kill reaches the
    processes that its agent has started.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.link = frames.FrameLink(frames.FromChild, self._received, self._hung_up)
        self.exited: asyncio.Future[int] = loop.create_future()
        self._ready: asyncio.Future[str | None] = loop.create_future()
        self._silent: asyncio.Future[None] = loop.create_future()
        self._call: ChildCall | None = None
        self._threads = 0
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, setup: frames.Setup) -> "ChildProcess":
        """A new process that has loaded its agent. Call it on the main thread: the child dies with that.

        Raises:
            ChildStartError: says what the child has said.
        """
        child = cls()
        try:
            child._process, ours = await spawn(MODULE)
        except OSError as error:
            raise ChildStartError(f"no child process could be started: {error}") from error
        child._watching = asyncio.get_running_loop().create_task(child._watch())
        await asyncio.get_running_loop().create_connection(lambda: child.link, sock=ours)
        child.link.send(setup)
        await asyncio.wait({child._ready, child.exited}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not child._ready.done():
            code = child.exited.result() if child.exited.done() else None
            child.kill()
            raise ChildStartError(f"a child process {died_of(code) if code is not None else 'did not become ready'}")
        if (problem := child._ready.result()) is not None:
            child.kill()
            raise ChildStartError(f"a child process cannot load {setup.agent}: {problem}")
        return child

    @property
    def usable(self) -> bool:
        """Whether it may get another rollout."""
        return self._call is None and not self.exited.done() and self._threads <= MOST_THREADS

    def begin(self, call: "ChildCall", work: frames.Work) -> None:
        """Sends it a rollout."""
        assert self._call is None
        self._call = call
        self.link.send(work)

    def stop(self, *, politely: bool) -> None:
        """Ends what it runs: politely where it can be cancelled, and by a kill where it cannot or does not end."""
        if not politely:
            self.kill()
            return
        self.link.send(frames.Stop())
        call = self._call
        if call is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(GRACE_SECONDS, lambda: self.kill() if self._call is call else None)

    def kill(self) -> None:
        """Kills it and the processes that its agent has started."""
        if self._process is not None and not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Lets it end by itself, for a moment; then kills it."""
        if self._call is not None:
            self.kill()
        self.link.close()
        await asyncio.wait({self.exited}, timeout=GRACE_SECONDS)
        self.kill()
        await self.exited

    async def _watch(self) -> None:
        assert self._process is not None
        code = await self._process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what its agent has started, and has left behind
        await asyncio.wait({self._silent}, timeout=LAST_WORDS_SECONDS)
        self.exited.set_result(code)
        self.link.close()
        call, self._call = self._call, None
        if call is not None:
            call.died(died_of(code))

    def _received(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.Say):
            if self._call is not None:
                self._call.said(frame)
        elif isinstance(frame, frames.Done):
            call, self._call = self._call, None
            self._threads = frame.threads
            if call is not None:
                call.returned(frame)
        elif isinstance(frame, frames.Ready):
            self._ready.set_result(frame.error)

    def _hung_up(self) -> None:
        if not self._silent.done():
            self._silent.set_result(None)
        if self._call is not None:  # it cannot be spoken to any more, and may be about to end: of what is worth knowing
            asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, self.kill)


class ChildCall:
    """A call of the agent in a child.

    Args:
        cancellable: the agent is a coroutine.
        writer: writes what it says.
        emitted: called when it says something.
        done: called with the outcome; `lost` if the child has died of it.
        freed: called when the child has no more to do with it.
        counted: called with what the child has counted meanwhile.
    """

    def __init__(
        self,
        child: ChildProcess,
        work: frames.Work,
        writer: MessageSender,
        *,
        cancellable: bool,
        emitted: Callable[[], None],
        done: Callable[[Outcome], object],
        freed: Callable[[ChildProcess], None],
        counted: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._child = child
        self._writer = writer
        self._cancellable = cancellable
        self._emitted = emitted
        self._done = done
        self._freed = freed
        self._counted = counted
        self._pending: list[asyncio.Future[Position]] = []
        self._closed = False
        self._attempt_id = work.rollout.attempt_id
        child.begin(self, work)

    def stop(self) -> None:
        """See `Call`."""
        self._closed = True
        self._child.stop(politely=self._cancellable)

    async def flush(self) -> None:
        """See `Call`."""
        while self._pending:
            pending, self._pending = self._pending, []
            for future in pending:
                await future

    def close(self) -> None:
        """See `Call`."""
        self._closed = True

    def said(self, frame: frames.Say) -> None:
        """The child wants a record written."""
        if self._closed:
            over = f"attempt {self._attempt_id} has ended: nothing more is recorded for it"
            self._child.link.send(frames.Acked(number=frame.number, error=over))
            return
        message = OutMessage(frame.topic, frame.key, frame.value, frame.headers, frame.partition)
        future = self._writer.send_message(message)
        self._pending.append(future)
        future.add_done_callback(lambda f: self._answer(frame.number, f))
        self._emitted()

    def returned(self, frame: frames.Done) -> None:
        """The agent has returned, or has stopped as it was told."""
        self._counted(frame.counts)
        self._done(Outcome(frame.status, frame.reward, frame.error))
        self._freed(self._child)

    def died(self, how: str) -> None:
        """The child is dead."""
        error = ErrorInfo(type="ChildDied", message=f"the process that ran the agent {how}")
        self._done(Outcome(LOST, error=error, lost_reason=CHILD_DIED))
        self._freed(self._child)

    def _answer(self, number: int, future: "asyncio.Future[Position]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._child.link.send(frames.Acked(number=number, error=str(error)))
        else:
            partition, offset = future.result()
            self._child.link.send(frames.Acked(number=number, partition=partition, offset=offset))


def died_of(code: int) -> str:
    """What an exit code says."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
