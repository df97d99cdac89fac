"""Windows: which trajectories a step trains on, in which order, and what became of the others. Pure, without a clock.

A window is the unit of commit. Everything that is read is either held (its group is incomplete, or complete and waiting
for its window) or decided: trained, or dropped by a named reason. What is decided is carried by the next TrainingStep.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite

from headrace.schemas.records import Dropped, LogPosition, PartitionPosition, TrainingStep, Trajectory, Window
from headrace.streams.errors import SettingsError
from headrace.trainers.position import Positions

At = tuple[int, int]
"""Partition and offset in triplets."""

INCOMPLETE = ("train", "drop")


@dataclass(frozen=True, kw_only=True)
class WindowSettings:
    """When a window closes, and what is taken into it.

    Attributes:
        groups: closes on so many complete groups.
        group_size: distinct samples of a complete group; None is what its tasks say.
        samples: closes on so many samples of complete groups; None is no such rule.
        seconds: closes when a complete group has waited so long; None is no such rule.
        group_timeout_seconds: a group older than this, by log time, closes with what it has.
        incomplete: whether such a group is a `train` group of the members it has, or is a `drop`.
        max_staleness: most versions between the oldest that generated a token and the one that is trained.
        accept_external: takes traffic that nobody enqueued.
        accept_other_runs: takes trajectories of this policy that another run asked for.
    """

    run_id: str
    policy: str
    groups: int = 10
    group_size: int | None = None
    samples: int | None = None
    seconds: float | None = None
    group_timeout_seconds: float = 300.0
    incomplete: str = "train"
    max_staleness: int = 3
    accept_external: bool = False
    accept_other_runs: bool = False

    def __post_init__(self) -> None:
        if self.groups < 1 or self.max_staleness < 0 or not self.group_timeout_seconds > 0:
            raise SettingsError("a window needs at least one group, max_staleness >= 0 and a positive group timeout")
        if self.incomplete not in INCOMPLETE:
            raise SettingsError(f"incomplete {self.incomplete!r}: choose one of {', '.join(INCOMPLETE)}")


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
    """The members of one group by sample_index."""

    group_id: str
    opened_at: int
    completed_at: int = 0
    members: dict[int, Member] = field(default_factory=dict[int, Member])

    def complete(self, group_size: int | None) -> bool:
        """Whether every sample of the group is there."""
        return len(self.members) >= (group_size or max(m.trajectory.group_size for m in self.members.values()))

    def in_order(self) -> list[Member]:
        """Members by sample_index, whatever the order in which they came."""
        return [self.members[index] for index in sorted(self.members)]


class Windows:
    """All that is held and decided of one run."""

    def __init__(self, settings: WindowSettings) -> None:
        self.settings = settings
        self.decided = 0
        """Rollouts of this run decided so far, at revision 0."""
        self.finished = False
        self._positions = Positions()
        self._groups: dict[str, Group] = {}
        self._complete: deque[Group] = deque()
        self._held: dict[At, tuple[str, int]] = {}
        self._decided_groups: set[str] = set()
        self._trained: list[At] = []
        self._dropped: dict[str, list[At]] = {}
        self._group_ids: list[str] = []

    @classmethod
    def restored(cls, settings: WindowSettings, steps: Iterable[TrainingStep]) -> "Windows":
        """As the last of a run's steps left it. All steps of the run are needed: each names the groups it decided."""
        windows = cls(settings)
        last = None
        for step in steps:
            windows._decided_groups.update(step.window.group_ids)
            last = step
        if last is not None:
            windows.decided = last.decided
            windows._positions = Positions.restored(last.window.position)
        return windows

    @property
    def carrying(self) -> bool:
        """Whether something was decided that no step has carried yet."""
        return bool(self._trained or self._dropped)

    @property
    def undelivered(self) -> int:
        """How many decisions no step has carried yet."""
        return len(self._trained) + sum(len(positions) for positions in self._dropped.values())

    @property
    def held(self) -> int:
        """Trajectories that wait for their group or their window."""
        return len(self._held)

    def starts(self) -> dict[int, int]:
        """Where to read each partition from; a partition that is not named is read from its beginning."""
        return {p.partition: p.next for p in self._positions.snapshot()}

    def reached(self, partition: int, offset: int) -> None:
        """All records of the partition before `offset` were read; what lies between them are transaction markers."""
        self._expire(self._positions.reached(partition, offset))

    def unreadable(self, at: At) -> bool:
        """A record that cannot be read is decided; false where it was before."""
        if not self._read(at):
            return False
        self._positions.finish(at)
        self._dropped.setdefault("unreadable", []).append(at)
        return True

    def take(self, at: At, append_time: int, trajectory: Trajectory) -> None:
        """Holds or decides a record that was read.

        Args:
            append_time: of the record, microseconds since the epoch.
        """
        if not self._read(at):
            return
        reason = self._refusal(trajectory)
        if reason is not None:
            self._drop(Member(at, trajectory), reason)
            return
        if trajectory.revision > 0:
            self._revise(at, trajectory)
            return
        group_id = trajectory.group_id
        assert group_id is not None
        if group_id in self._decided_groups:
            self._drop(Member(at, trajectory), "group_decided")
            return
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, append_time)
        if trajectory.sample_index in group.members:
            self._drop(Member(at, trajectory), "duplicate_sample")
            return
        group.members[trajectory.sample_index] = Member(at, trajectory)
        self._held[at] = (group_id, trajectory.sample_index)
        if not group.completed_at and group.complete(self.settings.group_size):
            group.completed_at = append_time
            self._complete.append(group)

    def close(self, version: int, now: int) -> list[Group] | None:
        """The groups of the next window, if one closes; what cannot be trained in them is decided.

        Members that are not trained are still in the groups: their rewards count in the baseline. Each of the others
        has to go to `train` or to `drop` before the next `decisions`.

        Args:
            version: of the policy that is trained now.
            now: log time, microseconds since the epoch.
        """
        self._time_out(now)
        count = self._closing(now)
        if not count:
            return None
        groups = [self._complete.popleft() for _ in range(count)]
        for group in groups:
            self._decide(group)
            for member in group.members.values():
                trained = member.trajectory
                member.staleness = max(0, version - trained.policy_version.min) if trained.policy_version else 0
                reason = self._unfit(member)
                if reason is not None:
                    self._drop(member, reason)
        return groups

    def trainable(self, group: Group) -> list[Member]:
        """The members of a closed group that are not decided yet, by sample_index."""
        return [member for member in group.in_order() if member.at in self._held]

    def train(self, members: Sequence[Member]) -> None:
        """These are trained, in this order."""
        for member in members:
            self._finish(member)
            self._trained.append(member.at)

    def drop(self, member: Member, reason: str) -> None:
        """This one is not trained."""
        self._drop(member, reason)

    def finish(self) -> None:
        """Nothing is trained from now on: what is held is dropped, and so is what comes."""
        self.finished = True
        for group in list(self._groups.values()):
            self._decide(group)
            for member in group.in_order():
                self._drop(member, "run_finished")
        self._complete.clear()

    def decisions(self) -> Window:
        """The position, and what was decided since the last call: for the TrainingStep that carries it."""
        window = Window(
            position=self._positions.snapshot(),
            samples=[LogPosition(partition=p, offset=o) for p, o in self._trained],
            dropped=[
                Dropped(reason=reason, samples=[LogPosition(partition=p, offset=o) for p, o in self._dropped[reason]])
                for reason in sorted(self._dropped)
            ],
            group_ids=self._group_ids,
        )
        self._trained, self._dropped, self._group_ids = [], {}, []
        return window

    def position(self) -> list[PartitionPosition]:
        """What is finished of each partition."""
        return self._positions.snapshot()

    def _read(self, at: At) -> bool:
        new, expired = self._positions.read(at)
        self._expire(expired)
        return new

    def _expire(self, positions: Sequence[At]) -> None:
        # Held when the run stopped, gone by retention when it went on.
        if positions:
            self._dropped.setdefault("expired", []).extend(positions)

    def _refusal(self, trajectory: Trajectory) -> str | None:
        settings = self.settings
        external = trajectory.origin == "external"
        if external and not settings.accept_external:
            return "external_not_accepted"
        if trajectory.mode != "train" and not (external and trajectory.mode is None):
            return "mode"
        if trajectory.run_id not in (None, settings.run_id) and not settings.accept_other_runs:
            return "other_run"
        # Without a call there is no policy: such a trajectory belongs to its run, else to its group.
        if trajectory.policy != settings.policy and (trajectory.triplets or trajectory.policy is not None):
            return "wrong_policy"
        if self.finished:
            return "run_finished"
        if trajectory.group_id is None:
            return "no_group"
        if not _is_finite(trajectory):
            return "reward_not_finite"
        return None

    def _unfit(self, member: Member) -> str | None:
        if not member.trajectory.triplets:
            return "no_triplets"
        if member.trajectory.final_reward is None:
            return "no_reward"
        if member.trajectory.policy_version is None:
            return "no_policy_version"
        if member.staleness > self.settings.max_staleness:
            return "stale"
        return None

    def _revise(self, at: At, trajectory: Trajectory) -> None:
        before = trajectory.supersedes
        place = self._held.get((before.partition, before.offset)) if before is not None else None
        group = self._groups.get(place[0]) if place is not None else None
        if place is None or group is None:
            self._drop(Member(at, trajectory), "already_decided")
            return
        old = group.members[place[1]]
        # The earlier revision stays unfinished with its successor: both are read again after a restart.
        group.members[place[1]] = Member(at, trajectory, [*old.superseded, old.at])
        del self._held[old.at]
        self._held[at] = place

    def _closing(self, now: int) -> int:
        settings = self.settings
        waiting = len(self._complete)
        if waiting >= settings.groups:
            return settings.groups
        if settings.samples is not None:
            count = 0
            for index, group in enumerate(self._complete):
                count += len(group.members)
                if count >= settings.samples:
                    return index + 1
        if settings.seconds is not None and waiting and now - self._complete[0].completed_at >= settings.seconds * 1e6:
            return waiting
        return 0

    def _time_out(self, now: int) -> None:
        limit = now - int(self.settings.group_timeout_seconds * 1e6)
        for group in [g for g in self._groups.values() if g.opened_at <= limit and not g.completed_at]:
            if self.settings.incomplete == "train" and len(group.members) > 1:
                group.completed_at = now
                self._complete.append(group)
                continue
            self._decide(group)
            for member in group.in_order():
                self._drop(member, "group_timeout")

    def _decide(self, group: Group) -> None:
        del self._groups[group.group_id]
        self._decided_groups.add(group.group_id)
        self._group_ids.append(group.group_id)

    def _drop(self, member: Member, reason: str) -> None:
        self._finish(member)
        self._dropped.setdefault(reason, []).append(member.at)

    def _finish(self, member: Member) -> None:
        self._held.pop(member.at, None)
        self._positions.finish(member.at)
        for at in member.superseded:
            self._positions.finish(at)
            self._dropped.setdefault("superseded", []).append(at)
        first = member.trajectory.revision == 0 or bool(member.superseded)
        if first and member.trajectory.run_id == self.settings.run_id:
            self.decided += 1


def _is_finite(trajectory: Trajectory) -> bool:
    """A reward that is none would spread over its whole group through the baseline."""
    rewards = [trajectory.final_reward, *(t.reward for t in trajectory.triplets)]
    return all(reward is None or isfinite(reward) for reward in rewards)
