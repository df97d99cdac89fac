"""The windows of a run as its steps tell them: the same samples in the same order and groups. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.schemas.records import Dropped, LogPosition, TrainingStep, Trajectory, Window
from headrace.trainers.groups import At, Group, GroupKey, Member, oldest_version
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings

OUTSIDE = frozenset(
    {
        "unreadable", "expired", "mode", "other_run", "wrong_policy", "run_finished", "no_group", "reward_not_finite",
        "external_not_accepted", "already_decided", "group_decided", "duplicate_sample", "superseded", "group_timeout",
    }
)  # fmt: skip
"""Reasons of samples that stood in no group of a window. The others were members, and count in the baseline."""
RECONSIDERED = frozenset({"thin_group", "zero_variance", "solved"})
"""Reasons of groups that their rewards have kept out of every window; with other rewards they may teach something."""


@dataclass(frozen=True)
class Planned:
    """A step that is to be trained again.

    Attributes:
        trained: the positions of its samples in the first run's triplets, in their order.
        beside: the positions of what else may stand in its groups.
    """

    step: TrainingStep
    trained: Sequence[At]
    beside: Sequence[At]

    @property
    def wanted(self) -> list[At]:
        """All of them."""
        return [*self.trained, *self.beside]


def planned(history: Iterable[TrainingStep], chosen: Sequence[TrainingStep], *, offline: bool) -> list[Planned]:
    """The plan of chosen steps.

    Args:
        history: all steps of the run. Of those without samples, an offline run takes the groups that were dropped for
            their rewards; they stand in the window that came next.
    """
    plan: list[Planned] = []
    carried: list[At] = []
    numbers = {step.step for step in chosen if step.window.samples}
    for step in history:
        if step.window.samples and step.step in numbers:
            plan.append(Planned(step, _places(step.window.samples), [*_beside(step), *carried]))
        elif not step.window.samples and offline:
            carried += [at for d in step.window.dropped if d.reason in RECONSIDERED for at in _places(d.samples)]
            continue
        if step.window.samples:
            carried = []
    return plan


def _places(positions: Iterable[LogPosition]) -> list[At]:
    return [(p.partition, p.offset) for p in positions]


def _beside(step: TrainingStep) -> list[At]:
    return [at for d in step.window.dropped if d.reason not in OUTSIDE for at in _places(d.samples)]


def groups_of(plan: Planned, records: Mapping[At, Trajectory], *, offline: bool = False) -> list[Group]:
    """The groups of a step that have a trained member, in the order of the window.

    Args:
        records: by position; what is missing is left out.
        offline: groups that were dropped whole for their rewards come too, behind the others.
    """
    trained = set(plan.trained)
    dropped = {at for d in plan.step.window.dropped if d.reason in RECONSIDERED for at in _places(d.samples)}
    carried = set(plan.beside) - set(_beside(plan.step))
    groups: dict[GroupKey, Group] = {}
    for at in plan.wanted:
        trajectory = records.get(at)
        if trajectory is None:
            continue
        key = at if trajectory.group_id is None else trajectory.group_id
        if key not in groups and at not in trained and not (offline and (at in dropped or at in carried)):
            continue  # its whole group was dropped
        group = groups.setdefault(key, Group(key, 0, 0))
        member = Member(at, trajectory)
        version = oldest_version(trajectory, plan.step.policy)
        member.staleness = max(0, plan.step.policy_version - 1 - version) if version is not None else 0
        group.members[trajectory.sample_index] = member
    return list(groups.values())


class ReplayWindows(Windows):
    """Stands where an algorithm expects windows: knows which members are to be trained, and notes which are."""

    def __init__(self, settings: WindowSettings, wanted: Iterable[At]) -> None:
        super().__init__(settings)
        self._wanted = set(wanted)
        self.order: list[At] = []

    def trainable(self, group: Group) -> list[Member]:
        """The members that the step has trained."""
        return [member for member in group.in_order() if member.at in self._wanted]

    def train(self, members: Sequence[Member]) -> None:
        """Notes their order."""
        self.order += [member.at for member in members]

    def drop(self, member: Member, reason: str) -> None:
        """A sample that was trained is refused now.

        Raises:
            ReplayError: always.
        """
        raise ReplayError(
            f"the sample at {member.at} was trained, and is refused now as {reason}: other code, or other data"
        )

    def window(self, plan: Planned, places: Mapping[At, LogPosition]) -> Window:
        """The step's window, which has been trained again.

        Args:
            places: where the samples stand in the new run's triplets.

        Raises:
            ReplayError: other samples were trained, or in another order.
        """
        if self.order != list(plan.trained):
            raise ReplayError(
                f"step {plan.step.step}: {len(self.order)} samples in another order than {len(plan.trained)}"
            )
        dropped = [
            Dropped(reason=d.reason, samples=[places[at] for at in _places(d.samples) if at in places])
            for d in plan.step.window.dropped
        ]
        return Window(
            samples=[places[at] for at in self.order],
            dropped=[d for d in dropped if d.samples],
            group_ids=plan.step.window.group_ids,
        )


class OfflineWindows(Windows):
    """The same groups with other rewards or triplets: who is trained is decided anew, by the same rules."""

    def __init__(self, settings: WindowSettings) -> None:
        super().__init__(settings)
        self._order: list[At] = []
        self._refused: dict[At, str] = {}

    def sift(self, groups: Iterable[Group]) -> list[Group]:
        """The groups that are trained; whoever cannot be is decided."""
        kept: list[Group] = []
        for group in groups:
            reason = self._idle(group)
            for member in group.in_order():
                why = reason or self._unfit(member)
                if why is not None:
                    self.drop(member, why)
            if reason is None:
                kept.append(group)
        return kept

    def trainable(self, group: Group) -> list[Member]:
        """The members that are not decided yet."""
        return [member for member in group.in_order() if member.at not in self._refused]

    def train(self, members: Sequence[Member]) -> None:
        """Notes their order."""
        self._order += [member.at for member in members]

    def drop(self, member: Member, reason: str) -> None:
        """This one is not trained."""
        self._refused[member.at] = reason

    @property
    def reasons(self) -> Counter[str]:
        """How many are not trained, by reason."""
        return Counter(self._refused.values())

    def window(self, plan: Planned, places: Mapping[At, LogPosition]) -> Window:
        """What was decided, as positions in the new run's triplets."""
        by_reason: dict[str, list[LogPosition]] = {}
        for at, reason in self._refused.items():
            by_reason.setdefault(reason, []).append(places[at])
        return Window(
            samples=[places[at] for at in self._order],
            dropped=[Dropped(reason=reason, samples=by_reason[reason]) for reason in sorted(by_reason)],
            group_ids=plan.step.window.group_ids,
        )
