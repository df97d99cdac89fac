"""Windows: which trajectories a step trains on, in which order, and what became of the others. Pure, without a clock.

A window is the unit of commit. Everything that is read is either held (its group is incomplete, or complete and waiting
for its window) or decided: trained, or dropped by a named reason. What is decided is carried by the next TrainingStep.
"""

from collections.abc import Iterable, Sequence
from math import isfinite

from headrace.schemas.records import Dropped, LogPosition, PartitionPosition, TrainingStep, Trajectory, Window
from headrace.streams.hashed_ids import HashedIds
from headrace.trainers.groups import At, Curriculum, Group, GroupKey, Member, missing_rewards, oldest_version
from headrace.trainers.position import Positions
from headrace.trainers.window_settings import WindowSettings


class Windows:
    """All that is held and decided of one run.

    Args:
        curriculum: looks at each complete group that would be trained.
    """

    def __init__(self, settings: WindowSettings, curriculum: Curriculum | None = None) -> None:
        self.settings = settings
        self.curriculum = curriculum
        self.decided = 0
        """Rollouts of this run decided so far, at revision 0."""
        self.finished = False
        self._positions = Positions()
        self._groups: dict[GroupKey, Group] = {}
        self._complete: list[Group] = []
        self._held: dict[At, tuple[GroupKey, int]] = {}
        self._decided_groups = HashedIds()  # of the whole run: a member may come however late
        self._trained: list[At] = []
        self._dropped: dict[str, list[At]] = {}
        self._group_ids: list[str] = []

    @classmethod
    def restored(
        cls, settings: WindowSettings, steps: Iterable[TrainingStep], curriculum: Curriculum | None = None
    ) -> "Windows":
        """As the last of a run's steps left it. All steps of the run are needed: each names the groups it decided."""
        windows = cls(settings, curriculum)
        last = None
        for step in steps:
            for group_id in step.window.group_ids:
                windows._decided_groups.add(group_id)
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
            self._revise(at, append_time, trajectory)
            return
        key = at if trajectory.group_id is None else trajectory.group_id
        if isinstance(key, str) and key in self._decided_groups:
            self._drop(Member(at, trajectory), "group_decided")
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, append_time)
        if trajectory.sample_index in group.members:
            self._drop(Member(at, trajectory), "duplicate_sample")
            return
        group.members[trajectory.sample_index] = Member(at, trajectory)
        self._held[at] = (key, trajectory.sample_index)
        self._look(group, append_time)

    def restart_timers(self, now: int) -> None:
        """Groups that are open have opened now: nothing could complete them while the log was out of reach."""
        for group in self._groups.values():
            group.opened_at = max(group.opened_at, now)

    def close(self, version: int, now: int, *, timers: bool = True) -> list[Group] | None:
        """The groups of the next window, if one closes; what cannot be trained in them is decided.

        Members that are not trained are still in the groups: their rewards count in the baseline. Each of the others
        has to go to `train` or to `drop` before the next `decisions`.

        Args:
            version: of the policy that is trained now.
            now: log time, microseconds since the epoch.
            timers: whether time may judge: what completes a group may be in the log, and not be read yet.
        """
        if timers:
            self._time_out(now)
        self._sift()
        count = self._closing(now if timers else None)
        if not count:
            return None
        groups, self._complete = self._complete[:count], self._complete[count:]
        for group in groups:
            self._decide(group)
            for member in group.members.values():
                oldest = oldest_version(member.trajectory, self.settings.policy)
                member.staleness = 0 if oldest is None else max(0, version - oldest)
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
            self._drop_group(group, "run_finished")
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
        if expired:
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
        if trajectory.group_id is None and settings.ungrouped == "drop":
            return "no_group"
        if not _is_finite(trajectory):
            return "reward_not_finite"
        return None

    def _unfit(self, member: Member) -> str | None:
        if not member.trajectory.triplets:
            return "no_triplets"
        if member.trajectory.final_reward is None:
            return "no_reward"
        required = self.settings.require_rewards
        if required and missing_rewards(member.trajectory, required):
            return "no_required_reward"
        if member.trajectory.policy_version is None:
            return "no_policy_version"
        if member.staleness > self.settings.max_staleness:
            return "stale"
        return None

    def _revise(self, at: At, append_time: int, trajectory: Trajectory) -> None:
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
        self._look(group, append_time)

    def _look(self, group: Group, append_time: int) -> None:
        settings = self.settings
        if group.completed_at is None and group.complete(settings.group_size, settings.require_rewards):
            group.completed_at = append_time
            self._complete.append(group)

    def _sift(self) -> None:
        """Drops complete groups that are not to be trained, so that a window has its full number of those that are."""
        s = self.settings
        if s.thin == s.zero_variance == "train" and s.skip_solved is None and self.curriculum is None:
            return
        kept: list[Group] = []
        for group in self._complete:
            reason = self._idle(group)
            if reason is None:
                kept.append(group)
            else:
                self._drop_group(group, reason)
        self._complete = kept

    def _idle(self, group: Group) -> str | None:
        settings = self.settings
        if not group.alone:
            if settings.thin == "drop" and len(group.rewards) < settings.thin_below:
                return "thin_group"
            rewards = group.rewards
            if settings.skip_solved is not None and rewards and sum(rewards) / len(rewards) >= settings.skip_solved:
                return "solved"
            if settings.zero_variance == "drop" and not group.varies:
                return "zero_variance"
        return None if self.curriculum is None else self.curriculum(group)

    def _closing(self, now: int | None) -> int:
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
        if now is None or settings.seconds is None or not waiting:
            return 0
        since = self._complete[0].completed_at
        return waiting if since is not None and now - since >= settings.seconds * 1e6 else 0

    def _time_out(self, now: int) -> None:
        limit = now - int(self.settings.group_timeout_seconds * 1e6)
        for group in [g for g in self._groups.values() if g.opened_at <= limit and g.completed_at is None]:
            if self.settings.incomplete == "train" and (len(group.members) > 1 or group.alone):
                group.completed_at = now
                self._complete.append(group)
                continue
            self._drop_group(group, "group_timeout")

    def _drop_group(self, group: Group, reason: str) -> None:
        self._decide(group)
        for member in group.in_order():
            self._drop(member, reason)

    def _decide(self, group: Group) -> None:
        del self._groups[group.key]
        if isinstance(group.key, str):
            self._decided_groups.add(group.key)
            self._group_ids.append(group.key)

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
    final = trajectory.final_reward
    if final is not None and not isfinite(final):
        return False
    for triplet in trajectory.triplets:
        reward = triplet.reward
        if reward is not None and not isfinite(reward):
            return False
    return True
