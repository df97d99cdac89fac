"""The training topic against triplets and resources: each record decided once, none left out, no version twice."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from tests.chaos.entries import Entry, Log, Place, Violation

SHOWN = 10


@dataclass
class Training:
    """What the steps of all runs say.

    Attributes:
        trained: samples.
        dropped: records that were decided without being trained, by reason.
    """

    trained: int = 0
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    violations: list[Violation] = field(default_factory=list[Violation])


def check_training(log: Log) -> Training:
    """Checks every run's steps; a record has to be decided once by each run."""
    result = Training()
    runs: dict[str, list[Entry]] = {}
    for entry in log.training:
        if entry["window"] is not None:  # a manifest has none
            runs.setdefault(entry.key, []).append(entry)
    records = {e.place: e for e in log.triplets}
    for run, steps in sorted(runs.items()):
        _check_decisions(run, steps, records, result)
        _check_positions(run, steps, records, result)
    if not runs:
        result.violations += [Violation("undecided", str(e["rollout_id"]), "no step at all") for e in log.triplets]
    _check_versions(log, runs, result)
    return result


def decided_by(step: Entry) -> list[tuple[Place, str]]:
    """The records that a step decides, with `trained` or the reason of their drop."""
    window: dict[str, Any] = step["window"]
    found = [(_place(p), "trained") for p in window["samples"]]
    found += [(_place(p), str(d["reason"])) for d in window["dropped"] for p in d["samples"]]
    return found


def covered(position: dict[str, Any]) -> list[tuple[int, int]]:
    """The finished offsets of a partition as runs (first, last), in their order; the first begins at 0."""
    runs = [(0, int(position["next"]) - 1)]
    runs += [(int(r["first"]), int(r["last"])) for r in position["finished"]]
    return runs


def _place(position: dict[str, Any]) -> Place:
    return int(position["partition"]), int(position["offset"])


def _check_decisions(run: str, steps: Iterable[Entry], records: dict[Place, Entry], result: Training) -> None:
    times = Counter[Place]()
    trained = Counter[str]()
    for step in steps:
        for place, how in decided_by(step):
            times[place] += 1
            if how == "trained":
                result.trained += 1
            else:
                result.dropped[how] = result.dropped.get(how, 0) + 1
            record = records.get(place)
            if record is None:
                name = f"{place[0]}:{place[1]}"
                result.violations.append(Violation("decided_nothing", name, f"{run}: no such record, {how}"))
            elif how == "trained":
                trained[str(record["rollout_id"])] += 1
    for place, entry in records.items():
        rollout_id, where = str(entry["rollout_id"]), f"{run}: {place[0]}:{place[1]}"
        if times[place] == 0:
            result.violations.append(Violation("undecided", rollout_id, where))
        elif times[place] > 1:
            result.violations.append(Violation("decided_twice", rollout_id, where))
    result.violations += [Violation("trained_twice", i, f"{run}: {n} times") for i, n in trained.items() if n > 1]


@dataclass
class _Partition:
    """What of a partition is decided so far."""

    offsets: list[int] = field(default_factory=list[int])  # of its records, sorted
    decided: set[int] = field(default_factory=set[int])
    beyond: set[int] = field(default_factory=set[int])  # decided offsets that `next` has not passed
    next: int = 0

    def count(self, runs: list[tuple[int, int]]) -> int:
        """How many records stand in runs of offsets."""
        return sum(bisect_right(self.offsets, last) - bisect_left(self.offsets, first) for first, last in runs)


def _check_positions(run: str, steps: Iterable[Entry], records: dict[Place, Entry], result: Training) -> None:
    """After every step the finished offsets are exactly those of the records that were decided up to it."""
    partitions: dict[int, _Partition] = {}
    for partition, offset in sorted(records):
        partitions.setdefault(partition, _Partition()).offsets.append(offset)
    for step in steps:
        for place, _ in decided_by(step):
            partition = partitions.setdefault(place[0], _Partition())
            partition.beyond.add(place[1])
            if place in records:
                partition.decided.add(place[1])
        name = f"{run} step {step['step']} at offset {step.offset}"
        positions: list[dict[str, Any]] = step["window"]["position"]
        for position in positions:
            number = int(position["partition"])
            found = _check_position(position, partitions.setdefault(number, _Partition()))
            result.violations += [Violation(kind, name, f"partition {number}: {detail}") for kind, detail in found]
        unnamed = {n for n, p in partitions.items() if p.decided} - {int(p["partition"]) for p in positions}
        if unnamed:
            result.violations.append(Violation("window_gap", name, f"no position of partitions {sorted(unnamed)}"))


def _check_position(position: dict[str, Any], partition: _Partition) -> Iterator[tuple[str, str]]:
    following = int(position["next"])
    runs = covered(position)
    if following < partition.next:
        yield "window_back", f"next {following} < {partition.next}"
    partition.next = following
    if any(late[0] <= early[1] + 1 for early, late in pairwise(runs)):
        yield "window_overlap", str(runs)
    partition.beyond = {o for o in partition.beyond if o >= following}
    unfinished = [o for o in partition.beyond if not any(first <= o <= last for first, last in runs)]
    if unfinished:
        yield "not_finished", f"in a window, but not finished: {sorted(unfinished)[:SHOWN]}"
    # Against all that the topic has: what a position covers and nobody decided is left out.
    if partition.count(runs) + len(unfinished) > len(partition.decided):
        finished = {o for o in partition.offsets if any(first <= o <= last for first, last in runs)}
        yield "window_gap", f"finished, but in no window: {sorted(finished - partition.decided)[:SHOWN]}"


def _check_versions(log: Log, runs: dict[str, list[Entry]], result: Training) -> None:
    published = Counter[tuple[str, int]]()
    by_step = Counter[tuple[str, int, int]]()
    for entry in log.resources:
        for resource in cast(dict[str, dict[str, Any]], entry["resources"] or {}).values():
            if "weights_id" in resource:
                published[(str(resource["policy"]), int(resource["version"]))] += 1
                if entry["run_id"] is not None and entry["step"]:
                    by_step[(str(entry["run_id"]), int(entry["step"]), int(resource["version"]))] += 1
    result.violations += [
        Violation("version_twice", f"{policy} v{version}", f"{n} times")
        for (policy, version), n in published.items()
        if n > 1
    ]
    trained = Counter(
        (run, int(s["step"]), int(s["policy_version"])) for run, steps in runs.items() for s in steps if s["state"]
    )
    numbers = Counter((run, step) for run, step, _ in trained.elements())
    result.violations += [
        Violation("step_twice", f"{run} step {step}", f"{n} times") for (run, step), n in numbers.items() if n > 1
    ]
    for (run, step, version), n in trained.items():
        if not by_step[(run, step, version)]:
            result.violations.append(Violation("step_without_weights", f"{run} step {step}", f"version {version}, {n}"))
    for run, step, version in by_step:
        if not trained[(run, step, version)]:
            result.violations.append(Violation("weights_without_step", f"{run} step {step}", f"version {version}"))
