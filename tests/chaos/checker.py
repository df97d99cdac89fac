"""Checks a drained pipeline from its topics: nothing lost, nothing twice. Pure, without imports of the pipeline.

The rules are those of the documents, written anew: an end of an attempt counts if it is the first of its attempt (or
names none) and its rollout is open; the first that counts and is final closes the rollout.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.contents import check_contents
from tests.chaos.entries import Disturbance, Entry, Log, Violation, by_key
from tests.chaos.starts import RolloutRead, Twice, read_rollout
from tests.chaos.windows import check_training

TERMINAL = ("succeeded", "failed", "cancelled")
LOST = frozenset(
    {
        "no_task",
        "no_state",
        "not_terminal",
        "no_final_end",
        "no_trajectory",
        "undecided",
        "window_gap",
        "left_out",
        "not_in_view",
    }
)
DOUBLED = frozenset(
    {
        "two_terminal_states",
        "trajectory_twice",
        "decided_twice",
        "trained_twice",
        "version_twice",
        "step_twice",
        "view_twice",
    }
)
WRONG = frozenset(
    {
        "state_differs",
        "view_differs",
        "state_after_end",
        "wrong_partition",
        "other_attempt",
        "revision_gap",
        "decided_nothing",
        "unknown_rollout",
        "not_finished",
        "window_overlap",
        "window_back",
        "step_without_weights",
        "weights_without_step",
        "started_twice",
    }
)
KINDS = LOST | DOUBLED | WRONG
UNCERTAIN_MS = 10_000
"""A start may have been on its way for so long before it reached the log."""


@dataclass
class Report:
    """What the topics say."""

    tasks: int = 0
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    trained: int = 0
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    started_twice: int = 0
    violations: list[Violation] = field(default_factory=list[Violation])

    @property
    def lost(self) -> int:
        """How many ids something is missing of."""
        return len({v.id for v in self.violations if v.kind in LOST})

    @property
    def doubled(self) -> int:
        """How many ids something is there twice of."""
        return len({v.id for v in self.violations if v.kind in DOUBLED})


def check(
    log: Log,
    disturbances: Sequence[Disturbance] = (),
    view: Iterable[tuple[str, str]] | None = None,
    asked: Iterable[str] = (),
) -> Report:
    """All checks.

    Args:
        disturbances: what was done to the processes: the only excuse for a second start.
        view: (rollout_id, status) rows of the view; None where there is none.
        asked: rollouts whose producer was told that their tasks are there.
    """
    report = Report()
    tasks = by_key(log.tasks)
    attempts = by_key(log.attempts)
    states = by_key(log.rollouts)
    report.tasks = len(tasks)
    report.violations += [Violation("no_task", rollout_id) for rollout_id in asked if rollout_id not in tasks]
    rollouts = {rollout_id: read_rollout(attempts.get(rollout_id, [])) for rollout_id in {*tasks, *states, *attempts}}
    for rollout_id, read in rollouts.items():
        report.violations += _partitions(rollout_id, tasks, attempts, states)
        report.violations += _states(rollout_id, read, states.get(rollout_id, []), report)
        for twice in read.twice:
            report.started_twice += 1
            if not explained(twice, disturbances):
                report.violations.append(Violation("started_twice", rollout_id, twice.detail))
    report.violations += _trajectories(log, rollouts)
    report.violations += check_contents(log, rollouts)
    training = check_training(log)
    report.trained, report.dropped = training.trained, training.dropped
    report.violations += training.violations
    if view is not None:
        report.violations += _view(view, states)
    return report


def explained(twice: Twice, disturbances: Sequence[Disturbance]) -> bool:
    """Whether one of the two workers, or the broker, was killed or stopped meanwhile."""
    since, until = twice.first.at - UNCERTAIN_MS, twice.second.at
    names = {twice.first["worker_id"], twice.second["worker_id"]}
    return any((d.name in names or d.part == "broker") and d.since <= until and d.until >= since for d in disturbances)


def _partitions(rollout_id: str, *topics: Mapping[str, list[Entry]]) -> list[Violation]:
    partitions = {e.partition for topic in topics for e in topic.get(rollout_id, [])}
    if len(partitions) > 1:
        return [Violation("wrong_partition", rollout_id, f"stands in partitions {sorted(partitions)}")]
    return []


def _states(rollout_id: str, read: RolloutRead, states: list[Entry], report: Report) -> list[Violation]:
    found: list[Violation] = []
    if read.status is None:
        found.append(Violation("no_final_end", rollout_id, f"attempts: {read.summary}"))
    if not states:
        return [*found, Violation("no_state", rollout_id)]
    last = str(states[-1]["status"])
    report.statuses[last] = report.statuses.get(last, 0) + 1
    if last not in TERMINAL:
        return [*found, Violation("not_terminal", rollout_id, f"is {last}; attempts: {read.summary}")]
    terminal = [str(e["status"]) for e in states if e["status"] in TERMINAL]
    if len(set(terminal)) > 1:
        found.append(Violation("two_terminal_states", rollout_id, ", ".join(terminal)))
    ended = [e["status"] in TERMINAL for e in states]
    if not all(ended[ended.index(True) :]):
        found.append(Violation("state_after_end", rollout_id, ", ".join(str(e["status"]) for e in states)))
    if read.status is not None and read.status != last:
        found.append(Violation("state_differs", rollout_id, f"rollouts: {last}; attempts: {read.status}"))
    return found


def _trajectories(log: Log, rollouts: Mapping[str, RolloutRead]) -> list[Violation]:
    found: list[Violation] = []
    trajectories: dict[str, list[Entry]] = {}
    for entry in log.triplets:
        trajectories.setdefault(str(entry["rollout_id"]), []).append(entry)
    for rollout_id, read in rollouts.items():
        revisions = sorted(int(e["revision"]) for e in trajectories.get(rollout_id, []))
        first = revisions.count(0)
        if first == 0:
            found.append(Violation("no_trajectory", rollout_id, f"revisions {revisions}; attempts: {read.summary}"))
        elif first > 1:
            places = ", ".join(f"{e.partition}:{e.offset}" for e in trajectories[rollout_id])
            found.append(Violation("trajectory_twice", rollout_id, places))
        elif revisions != list(range(len(revisions))):
            found.append(Violation("revision_gap", rollout_id, str(revisions)))
        found += [
            Violation("other_attempt", rollout_id, f"of {entry['attempt_id']}, should be of {read.chosen}")
            for entry in trajectories.get(rollout_id, [])
            if read.status is not None and entry["attempt_id"] != read.chosen
        ]
    found += [
        Violation("unknown_rollout", rollout_id, "a trajectory of a rollout without a task or an event")
        for rollout_id in trajectories.keys() - rollouts.keys()
    ]
    return found


def _view(view: Iterable[tuple[str, str]], states: Mapping[str, list[Entry]]) -> list[Violation]:
    found: list[Violation] = []
    rows: dict[str, str] = {}
    for rollout_id, status in view:
        if rollout_id in rows:
            found.append(Violation("view_twice", rollout_id))
        rows[rollout_id] = status
    for rollout_id, entries in states.items():
        last = str(entries[-1]["status"])
        if rollout_id not in rows:
            found.append(Violation("not_in_view", rollout_id))
        elif rows[rollout_id] != last:
            found.append(Violation("view_differs", rollout_id, f"view: {rows[rollout_id]}; rollouts: {last}"))
    return found
