"""What a run's log says of each prompt that is fed: how often it was asked for, and how its groups ended. Pure."""

import json
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import fsum, isfinite
from typing import Any

from headrace.schemas.records import Trajectory
from headrace.streams.producing.specs import TaskSpec

PLACE = "headrace.feeder.place"
"""Metadata of a task: the place of its group in all that the feeder of its run asks for, from 0."""
PROMPT = "headrace.feeder.prompt"
"""Metadata of a task: `prompt_key` of its input."""
LONGEST_PLACE = 12  # digits
RECENT = 16  # ended groups of a prompt that are remembered one by one


def prompt_key(input: str) -> str:
    """A short name of a prompt, the same wherever its line stands in the file."""
    return blake2b(input.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group all of whose rollouts have ended.

    Attributes:
        rewards: final rewards of the members that have one, by sample_index.
        version: newest policy version that generated in it; None where none is known.
    """

    rewards: tuple[float, ...]
    version: int | None

    @property
    def mean(self) -> float | None:
        """Of the rewards; None without any."""
        return _mean(self.rewards) if self.rewards else None

    @property
    def varies(self) -> bool:
        """Whether its rewards differ, so that it teaches something."""
        return len(self.rewards) > 1 and min(self.rewards) != max(self.rewards)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStatistics:
    """Of one prompt in one run.

    Attributes:
        index: of its line among the tasks of the file, from 0.
        input: decoded.
        asked: groups that were asked for.
        last_place: place of the last of them in all that the run was asked for, from 0; -1 without any.
        groups: those that have ended.
        recent: the newest of them, at most `RECENT`, in the order in which they ended.
        mean: of the rewards in `recent`; None without any.
        variance: of them, population variance, infinite where no float holds it; None without any.
        version: newest policy version that generated in `recent`.
    """

    index: int
    input: Any
    asked: int
    last_place: int
    groups: int
    recent: tuple[GroupResult, ...]
    mean: float | None
    variance: float | None
    version: int | None


@dataclass(slots=True)
class _Group:
    ended_at: int = 0
    version: int | None = None
    rewards: dict[int, float | None] = field(default_factory=dict[int, float | None])

    def result(self) -> GroupResult:
        rewards = (self.rewards[index] for index in sorted(self.rewards))
        return GroupResult(tuple(r for r in rewards if r is not None), self.version)


@dataclass(slots=True)
class _Prompt:
    input: Any
    asked: int = 0
    last_place: int = -1
    groups: int = 0
    recent: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """When each has ended, and its id; sorted."""
    statistics: PromptStatistics | None = None


class Places:
    """A set of places, a bit each: nearly all from 0 to the last are in it."""

    BLOCK_BITS = 10

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}

    def add(self, place: int) -> bool:
        """False for one that is there."""
        number, bit = place >> self.BLOCK_BITS, 1 << (place & ((1 << self.BLOCK_BITS) - 1))
        block = self._blocks.get(number, 0)
        self._blocks[number] = block | bit
        return not block & bit


class PromptBook:
    """All prompts of a file, in one run. Lines with equal inputs are one prompt.

    What it says depends on the records that it was given and not on the order in which partitions were read, as long as
    the records of a group come in theirs: a feeder that starts again knows what the one before it knew.
    """

    def __init__(self, run_id: str, specs: Sequence[TaskSpec]) -> None:
        self.next_place = 0
        """One after the last place that was asked for."""
        self._run_id = run_id
        self._keys = [prompt_key(spec.input) for spec in specs]
        self._prompts = {k: _Prompt(json.loads(s.input)) for k, s in zip(self._keys, specs, strict=True)}
        self._by_input = {spec.input: key for key, spec in zip(self._keys, specs, strict=True)}
        self._places = Places()
        self._groups: dict[str, _Group] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> PromptStatistics:
        prompt = self._prompts[self._keys[index]]
        if prompt.statistics is None or prompt.statistics.index != index:
            prompt.statistics = self._statistics(index, prompt)
        return prompt.statistics

    def key(self, index: int) -> str:
        """`prompt_key` of a line."""
        return self._keys[index]

    def ask(self, place: int, key: str) -> None:
        """A group was asked for; one that is known is not counted again."""
        if not self._places.add(place):
            return
        self.next_place = max(self.next_place, place + 1)
        prompt = self._prompts.get(key)
        if prompt is not None:
            prompt.asked += 1
            prompt.last_place = max(prompt.last_place, place)
            prompt.statistics = None

    def asked(self, metadata: dict[str, str]) -> None:
        """As `ask`, from the metadata of a task or of its rollout; one without a feeder's marks is passed over."""
        place, key = metadata.get(PLACE, ""), metadata.get(PROMPT)
        if key is not None and place.isdecimal() and len(place) <= LONGEST_PLACE:
            self.ask(int(place), key)

    def take(self, trajectory: Trajectory) -> None:
        """A rollout has ended, or has a new reward."""
        key = self._by_input.get(trajectory.input or "")
        if trajectory.run_id != self._run_id or key is None:
            return
        prompt, group_id = self._prompts[key], trajectory.group_id or trajectory.rollout_id
        group = self._groups.get(group_id)
        if group is None:
            if trajectory.revision > 0:
                return  # its group is none of the recent ones any more
            group = self._groups[group_id] = _Group()
        ended = len(group.rewards) >= trajectory.group_size
        reward = trajectory.final_reward
        group.rewards[trajectory.sample_index] = reward if reward is None or isfinite(reward) else None
        if trajectory.policy_version is not None:
            group.version = max(group.version or 0, trajectory.policy_version.max)
        if trajectory.revision == 0:
            group.ended_at = max(group.ended_at, trajectory.assembled_at)
        if not ended and len(group.rewards) >= trajectory.group_size:
            prompt.groups += 1
            insort(prompt.recent, (group.ended_at, group_id))
            if len(prompt.recent) > RECENT:
                del self._groups[prompt.recent.pop(0)[1]]
        prompt.statistics = None

    def _statistics(self, index: int, prompt: _Prompt) -> PromptStatistics:
        recent = tuple(self._groups[group_id].result() for _, group_id in prompt.recent)
        rewards = [reward for result in recent for reward in result.rewards]
        mean = _mean(rewards) if rewards else None
        return PromptStatistics(
            index=index,
            input=prompt.input,
            asked=prompt.asked,
            last_place=prompt.last_place,
            groups=prompt.groups,
            recent=recent,
            mean=mean,
            variance=None if mean is None else _mean([(r - mean) * (r - mean) for r in rewards]),
            version=max((r.version for r in recent if r.version is not None), default=None),
        )


def _mean(values: Sequence[float]) -> float:
    """An agent may give the largest float there is for a reward, and no sum of two holds that."""
    try:
        return fsum(values) / len(values)
    except OverflowError:
        return fsum(value / len(values) for value in values)
