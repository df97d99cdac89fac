"""The process in which a grader's function runs: what it does to its process stays there.

    python -m headrace.streams.graders.child DESCRIPTOR PARENT_PID SETUP

No Kafka client runs in it: it is given trajectories, and gives rewards.
"""

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import uvloop

from headrace.schemas.records import Reward, Trajectory
from headrace.streams.graders.asking import Asker, GraderError
from headrace.streams.graders.rewards import GradingRules, rewards_of
from headrace.streams.graders.trajectory import GradedTrajectory
from headrace.streams.runner.children.dying import die_with
from headrace.streams.runner.children.frames import Frame, FrameLink, Ready
from headrace.streams.runner.loading import load_object

EXIT_ORPHANED = 3
EXAMPLE = "my_graders.py:helpful"


class GraderSetup(msgspec.Struct, frozen=True):
    """What a child needs: the function (`MODULE_OR_FILE:FUNCTION`), how its answers become rewards, and its time."""

    function: str
    rules: GradingRules
    seconds: float
    log_level: int = logging.INFO


class Ask(Frame, frozen=True):
    """To the child: judge this."""

    number: int
    record: Trajectory


class Judged(Frame, frozen=True):
    """From the child: the rewards, or why there are none."""

    number: int
    rewards: list[Reward] = []
    reason: str | None = None
    detail: str = ""


FromChild = Judged | Ready


class GraderChild:
    """Asks the function about any number of trajectories at once. Make it on the event loop."""

    def __init__(self, setup: GraderSetup, function: Callable[[Any], Any] | None, problem: str | None) -> None:
        self.link = FrameLink(Ask, self._received, self._orphaned)
        self._rules = setup.rules
        self._problem = problem
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs: set[asyncio.Task[None]] = set()
        self._asker = Asker(function, self._rewards, seconds=setup.seconds) if function is not None else None

    async def run(self) -> None:
        """Works until the parent closes its end."""
        self.link.send(Ready(error=self._problem))
        await self._over

    def _rewards(self, answer: Any, subject: GradedTrajectory) -> list[Reward]:
        return rewards_of(answer, subject.record, self._rules, at=time.time_ns() // 1000)

    def _received(self, ask: Ask) -> None:
        job = asyncio.get_running_loop().create_task(self._judge(ask))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _judge(self, ask: Ask) -> None:
        assert self._asker is not None
        try:
            judged = Judged(ask.number, await self._asker.ask(GradedTrajectory(ask.record)))
        except GraderError as error:
            told = error.detail.encode("utf-8", "backslashreplace").decode()
            judged = Judged(ask.number, reason=error.reason, detail=told)
        self.link.send(judged)

    def _orphaned(self) -> None:
        if self._jobs:  # the function may never return
            os._exit(EXIT_ORPHANED)
        if not self._over.done():
            self._over.set_result(None)


def _load(setup: GraderSetup) -> tuple[Callable[[Any], Any] | None, str | None]:
    try:
        found = load_object(setup.function, EXAMPLE)
    except BaseException as error:  # whatever the user's module raises, the parent says it
        return None, str(error) or type(error).__name__
    if not callable(found) or isinstance(found, type):
        return None, f"{setup.function} is no function: name one that takes a trajectory and gives a number"
    return found, None


async def _serve(own: socket.socket, setup: GraderSetup, function: Any, problem: str | None) -> None:
    child = GraderChild(setup, function, problem)
    own.setblocking(False)
    await asyncio.get_running_loop().create_connection(lambda: child.link, sock=own)
    await child.run()


def main() -> None:
    """The process."""
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    setup = msgspec.json.decode(sys.argv[3], type=GraderSetup)
    own = socket.socket(fileno=descriptor)
    own.set_inheritable(False)
    logging.basicConfig(
        level=setup.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    function, problem = _load(setup)  # before there is an event loop, as a script has it
    uvloop.run(_serve(own, setup, function, problem))


if __name__ == "__main__":
    main()
