"""The plan of a run: a pure function of its seed, and one that leaves the pipeline a chance."""

import pytest

from tests.chaos.plan import (
    STOPPED_AT_ONCE,
    WEIGHTS,
    Op,
    PlanSettings,
    all_members,
    first_members,
    part_of,
    plan,
)
from tests.chaos.tasks import KINDS, batch, cancels

SEEDS = range(5)


def settings(seed: int, kills: int = 300) -> PlanSettings:
    return PlanSettings(seed=seed, kills=kills, gap=4.0, short=10.0, long=40.0)


def test_a_seed_gives_one_plan() -> None:
    assert plan(settings(1)) == plan(settings(1))
    assert plan(settings(1)) != plan(settings(2))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_kills_as_often_as_it_is_told_and_every_part(seed: int) -> None:
    ops = plan(settings(seed))
    killed = [part_of(name) for _, what, name in ops if what == "kill"]
    assert len(killed) == 300
    assert set(killed) == set(WEIGHTS)
    assert {"runner", "lifecycle", "assembler"} < {part_of(name) for _, what, name in ops if what == "stop"}
    assert ops == sorted(ops)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_a_member_that_runs_is_disturbed_and_all_run_at_the_end(seed: int) -> None:
    state = dict.fromkeys(all_members(tuple(WEIGHTS)), "away") | dict.fromkeys(first_members(tuple(WEIGHTS)), "runs")
    for op in plan(settings(seed)):
        _step(state, op)
        assert sum(s == "stopped" for s in state.values()) <= STOPPED_AT_ONCE
    assert set(state.values()) <= {"runs", "away"}
    assert all(state[name] == "runs" for name in first_members(tuple(WEIGHTS)) if name.endswith("-1"))


def _step(state: dict[str, str], op: Op) -> None:
    _, what, name = op
    before, after = {
        "kill": (("runs",), "killed"),
        "start": (("killed", "away"), "runs"),
        "stop": (("runs",), "stopped"),
        "wake": (("stopped",), "runs"),
        "leave": (("runs",), "away"),
    }[what]
    assert state[name] in before, op
    state[name] = after


def test_stops_are_short_or_outlive_a_lease() -> None:
    ops = plan(settings(1))
    stopped = {name: at for at, what, name in ops if what == "stop"}
    assert stopped
    spans: set[float] = set()
    since: dict[str, float] = {}
    for at, what, name in ops:
        if what == "stop":
            since[name] = at
        elif what == "wake":
            spans.add(round(at - since.pop(name), 1))
    assert spans == {10.0, 40.0}


def test_tasks_are_a_function_of_the_seed_and_of_all_kinds() -> None:
    assert batch(1, 3, 6, 30.0) == batch(1, 3, 6, 30.0)
    lines = [line for number in range(60) for line in batch(1, number, 6, 30.0)]
    assert {line["input"]["kind"] for line in lines} == set(KINDS)
    assert len({line["rollout_id"] for line in lines}) == len(lines) == 60 * 6 * 4
    asked = [rollout_id for number in range(60) for _, rollout_id in cancels(1, number, batch(1, number, 6, 30.0))]
    assert set(asked) == {x["rollout_id"] for x in lines if x["input"]["kind"] in ("cancelled", "withdrawn")}
