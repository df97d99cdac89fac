"""Tasks of specs, the run's budget and the order of epochs: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.records import RunManifest, TaskConfig, TrainingStep, Window
from headrace.streams.errors import SettingsError
from headrace.streams.producing.budget import Bound, RunBudget, bound_of
from headrace.streams.producing.specs import TaskFieldError, TaskSpec, check, json_text, tasks_of


def step(decided: int, run_id: str = "run", **metrics: float) -> TrainingStep:
    window = Window()
    return TrainingStep(
        run_id=run_id,
        step=1,
        policy="p",
        policy_version=1,
        window=window,
        decided=decided,
        metrics=metrics,
        started_at=0,
        ended_at=0,
    )


def test_a_single_task_belongs_to_no_group() -> None:
    (task,) = tasks_of([TaskSpec(input="1")], lambda: 7, mode="val", run_id="run")
    assert (task.group_id, task.group_size, task.sample_index) == (None, 1, 0)
    assert (task.mode, task.run_id, task.enqueued_at, task.attempt) == ("val", "run", 7, 1)


def test_specs_that_share_a_group_are_numbered_in_their_order() -> None:
    specs = [TaskSpec(input=str(n), group_id="g" if n != 1 else None) for n in range(3)]
    tasks = list(tasks_of(specs, lambda: 0, group_size=2))
    assert [(t.input, t.sample_index, t.group_size) for t in tasks if t.group_id == "g"] == [
        ("0", 0, 4),
        ("0", 1, 4),
        ("2", 2, 4),
        ("2", 3, 4),
    ]
    alone = [t for t in tasks if t.group_id != "g"]
    assert [(t.sample_index, t.group_size) for t in alone] == [(0, 2), (1, 2)]
    assert len({t.rollout_id for t in tasks}) == 6


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (TaskSpec(input="1", rollout_id=""), "rollout_id"),
        (TaskSpec(input="1", rollout_id="a~2"), "rollout_id"),
        (TaskSpec(input="1", rollout_id="a\nb"), "rollout_id"),
        (TaskSpec(input="1", group_id="g" * 600), "group_id"),
        (TaskSpec(input="1", group_id=""), "group_id"),
        (TaskSpec(input="1", mode="training"), "mode"),
        (TaskSpec(input="1", config=TaskConfig(timeout_seconds=0)), "config.timeout_seconds"),
        (TaskSpec(input="1", config=TaskConfig(unresponsive_seconds=float("inf"))), "config.unresponsive_seconds"),
        (TaskSpec(input="1", config=TaskConfig(max_attempts=0)), "config.max_attempts"),
        (TaskSpec(input="1", config=TaskConfig(retry_condition=["lost"])), "config.retry_condition"),
    ],
)
def test_the_field_at_fault_is_named(spec: TaskSpec, field: str) -> None:
    with pytest.raises(TaskFieldError) as error:
        check(spec)
    assert error.value.field == field


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), {"a": b"x"}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(TaskFieldError, match="input"):
        json_text(value)


def test_budget_counts_each_rollout_once_and_only_its_own_run() -> None:
    budget = RunBudget("run")
    budget.pass_over("other's", 1)
    for rollout_id in ("a", "b", "b", "c"):
        budget.add(rollout_id, 1)
    assert budget.knows(b"other's")
    assert budget.knows(b"a")
    assert not budget.knows(b"d")
    budget.decide(step(2))
    budget.decide(step(1))  # an older one, read again
    budget.decide(step(9, "other"))
    assert (budget.rollouts, budget.decided, budget.undecided, budget.finished) == (3, 2, 1, False)
    bound = Bound(window=4, max_staleness=1)
    assert bound.rollouts == 8
    assert [budget.groups(bound, size) for size in (1, 3, 7, 8)] == [7, 2, 1, 0]
    budget.decide(step(2, goal_reached=1.0))
    assert budget.finished
    steps_done = RunBudget("run")
    steps_done.decide(step(2, **{"run/finished": 1.0}))
    assert steps_done.finished
    for n in range(20):
        budget.add(str(n), 1)
    assert budget.groups(bound, 1) == 0


@given(st.integers(1, 20), st.integers(0, 5), st.lists(st.integers(0, 30), max_size=30))
def test_never_more_undecided_than_the_bound(window: int, staleness: int, decisions: list[int]) -> None:
    bound, budget, made, decided = Bound(window, staleness), RunBudget("run"), 0, 0
    for more in decisions:
        for _ in range(budget.groups(bound, 3) * 3):
            made += 1
            budget.add(str(made), 1)
        assert budget.undecided <= bound.rollouts
        assert budget.undecided > bound.rollouts - 3
        decided = min(made, decided + more)
        budget.decide(step(decided))


def test_all_rollouts_are_counted_and_those_of_an_age_remembered() -> None:
    budget, hour, age = RunBudget("run"), 3_600_000, 24 * 3_600_000
    for n in range(200_000):
        budget.add(str(n), n * hour // 2_000)  # a hundred hours
        if n % 2_000 == 0:
            budget.forget(age)
    budget.forget(age)
    assert budget.rollouts == 200_000
    assert 48_000 <= budget.remembered <= 54_000
    budget.add("199999", 100 * hour)
    assert budget.rollouts == 200_000


def test_bound_of_a_manifest() -> None:
    def manifest(settings: str) -> RunManifest:
        return RunManifest(run_id="r", algorithm="grpo", policy="p", settings=settings, created_at=0)

    grouped = '{"window": {"groups": 10, "group_size": 16, "samples": null, "max_staleness": 3}}'
    assert bound_of(manifest(grouped), 4) == Bound(160, 3)
    assert bound_of(manifest(grouped.replace("16", "null")), 4) == Bound(40, 3)
    assert bound_of(manifest('{"window": {"groups": 10, "samples": 64, "max_staleness": 0}}'), 4) == Bound(64, 0)
    assert bound_of(manifest('{"lr": 1}'), 4) is None


def test_a_bound_that_makes_no_sense() -> None:
    for window, staleness in ((0, 1), (1, -1)):
        with pytest.raises(SettingsError):
            Bound(window, staleness)
