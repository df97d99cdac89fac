"""Another reward: a user's function asked about trajectories."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from headrace.schemas.records import Reward
from headrace.streams.errors import SettingsError
from headrace.streams.graders.asking import TIMEOUT, Asker, GraderError
from headrace.streams.graders.rewards import GradingRules, rewards_of
from headrace.streams.kafka.clock import wall_us
from headrace.streams.runner.loading import load_object
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.reassembly import ReplayedTrajectory

CONCURRENCY = 16
EXAMPLE = "my_rewards.py:brief"
LOOK_SECONDS = 0.2
END_SECONDS = 1.0
BLOCKED_SECONDS = 2.0  # beyond the function's time: an event loop that turns tells of it itself


class RewardFunction:
    """Asks a function, sync or async, about several trajectories at once, on a thread of its own.

    Args:
        spec: MODULE_OR_FILE:FUNCTION.
        seconds: of one answer.
        primary_key: which of an answer's dimensions is the final reward.

    Raises:
        AgentLoadError: there is no such function.
        SettingsError: it is none.
    """

    def __init__(self, spec: str, *, seconds: float, primary_key: str | None) -> None:
        found = load_object(spec, EXAMPLE)
        if not callable(found) or isinstance(found, type):
            raise SettingsError(f"--reward {spec} is no function: name one that takes a trajectory and gives a number")
        self._seconds = seconds
        self._rules = GradingRules(spec.rpartition(":")[2], primary_key=primary_key, external=True)
        self._asker: Asker[list[Reward]] = Asker(found, self._rewards, seconds=seconds)
        self._loop = asyncio.new_event_loop()  # one for all: an async function's clients belong to it
        self._thread = threading.Thread(target=self._loop.run_forever, name="reward", daemon=True)
        self._thread.start()
        self._turned = 0.0

    def __call__(
        self, subjects: Sequence[ReplayedTrajectory], stopping: Callable[[], bool] = lambda: False
    ) -> list[list[Reward]]:
        """The rewards of each.

        Raises:
            ReplayError: the function has raised, hung, or given what is no reward; or `stopping()` meanwhile.
        """
        asked = asyncio.run_coroutine_threadsafe(self._all(subjects), self._loop)
        self._turned = time.monotonic()
        while True:
            try:
                return asked.result(LOOK_SECONDS)
            except FutureTimeoutError:
                self._loop.call_soon_threadsafe(self._turn)
            if stopping():
                asked.cancel()
                raise ReplayError("stopped while the reward function was asked; nothing was written")
            if time.monotonic() - self._turned > self._seconds + BLOCKED_SECONDS:
                raise ReplayError(f"--reward: the function blocks its event loop for {self._seconds:g} s: await in it")

    def close(self) -> None:
        """Ends the event loop; a function that hangs is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)

    def _turn(self) -> None:
        self._turned = time.monotonic()

    async def _all(self, subjects: Sequence[ReplayedTrajectory]) -> list[list[Reward]]:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def one(subject: ReplayedTrajectory) -> list[Reward]:
            async with slots:
                try:
                    return await self._asker.ask(subject)
                except GraderError as error:
                    hangs = error.reason == TIMEOUT
                    detail = f"no answer within {self._seconds:g} s (--reward-timeout)" if hangs else error.detail
                    raise ReplayError(f"--reward: rollout {subject.rollout_id}: {detail}") from error

        tasks = [asyncio.ensure_future(one(subject)) for subject in subjects]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _rewards(self, answer: Any, subject: ReplayedTrajectory) -> list[Reward]:
        if isinstance(answer, Mapping) and answer and self._rules.primary_key is None:
            names = ", ".join(sorted(map(str, answer)))  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(f"the answer has dimensions ({names}): say with --primary-key which is the reward")
        return rewards_of(answer, subject.record, self._rules, at=wall_us())
