"""`Context`: the one way for a custom algorithm to have effects, each of them once."""

import asyncio
import inspect
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from headrace.schemas.records import JournalEntry, Record, ResourcesUpdate, Task, TaskConfig, Trajectory
from headrace.streams.errors import HeadraceError, SettingsError
from headrace.streams.kafka.clock import wall_us
from headrace.streams.producing.specs import TaskFieldError, spec_of
from headrace.trainers.custom import journal as j
from headrace.trainers.custom.journal import Branch, Journal, digest, json_of, made_id
from headrace.trainers.custom.publications import Publishable, resources_of

At = tuple[int, int]
"""Partition and offset in triplets."""
Act = Callable[[str], Awaitable[tuple[Any, Sequence[Record]]]]
"""Does what there is to do for the effect of a place; its result, and the records to write together with it."""


class World(Protocol):
    """What a context needs of the pipeline.

    Attributes:
        publishing: held from asking for the newest version of a name until the next one is written.
    """

    publishing: asyncio.Lock

    async def commit(self, entry: JournalEntry, records: Sequence[Record]) -> JournalEntry:
        """Writes an entry and its records as one; the entry of that place that counts."""
        ...

    async def wait(self, rollout_ids: Sequence[str], timeout: float | None, rewards: Sequence[str]) -> dict[str, At]:
        """Where trajectories lie: of all, once they are there with these rewards; after `timeout` seconds, of some."""
        ...

    async def read(self, places: Sequence[At]) -> list[Trajectory]:
        """The trajectories at these places, in this order."""
        ...

    async def conversations(self, trajectories: Sequence[Trajectory]) -> list[list[dict[str, Any]]]:
        """What was said in the model calls of each."""
        ...

    async def newest(self, name: str | None) -> ResourcesUpdate | None:
        """The highest version of a name; without one, what was published last."""
        ...

    async def publication(self, resources_id: str) -> ResourcesUpdate | None:
        """The publication of an id."""
        ...


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """A rollout that has ended.

    Attributes:
        trajectory: all that the assembler has made of it: triplets with token ids, rewards, diagnostics.
    """

    trajectory: Trajectory

    @property
    def rollout_id(self) -> str:
        """Of the rollout."""
        return self.trajectory.rollout_id

    @property
    def status(self) -> str:
        """How its attempt has ended: succeeded, failed, timeout, ..."""
        return self.trajectory.status

    @property
    def reward(self) -> float | None:
        """The final reward; None where the agent gave none."""
        return self.trajectory.final_reward

    @property
    def rewards(self) -> Mapping[str, float]:
        """The last reward of each name."""
        return self.trajectory.rewards

    @property
    def input(self) -> Any:
        """The task's input, decoded."""
        return json.loads(self.trajectory.input)

    @property
    def resources_id(self) -> str | None:
        """Of the publication whose resources the agent had."""
        return self.trajectory.resources_id


class Context:
    """Effects of one run, or of one branch of it.

    Attributes:
        run_id: of the run.
        random: random numbers that are the same whenever the run goes on; each branch has its own.
    """

    def __init__(self, run_id: str, journal: Journal, world: World, *, seed: int = 0, branch: Branch | None = None):
        self.run_id = run_id
        self._journal = journal
        self._world = world
        self._seed = seed
        self._branch = branch or Branch()
        self.random = random.Random(f"{seed}/{self._branch.path}")

    def branch(self, name: str) -> "Context":
        """A context for what runs side by side with others (`asyncio.gather`): its effects are numbered on their own.

        Raises:
            SettingsError: the name is taken.
        """
        return Context(self.run_id, self._journal, self._world, seed=self._seed, branch=self._branch.branch(name))

    async def enqueue(
        self,
        inputs: Sequence[Any],
        *,
        mode: str = "train",
        resources_id: str | None = None,
        group_size: int = 1,
        config: TaskConfig | Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Asks for a rollout of each input, or for a group of them; the rollouts' ids, input by input.

        Args:
            inputs: JSON values; the agent gets each as `task`.
            mode: train, val or test. Trainers of weights leave val and test alone.
            resources_id: a publication that the agents are to use; None is the newest when each of them starts.
            group_size: so many rollouts an input, as one group.
            config: time-outs and retries.

        Raises:
            TaskFieldError: a value that no task may have.
            NondeterminismError: the journal has something else here.
        """
        if group_size < 1:
            raise TaskFieldError("group_size", f"is {group_size}; it must be at least 1")
        specs = [
            spec_of(value, mode=mode, resources_id=resources_id, config=config, metadata=metadata) for value in inputs
        ]
        request = {
            "inputs": [spec.input for spec in specs],
            "mode": mode,
            "resources_id": resources_id,
            "group_size": group_size,
            "config": msgspec.to_builtins(specs[0].config) if specs else None,
            "metadata": dict(metadata or {}),
        }

        async def act(place: str) -> tuple[Any, Sequence[Record]]:
            tasks = [
                Task(
                    rollout_id=made_id("ro", self.run_id, place, number * group_size + index),
                    group_id=made_id("gr", self.run_id, place, number) if group_size > 1 else None,
                    group_size=group_size,
                    sample_index=index,
                    input=spec.input,
                    mode=spec.mode,
                    run_id=self.run_id,
                    resources_id=spec.resources_id,
                    config=spec.config or TaskConfig(),
                    metadata=spec.metadata,
                    enqueued_at=wall_us(),
                )
                for number, spec in enumerate(specs)
                for index in range(group_size)
            ]
            # Trajectories are keyed by them, and whoever goes on has to look for those keys.
            keys = list(dict.fromkeys(task.group_id or task.rollout_id for task in tasks))
            return {"rollout_ids": [task.rollout_id for task in tasks], "keys": keys}, tasks

        return (await self._effect(j.ENQUEUE, mode, request, act))["rollout_ids"]

    async def trajectories(
        self, rollout_ids: Sequence[str], *, timeout: float | None = None, rewards: Sequence[str] = ()
    ) -> list[RolloutResult]:
        """Waits until rollouts have ended, however they did; their results in the order of the ids.

        Args:
            rollout_ids: of this run's rollouts.
            timeout: seconds after which those that have not ended are left out; None waits for all.
            rewards: names of rewards that have to be there too, such as a grader's.

        Raises:
            SettingsError: the run has not asked for one of them.
            NondeterminismError: the journal has something else here.
            TrajectoryGoneError: a run that goes on asks for what retention has taken.
        """
        ids = list(dict.fromkeys(rollout_ids))
        strange = [i for i in ids if i not in self._journal.enqueued]
        if strange:
            raise SettingsError(f"run {self.run_id} has not enqueued {', '.join(strange[:3])}: nobody would answer")

        async def act(place: str) -> tuple[Any, Sequence[Record]]:
            found = await self._world.wait(ids, timeout, rewards)
            return [found[i] for i in ids if i in found], ()

        places = await self._effect(j.TRAJECTORIES, "", {"rollout_ids": ids, "rewards": list(rewards)}, act)
        return [RolloutResult(t) for t in await self._world.read([(partition, offset) for partition, offset in places])]

    async def conversations(self, results: Sequence[RolloutResult]) -> list[list[dict[str, Any]]]:
        """What was said in the model calls of each rollout: {"messages": [...], "tools": [...]} a call and choice.

        It reads what the log holds of the calls, and has no effect.

        Raises:
            TrajectoryGoneError: retention has taken it.
        """
        return await self._world.conversations([result.trajectory for result in results])

    async def publish(self, resources: Publishable | Mapping[str, Publishable], *, name: str | None = None) -> str:
        """Publishes resources; the id by which tasks pin them.

        Args:
            resources: one, or several by name; agents get a PromptTemplate as `prompt_template`, an LLM as `llm`.
            name: of the publications that this one is the next version of; the run's id where none is given. A runner
                with `--resources NAME` takes the newest of that name for tasks that pin none.

        Raises:
            SettingsError: something that no agent can be given.
            NondeterminismError: the journal has something else here.
        """
        named = resources_of(resources)
        label = name or self.run_id

        async def act(place: str) -> tuple[Any, Sequence[Record]]:
            newest = await self._world.newest(label)
            version = 0 if newest is None else newest.version + 1
            update = ResourcesUpdate(
                resources_id=made_id(f"{label}-v{version}", self.run_id, place),
                name=label,
                version=version,
                resources=named,
                run_id=self.run_id,
                created_at=wall_us(),
            )
            return update.resources_id, [update]

        request = {key: [type(value).__name__, msgspec.to_builtins(value)] for key, value in named.items()}
        async with self._world.publishing:
            return await self._effect(j.PUBLISH, label, request, act)

    async def resources(self, name: str | None = None) -> ResourcesUpdate | None:
        """The newest publication of a name, or the last of all, as it stood when the run asked; None where none is.

        Raises:
            NondeterminismError: the journal has something else here.
        """

        async def act(place: str) -> tuple[Any, Sequence[Record]]:
            newest = await self._world.newest(name)
            return (None if newest is None else newest.resources_id), ()

        found = await self._effect(j.RESOURCES, name or "", None, act)
        if found is None:
            return None
        update = await self._world.publication(found)
        if update is None:
            raise HeadraceError(f"publication {found}, which the run has read before, is not on the resources topic")
        return update

    async def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function, sync (on a thread) or async, and keeps what it returns for a run that goes on.

        Killed while the function runs, the run calls it again.

        Args:
            name: what a run that goes on is held to; of the arguments it should say what matters.

        Returns:
            What it returned, as JSON gives it back: tuples are lists, keys are texts.

        Raises:
            JsonResultError: JSON cannot hold what it returned.
            NondeterminismError: the journal has something else here.
        """

        async def act(place: str) -> tuple[Any, Sequence[Record]]:
            if inspect.iscoroutinefunction(function):
                return await function(*args, **kwargs), ()
            value = await asyncio.to_thread(function, *args, **kwargs)
            return (await value if inspect.isawaitable(value) else value), ()

        return await self._effect(j.STEP, name, None, act)

    async def _effect(self, kind: str, name: str, asked: Any, act: Act) -> Any:
        place, request = self._branch.place(), digest(asked)
        entry = self._journal.find(place, kind, name, request)
        if entry is None:
            result, records = await act(place)
            entry = self._journal.add(
                await self._world.commit(
                    JournalEntry(
                        run_id=self.run_id,
                        place=place,
                        kind=kind,
                        name=name,
                        request=request,
                        result=json_of(result, name),
                        at=wall_us(),
                    ),
                    records,
                )
            )
        return json.loads(entry.result)
