"""The children of a runner: one rollout at a time in each, and idle ones are used again."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Sequence

from headrace.streams.runner.children import frames
from headrace.streams.runner.children.process import ChildProcess

IDLE_SECONDS = 60.0


class ChildPool:
    """Starts children when they are needed. How many there are at once is bounded by the runner's concurrency.

    As many start at a time as there are processors, since an import is CPU time; a child that becomes free meanwhile
    is taken instead.
    """

    def __init__(self, setup: frames.Setup) -> None:
        self._setup = setup
        self._idle: list[tuple[ChildProcess, float]] = []  # with the monotonic time since when
        self._all: set[ChildProcess] = set()
        self._starting = 0
        self._most_starting = os.cpu_count() or 1
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._gateways: frames.Gateways | None = None
        self._jobs: set[asyncio.Task[None]] = set()

    async def take(self) -> ChildProcess:
        """A child for one rollout; `give` it back.

        Raises:
            ChildStartError: see there.
        """
        while not self._free():
            if self._starting < self._most_starting:
                return await self._start()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        return self._idle.pop()[0]

    async def _start(self) -> ChildProcess:
        self._starting += 1
        try:
            child = await ChildProcess.start(self._setup)
        finally:
            self._starting -= 1
            self._tell()
        self._all.add(child)
        if self._gateways is not None:
            child.link.send(self._gateways)
        return child

    def give(self, child: ChildProcess) -> None:
        """The child's rollout is over, or was not run."""
        if child.usable:
            self._idle.append((child, time.monotonic()))
            self._tell()
        else:
            self._put_away(child)

    def reap(self, now: float) -> None:
        """Ends children that were idle for a minute, by a monotonic clock in seconds."""
        while self._idle and now - self._idle[0][1] > IDLE_SECONDS:
            self._put_away(self._idle.pop(0)[0])

    def tell_gateways(self, live: Sequence[str], known: Sequence[str]) -> None:
        """Tells every child which gateways answer, if that has changed."""
        told = frames.Gateways(live=list(live), known=list(known))
        if told != self._gateways:
            self._gateways = told
            for child in self._all:
                child.link.send(told)

    async def close(self) -> None:
        """Ends all children."""
        await asyncio.gather(*(child.close() for child in self._all), *self._jobs)

    def _free(self) -> bool:
        while self._idle and not self._idle[-1][0].usable:
            self._put_away(self._idle.pop()[0])
        return bool(self._idle)

    def _tell(self) -> None:
        """Somebody may have an idle child now, or start one."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _put_away(self, child: ChildProcess) -> None:
        self._all.discard(child)
        job = asyncio.get_running_loop().create_task(child.close())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
