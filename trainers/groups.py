"""Trajectories that are compared with each other. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from headrace.schemas.records import Trajectory

At = tuple[int, int]
"""Partition and offset in triplets."""
GroupKey = str | At
"""A group's id; of a sample that belongs to no group, its position."""


@dataclass(slots=True)
class Member:
    """A trajectory that is held or about to be trained.

    Attributes:
        superseded: positions of its earlier revisions, decided together with it.
        staleness: set when its window closes.
    """

    at: At
    trajectory: Trajectory
    superseded: list[At] = field(default_factory=list[At])
    staleness: int = 0


@dataclass(slots=True)
class Group:
    """The members of one group by sample_index.

    Attributes:
        opened_at: log time, as `completed_at`, which is None while it waits for members or rewards.
    """

    key: GroupKey
    opened_at: int
    completed_at: int | None = None
    members: dict[int, Member] = field(default_factory=dict[int, Member])

    @property
    def alone(self) -> bool:
        """Whether it is one sample that belongs to no group."""
        return not isinstance(self.key, str)

    def complete(self, group_size: int | None, require_rewards: Sequence[str] = ()) -> bool:
        """Whether every sample of the group is there, with all its rewards."""
        members = self.members
        if not self.alone and len(members) < (group_size or self._size_at_least(len(members))):
            return False
        return not require_rewards or not any(
            missing_rewards(m.trajectory, require_rewards) for m in self.members.values()
        )

    def _size_at_least(self, held: int) -> int:
        """The largest `group_size` that a member names, or the first that is more than are `held`."""
        size = 0
        for member in self.members.values():
            size = max(size, member.trajectory.group_size)
            if size > held:
                break
        return size

    def in_order(self) -> list[Member]:
        """Members by sample_index, whatever the order in which they came."""
        return [self.members[index] for index in sorted(self.members)]

    @property
    def rewards(self) -> list[float]:
        """Final rewards of the members that have one."""
        return [reward for m in self.in_order() if (reward := m.trajectory.final_reward) is not None]

    @property
    def varies(self) -> bool:
        """Whether its rewards differ, so that it teaches something."""
        rewards = self.rewards
        return len(rewards) > 1 and min(rewards) != max(rewards)


Curriculum = Callable[[Group], str | None]
"""Looks at a complete group; the reason for which it is dropped, or None where it is trained. It depends on the group
alone: a restarted run asks again."""


def missing_rewards(trajectory: Trajectory, names: Iterable[str]) -> bool:
    """Whether one of the named rewards has not come yet."""
    return any(name not in trajectory.rewards for name in names)


def oldest_version(trajectory: Trajectory, policy: str) -> int | None:
    """The oldest version of the policy that has generated any token; None where nothing says so."""
    own = trajectory.policy_version
    oldest = None if own is None else own.min
    for triplet in trajectory.triplets:
        version = triplet.policy_version
        if version is None or triplet.policy not in (None, policy):
            continue
        if oldest is None or version.min < oldest:
            oldest = version.min
    return oldest
