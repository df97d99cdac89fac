"""Every violation planted in hand-made topics is found, and a clean log has none."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.build import RUN, Builder, changed, good, without
from tests.chaos.checker import KINDS, check
from tests.chaos.entries import Disturbance, Entry, Log

CHECKER = ("checker", "starts", "windows", "contents", "entries", "recovery", "topics")
VIEW = [("a", "succeeded"), ("b", "succeeded"), ("c", "cancelled")]


def kinds(log: Log, **more: object) -> set[str]:
    return {v.kind for v in check(log, **more).violations}  # type: ignore[arg-type]


def test_a_clean_log_has_no_violations() -> None:
    report = check(good().log, view=VIEW, asked="abc")
    assert report.violations == []
    assert (report.tasks, report.lost, report.doubled, report.started_twice) == (3, 0, 0, 0)
    assert report.statuses == {"succeeded": 2, "cancelled": 1}
    assert (report.trained, report.dropped) == (2, {"no_reward": 1})


def _window(entry: Entry, **changes: object) -> dict[str, object]:
    return {**entry["window"], **changes}


def _another(topic: str, index: int) -> Callable[[], Log]:
    """The same record once more, behind the others."""

    def plant() -> Log:
        b = good()
        entry: Entry = getattr(b.log, topic)[index]
        b.add(topic, entry.key, dict(entry.value or {}), partition=entry.partition)
        return b.log

    return plant


def _position(step: int, **position: object) -> Callable[[], Log]:
    def plant() -> Log:
        log = good().log
        entry = log.training[step]
        return changed(log, "training", step, window=_window(entry, position=[{"partition": 0, **position}]))

    return plant


def _samples(step: int, *offsets: int) -> Callable[[], Log]:
    def plant() -> Log:
        log = good().log
        samples = [{"partition": 0, "offset": o} for o in offsets]
        return changed(log, "training", step, window=_window(log.training[step], samples=samples))

    return plant


def _built(*calls: Callable[[Builder], object]) -> Callable[[], Log]:
    def plant() -> Log:
        b = good()
        for call in calls:
            call(b)
        return b.log

    return plant


PLANTS: list[tuple[str, Callable[[], Log]]] = [
    ("no_state", lambda: Log(**{**vars(good().log), "rollouts": good().log.rollouts[:2] + good().log.rollouts[3:4]})),
    ("not_terminal", lambda: without(good().log, "rollouts", 3)),
    ("no_final_end", lambda: changed(good().log, "attempts", 4, final=False)),
    ("no_final_end", lambda: changed(good().log, "attempts", 4, type="heartbeat")),
    ("state_differs", lambda: changed(good().log, "attempts", 4, type="failed")),
    ("state_differs", lambda: changed(good().log, "rollouts", -1, status="failed")),
    # The end of the lost delivery would have counted without its `lost`.
    ("other_attempt", lambda: without(good().log, "attempts", 5)),
    ("two_terminal_states", _built(lambda b: b.state("a", "failed"))),
    ("state_after_end", _built(lambda b: b.state("a", "running"), lambda b: b.state("a", "succeeded"))),
    ("wrong_partition", _built(lambda b: b.add("tasks", "a", {"rollout_id": "a"}, partition=2))),
    ("no_trajectory", lambda: without(good().log, "triplets", 0)),
    ("no_trajectory", lambda: changed(good().log, "triplets", 0, revision=1)),
    ("trajectory_twice", _another("triplets", 0)),
    ("revision_gap", _built(lambda b: b.trajectory("a", "a-1", revision=2))),
    ("other_attempt", lambda: changed(good().log, "triplets", 1, attempt_id="b-1")),
    ("unknown_rollout", _built(lambda b: b.trajectory("z", "z-1"))),
    ("left_out", lambda: changed(good().log, "triplets", 0, diagnostics={"calls": 0})),
    ("left_out", lambda: changed(good().log, "triplets", 1, final_reward=None)),
    ("undecided", lambda: without(good().log, "training", 2)),
    ("undecided", lambda: without(without(without(good().log, "training", 2), "training", 1), "training", 0)),
    ("undecided", _built(lambda b: b.trajectory("a", "a-1", revision=1))),
    ("decided_twice", _samples(2, 0, 2, 4)),
    ("decided_nothing", _samples(2, 0, 2, 77)),
    ("trained_twice", _samples(2, 0, 0, 2)),
    ("trained_twice", lambda: changed(good().log, "triplets", 1, rollout_id="a")),
    ("window_gap", _samples(2, 0)),
    ("not_finished", _position(2, next=0, finished=[{"first": 2, "last": 5}])),
    ("window_gap", lambda: changed(good().log, "training", 2, window=_window(good().log.training[2], position=[]))),
    ("window_gap", _position(1, next=1, finished=[{"first": 3, "last": 5}])),
    ("window_overlap", _position(2, next=6, finished=[{"first": 5, "last": 7}])),
    ("window_overlap", _position(2, next=2, finished=[{"first": 2, "last": 5}])),
    ("not_finished", _position(2, next=1, finished=[{"first": 3, "last": 5}])),
    ("window_back", _built(lambda b: b.step(1, [], next=5, trained=False))),
    ("version_twice", _built(lambda b: b.weights(1, step=0))),
    ("step_twice", _another("training", 2)),
    ("step_without_weights", lambda: without(good().log, "resources", 1)),
    ("weights_without_step", _built(lambda b: b.weights(2))),
    ("started_twice", _built(lambda b: b.event("a", "started", "a-2", attempt=2))),
]


@pytest.mark.parametrize(("kind", "plant"), PLANTS, ids=[f"{i}-{kind}" for i, (kind, _) in enumerate(PLANTS)])
def test_a_planted_violation_is_found(kind: str, plant: Callable[[], Log]) -> None:
    assert kind in kinds(plant())


def test_a_view_that_differs_is_found() -> None:
    log = good().log
    assert kinds(log, view=VIEW[1:]) == {"not_in_view"}
    assert kinds(log, view=[*VIEW, VIEW[0]]) == {"view_twice"}
    assert kinds(log, view=[("a", "running"), *VIEW[1:]]) == {"view_differs"}


def test_a_task_that_was_asked_for_and_is_not_there_is_lost() -> None:
    report = check(good().log, asked="abcd")
    assert [(v.kind, v.id) for v in report.violations] == [("no_task", "d")]
    assert report.lost == 1


def test_every_kind_has_a_plant() -> None:
    by_arguments = {"no_task", "not_in_view", "view_twice", "view_differs"}
    assert {kind for kind, _ in PLANTS} | by_arguments == KINDS


def _beside() -> Log:
    """b's second delivery starts before its first was lost."""
    b = Builder()
    b.add("tasks", "b", {"rollout_id": "b"})
    b.event("b", "started", "b-1", worker_id="runner-1")
    b.event("b", "started", "b-1.2", delivery=2, worker_id="runner-2")
    b.event("b", "lost", "b-1")
    b.event("b", "succeeded", "b-1.2", final=True)
    return b.log


def _repeated() -> Log:
    b = Builder()
    b.add("tasks", "b", {"rollout_id": "b"})
    b.event("b", "started", "b-1", worker_id="runner-1")
    b.event("b", "started", "b-1", worker_id="runner-2")
    b.event("b", "succeeded", "b-1", final=True)
    return b.log


@pytest.mark.parametrize("plant", [_beside, _repeated])
@pytest.mark.parametrize(
    ("disturbances", "unexplained"),
    [
        ([], True),
        ([Disturbance("kill", "runner-3", 1_000, 1_030)], True),
        ([Disturbance("kill", "runner-2", 2_000, 2_500)], True),
        ([Disturbance("stop", "runner-2", 900, 1_025)], False),
        ([Disturbance("kill", "runner-1", 1_000, 1_001)], False),
        ([Disturbance("kill", "broker-1", 1_000, 1_001)], False),
    ],
)
def test_only_a_disturbed_worker_explains_a_second_start(
    plant: Callable[[], Log], disturbances: list[Disturbance], unexplained: bool
) -> None:
    report = check(plant(), disturbances)
    assert report.started_twice == 1
    assert ("started_twice" in {v.kind for v in report.violations}) is unexplained


def test_a_start_after_its_own_attempts_end_is_a_second_start() -> None:
    b = good()
    b.event("a", "started", "a-1")
    assert check(b.log).started_twice == 1


def test_lost_and_doubled_count_ids() -> None:
    log = without(without(good().log, "triplets", 0), "rollouts", 3)
    report = check(log)
    assert {v.id for v in report.violations if v.kind in ("no_trajectory", "not_terminal")} == {"a"}
    assert report.lost == 1
    assert check(_another("triplets", 0)()).doubled == 1


def test_drops_before_the_first_step_of_another_run_are_that_runs_own() -> None:
    b = good()
    first, second, third = b.log.triplets
    window: dict[str, Any] = {
        "position": [{"partition": 0, "next": 6, "finished": []}],
        "samples": [],
        "dropped": [
            {"reason": "other_run", "samples": [{"partition": 0, "offset": e.offset} for e in (first, second)]}
        ],
    }
    b.add("training", "other", {"step": 0, "policy_version": 0, "window": window, "state": None}, partition=0)
    found = [(v.kind, v.id) for v in check(b.log).violations]
    assert ("undecided", "c") in found
    assert ("window_gap", f"other step 0 at offset {b.log.training[-1].offset}") in found
    assert not [v for v in found if v[1].startswith(RUN)]
    assert third.offset == 4


@pytest.mark.parametrize("name", CHECKER)
def test_the_checker_imports_nothing_of_the_pipeline(name: str) -> None:
    tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
    modules = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {m for m in modules if m.split(".")[0] == "headrace"}
    assert {m for m in modules if m.startswith("tests")} <= {f"tests.chaos.{other}" for other in CHECKER}
