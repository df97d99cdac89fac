"""A pipeline in memory: what is committed stays, agents answer at once, and a process can die anywhere."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from headrace.schemas.records import (
    JournalEntry,
    PromptTemplate,
    Record,
    ResourcesUpdate,
    Task,
    Trajectory,
)
from headrace.trainers.custom.context import At

Agent = Callable[[Any, PromptTemplate | None], float | None]


class KilledError(BaseException):
    """The process is dead: nothing of the algorithm may catch it."""


class MemoryWorld:
    """What survives: the journal, tasks, publications. See `World`.

    Args:
        agent: the reward of a task's input with the prompt that the task pins.
        dies_at: the number of the commit, from 0, in which the process dies; `written`: after the brokers have it.
    """

    def __init__(self, agent: Agent = lambda task, prompt: 1.0) -> None:
        self.agent = agent
        self.entries: list[JournalEntry] = []
        self.tasks: list[Task] = []
        self.published: list[ResourcesUpdate] = []
        self.commits = 0
        self.dies_at: int | None = None
        self.written = False
        self.publishing = asyncio.Lock()
        self.dead = False

    async def restart(self, dies_at: int | None = None, *, written: bool = False) -> None:
        """Nothing of the dead process runs any more; the next one may begin."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.dead, self.dies_at, self.written = False, dies_at, written
        self.publishing = asyncio.Lock()

    async def commit(self, entry: JournalEntry, records: Sequence[Record]) -> JournalEntry:
        if self.dead:
            raise KilledError
        self.dead = dies = self.commits == self.dies_at
        self.commits += 1
        if dies and not self.written:
            raise KilledError
        self.entries.append(entry)
        self.tasks += [r for r in records if isinstance(r, Task)]
        self.published += [r for r in records if isinstance(r, ResourcesUpdate)]
        if dies:
            raise KilledError
        return entry

    async def wait(self, rollout_ids: Sequence[str], timeout: float | None, rewards: Sequence[str]) -> dict[str, At]:
        places = {task.rollout_id: (0, offset) for offset, task in enumerate(self.tasks)}
        return {i: places[i] for i in rollout_ids}

    async def read(self, places: Sequence[At]) -> list[Trajectory]:
        return [self._trajectory(self.tasks[offset]) for _, offset in places]

    async def conversations(self, trajectories: Sequence[Trajectory]) -> list[list[dict[str, Any]]]:
        return [[{"messages": [{"role": "user", "content": t.input}]}] for t in trajectories]

    async def newest(self, name: str | None) -> ResourcesUpdate | None:
        named = [u for u in self.published if name is None or u.name == name]
        return max(named, key=lambda u: u.version) if named else None

    async def publication(self, resources_id: str) -> ResourcesUpdate | None:
        return next((u for u in self.published if u.resources_id == resources_id), None)

    def _trajectory(self, task: Task) -> Trajectory:
        import json

        update = next((u for u in self.published if u.resources_id == task.resources_id), None)
        prompt = next((r for r in update.resources.values() if isinstance(r, PromptTemplate)), None) if update else None
        return Trajectory(
            rollout_id=task.rollout_id,
            group_id=task.group_id,
            mode=task.mode,
            input=task.input,
            status="succeeded",
            final_reward=self.agent(json.loads(task.input), prompt),
            resources_id=task.resources_id,
            assembled_at=0,
        )
