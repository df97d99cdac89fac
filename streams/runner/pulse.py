"""Signs of life, and an eye on the event loop, from a thread that no agent can block."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from headrace.streams.runner.attempt import RunningAttempt
from headrace.streams.runner.calling import TASK_NAME

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
BLOCKED_SECONDS = 2.0
TELL_SECONDS = 10.0  # between two warnings of one blockage


class Heartbeats:
    """Which attempts are due. All have the same interval, so the next to be due always stands first."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._due: deque[tuple[float, ref[RunningAttempt]]] = deque()  # one that has ended is kept by nobody

    def add(self, running: RunningAttempt, now: float) -> None:
        """An attempt has started. `now` and the interval are in seconds of one monotonic clock."""
        self._due.append((now + self.interval, ref(running)))

    def due(self, now: float) -> Iterator[RunningAttempt]:
        """The attempts that still run and whose sign of life is due; each comes again after the interval."""
        while self._due and self._due[0][0] <= now:
            running = self._due.popleft()[1]()
            if running is None or running.over:
                continue
            self._due.append((now + self.interval, ref(running)))
            if running.announced.done():
                yield running


class LoopWatch:
    """Notices that something blocks an event loop: no other agent on it gets on then."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Make it on the loop's own thread; `now` is a monotonic clock's, in seconds."""
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._alive_at = now
        self._told_at = now - TELL_SECONDS

    def alive(self, now: float) -> None:
        """The loop's own sign."""
        self._alive_at = now

    def blocked(self, now: float) -> float:
        """For how many seconds the loop has not turned; 0 while that is no longer than a busy loop may take."""
        silent = now - self._alive_at
        return silent if silent >= BLOCKED_SECONDS else 0.0

    def look(self, now: float) -> str | None:
        """From another thread: what is wrong with the loop, once in a while."""
        silent = self.blocked(now)
        if not silent or now - self._told_at < TELL_SECONDS:
            return None
        task = asyncio.current_task(self._loop)
        if task is None:  # it waits: the machine has been too busy to run it
            return None
        self._told_at = now
        return (
            f"{_name(task)} has blocked the event loop for {silent:.1f} s, so that no other async agent of this "
            f"runner gets on; use `await asyncio.sleep`, asyncio.to_thread or --isolation process.{self._where()}"
        )

    def _where(self) -> str:
        frame = sys._current_frames().get(self._thread_id)  # pyright: ignore[reportPrivateUsage]
        if frame is None:
            return ""
        return " It is here:\n" + "".join(traceback.format_stack(frame, limit=6)).rstrip()


class Pulse:
    """The thread.

    Args:
        sign: writes the sign of life of an attempt; callable from this thread.
        announce: writes the sign of life of the worker itself, as often as one of an attempt.
        failed: told why the thread has died, if it has.
    """

    def __init__(
        self,
        heartbeats: Heartbeats,
        watch: LoopWatch,
        sign: Callable[[RunningAttempt], None],
        announce: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._heartbeats = heartbeats
        self._watch = watch
        self._sign = sign
        self._announce = announce
        self._failed = failed
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stops it."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(10 * LOOK_SECONDS)

    def _run(self) -> None:
        try:
            self._beat()
        except BaseException as error:  # a thread that dies alone would leave the leases to run out
            self._failed(error)

    def _beat(self) -> None:
        interval = self._heartbeats.interval
        next_own = time.monotonic() + interval
        while not self._closing.wait(LOOK_SECONDS):
            now = time.monotonic()
            for running in self._heartbeats.due(now):
                self._sign(running)
            if now >= next_own:
                self._announce()
                next_own = now + interval
            if (problem := self._watch.look(now)) is not None:
                log.warning("%s", problem)


def _name(task: "asyncio.Task[Any]") -> str:
    name = task.get_name()
    return name if name.startswith(TASK_NAME) else f"{name}, which an agent has started,"
