"""The windows of a run as its steps tell them: the same samples in the same order and groups. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from headrace.schemas.records import TrainingStep, Trajectory, Window
from headrace.streams.errors import HeadraceError
from headrace.trainers.groups import At, Group, GroupKey, Member, oldest_version
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings

OUTSIDE = frozenset(
    {
        "unreadable", "expired", "mode", "other_run", "wrong_policy", "run_finished", "no_group", "reward_not_finite",
        "external_not_accepted", "already_decided", "group_decided", "duplicate_sample", "superseded", "group_timeout",
    }
)  # fmt: skip
"""Reasons of samples that stood in no group of a window. The others were members, and count in the baseline."""


class ReplayError(HeadraceError):
    """The log does not give what a step was trained on."""


def trained_of(step: TrainingStep) -> list[At]:
    """The positions of a step's samples, in their order."""
    return [(p.partition, p.offset) for p in step.window.samples]


def beside(step: TrainingStep) -> list[At]:
    """The positions of what may have stood in the step's groups without being trained."""
    return [(p.partition, p.offset) for d in step.window.dropped if d.reason not in OUTSIDE for p in d.samples]


def groups_of(step: TrainingStep, records: Mapping[At, Trajectory]) -> list[Group]:
    """The groups of a step that have a trained member, in the order of the window.

    Args:
        records: by position, all of `trained_of` and of `beside`.
    """
    trained = trained_of(step)
    groups: dict[GroupKey, Group] = {}
    for at in [*trained, *beside(step)]:
        trajectory = records[at]
        key = at if trajectory.group_id is None else trajectory.group_id
        if key not in groups and at not in trained:
            continue  # its whole group was dropped
        group = groups.setdefault(key, Group(key, 0, 0))
        member = Member(at, trajectory)
        version = oldest_version(trajectory, step.policy)
        member.staleness = max(0, step.policy_version - 1 - version) if version is not None else 0
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


def repeated(step: TrainingStep, windows: ReplayWindows) -> Window:
    """The step's window, which has been trained again.

    Raises:
        ReplayError: other samples were trained, or in another order.
    """
    if windows.order != trained_of(step):
        raise ReplayError(
            f"step {step.step}: {len(windows.order)} samples in another order than {len(trained_of(step))}"
        )
    return step.window
