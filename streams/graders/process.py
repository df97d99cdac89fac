"""A grader's function in a process of its own, as the grader sees it: one that dies of its work is started again."""

import asyncio
import logging
import os
import signal
from contextlib import suppress

import msgspec

from headrace.schemas.records import Reward, Trajectory
from headrace.streams.errors import HeadraceError
from headrace.streams.graders.asking import DIED, FIRST_WAIT_SECONDS, TIMEOUT, GraderError, insist
from headrace.streams.graders.child import Ask, FromChild, GraderSetup
from headrace.streams.runner.children.frames import FrameLink, Ready
from headrace.streams.runner.children.process import died_of
from headrace.streams.runner.children.spawning import spawn

log = logging.getLogger(__name__)

MODULE = "headrace.streams.graders.child"
START_SECONDS = 120.0  # of Python and of the function's own imports
GRACE_SECONDS = 5.0  # beyond the function's time: the child tells of it then, unless its event loop is blocked
END_SECONDS = 2.0  # for an idle child to end
LAST_WORDS_SECONDS = 1.0  # what a dead child has said may still stand in the socket


class GraderLoadError(HeadraceError):
    """The function cannot be loaded, or its process not be started."""


class ChildDied(Exception):
    """The process ended, or had to be ended, before it had answered.

    Attributes:
        alone: nothing else was in hand, so it died of this.
        reason: `grader_died`, or `grader_timeout`.
    """

    def __init__(self, how: str, alone: bool, reason: str = DIED) -> None:
        super().__init__(how)
        self.alone = alone
        self.reason = reason


class _Child:
    """One process. `over` is set when it has ended, and all that it had in hand has been told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        loop = asyncio.get_running_loop()
        self.link = FrameLink(FromChild, self._received, self._hung_up)
        self.ready: asyncio.Future[str | None] = loop.create_future()
        self.waiting: dict[int, asyncio.Future[list[Reward]]] = {}
        self._process = process
        self._silent: asyncio.Future[None] = loop.create_future()
        self._crowded = False  # it was given up with several in hand
        self.usable = True
        self.over = loop.create_task(self._watch())

    def give_up(self) -> bool:
        """Kills it since it does not answer; whether nothing else was in hand, so that this is why."""
        self._crowded = self._crowded or len(self.waiting) > 1
        self.kill()
        return not self._crowded

    def kill(self) -> None:
        """Kills the process and those that the function has started."""
        self.usable = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Lets it end by itself, for a moment; then kills it."""
        self.usable = False
        self.link.close()
        await asyncio.wait({self.over}, timeout=END_SECONDS)
        self.kill()
        await self.over

    async def _watch(self) -> None:
        code = await self._process.wait()
        self.kill()  # what the function has started, and has left behind
        await asyncio.wait({self._silent}, timeout=LAST_WORDS_SECONDS)
        self.link.close()
        left = [future for future in self.waiting.values() if not future.done()]
        alone = len(left) == 1 and not self._crowded
        for future in left:
            future.set_exception(ChildDied(f"the process that ran the grader {died_of(code)}", alone))

    def _received(self, frame: FromChild) -> None:
        if isinstance(frame, Ready):
            if not self.ready.done():
                self.ready.set_result(frame.error)
            return
        future = self.waiting.get(frame.number)
        if future is None or future.done():
            return
        if frame.reason is not None:
            future.set_exception(GraderError(frame.reason, frame.detail))
        else:
            future.set_result(frame.rewards)

    def _hung_up(self) -> None:
        if not self._silent.done():
            self._silent.set_result(None)
        # It cannot be spoken to any more. It may be about to end, and what it ends of is worth knowing.
        self.usable = False
        asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, lambda: self.over.done() or self.kill())


class GraderProcess:
    """Asks the function in a child, which is started when it is needed, and anew when it has died.

    The child lives in a session of its own, so that a Ctrl-C at the terminal ends the grader politely, and a kill
    reaches the processes that the function has started.
    """

    def __init__(self, setup: GraderSetup, grace: float = GRACE_SECONDS) -> None:
        self._setup = setup
        self._grace = grace
        self._starting = asyncio.Lock()
        self._number = 0
        self._child: _Child | None = None

    async def start(self) -> _Child:
        """The child; started, if none lives. Call it on the main thread: the child dies with that.

        Raises:
            GraderLoadError: says what the child has said.
        """
        async with self._starting:
            if self._child is None or not self._child.usable:
                self._child = await self._start()
            return self._child

    async def ask(self, record: Trajectory) -> list[Reward]:
        """The rewards of a trajectory.

        Raises:
            GraderError: the function gave none.
            ChildDied: its process ended, or was killed because it blocks.
            GraderLoadError: it could not be started again.
        """
        child = await self.start()
        self._number += 1
        number = self._number
        answer = child.waiting[number] = asyncio.get_running_loop().create_future()
        child.link.send(Ask(number, record))
        try:
            async with asyncio.timeout(self._setup.seconds + self._grace):
                return await answer
        except TimeoutError:
            blocked = f"no answer within {self._setup.seconds:g} s (--timeout), nor a word: it blocks its event loop"
            raise ChildDied(blocked, child.give_up(), TIMEOUT) from None
        finally:
            child.waiting.pop(number, None)

    async def close(self) -> None:
        """Ends the child."""
        if self._child is not None:
            await self._child.close()

    async def _start(self) -> _Child:
        setup = msgspec.json.encode(self._setup).decode()
        try:
            process, ours = await spawn(MODULE, setup)
        except OSError as error:
            raise GraderLoadError(f"no process could be started for the grader's function: {error}") from error
        child = _Child(process)
        await asyncio.get_running_loop().create_connection(lambda: child.link, sock=ours)
        await asyncio.wait({child.ready, child.over}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        problem = child.ready.result() if child.ready.done() else "its process ends, or hangs, while it is imported"
        if problem is not None:
            child.kill()
            await child.over
            raise GraderLoadError(f"grader {self._setup.function}: {problem}")
        return child


class IsolatedFunction:
    """Asks a grader's function, again where it fails, and finds the trajectory that its process dies of.

    When the process dies of one of several trajectories, each of them is asked about again by itself, one after the
    other, in a second process; the others go on meanwhile.

    Args:
        tries: of a trajectory, at most. A death of the process counts as one where nothing else was in hand.
    """

    def __init__(
        self,
        setup: GraderSetup,
        *,
        tries: int,
        first_wait: float = FIRST_WAIT_SECONDS,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._tries = tries
        self._first_wait = first_wait
        self._common = GraderProcess(setup, grace)
        self._apart = GraderProcess(setup, grace)
        self._one = asyncio.Lock()

    async def start(self) -> None:
        """Loads the function.

        Raises:
            GraderLoadError: it cannot be.
        """
        await self._common.start()

    async def ask(self, record: Trajectory) -> list[Reward]:
        """The rewards of a trajectory.

        Raises:
            GraderError: the last try's reason.
            GraderLoadError: the process could not be started again.
        """
        suspect = False

        async def once() -> list[Reward]:
            nonlocal suspect
            if not suspect:
                try:
                    return await self._common.ask(record)
                except ChildDied as death:
                    suspect = True
                    log.warning("Rollout %s was in hand when its grader's process ended: %s", record.rollout_id, death)
                    if death.alone:
                        raise GraderError(death.reason, str(death)) from death
            async with self._one:
                try:
                    return await self._apart.ask(record)
                except ChildDied as death:
                    raise GraderError(death.reason, str(death)) from death

        return await insist(once, self._tries, self._first_wait)

    async def close(self) -> None:
        """Ends its processes."""
        await asyncio.gather(self._common.close(), self._apart.close())
