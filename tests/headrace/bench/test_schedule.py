"""When the store benchmark asks for tasks, and the best time that its sleeps allow."""

from dataclasses import replace

import pytest

from headrace.bench.scenarios import FINAL_REWARD, SCENARIOS, Mode, Scenario, work_of
from headrace.bench.schedule import done_until_next, ideal_seconds, tasks_to_ask


def scenario(mode: Mode, **changes: int) -> Scenario:
    base = Scenario(name="s", mode=mode, tasks=20, batch=8, slots=4, max_rounds=3, sleep=0.1, published={})
    return replace(base, **changes)


@pytest.mark.parametrize(
    ("one", "asked", "done", "more"),
    [
        (scenario(Mode.batch), 0, 0, 8),
        (scenario(Mode.batch), 8, 7, 0),
        (scenario(Mode.batch), 16, 16, 4),
        (scenario(Mode.batch_partial, remaining=3), 8, 5, 0),
        (scenario(Mode.batch_partial, remaining=3), 8, 6, 8),
        (scenario(Mode.single, in_flight=5), 0, 0, 5),
        (scenario(Mode.single, in_flight=5), 18, 15, 2),
    ],
)
def test_tasks_are_asked_for_as_the_mode_says(one: Scenario, asked: int, done: int, more: int) -> None:
    assert tasks_to_ask(one, asked, done) == more


@pytest.mark.parametrize("mode", list(Mode))
def test_the_next_tasks_are_asked_for_at_just_that_number_done(mode: Mode) -> None:
    one = scenario(mode, remaining=3, in_flight=5)
    asked = tasks_to_ask(one, 0, 0)
    while asked < one.tasks:
        due = done_until_next(one, asked)
        assert tasks_to_ask(one, asked, due - 1) == 0
        more = tasks_to_ask(one, asked, due)
        assert more > 0
        asked += more
    assert done_until_next(one, asked) == one.tasks


@pytest.mark.parametrize("mode", list(Mode))
def test_one_slot_sleeps_all_the_time(mode: Mode) -> None:
    one = scenario(mode, slots=1, remaining=3, in_flight=5)
    work = [work_of(one.task(n), one.max_rounds, one.sleep).seconds for n in range(one.tasks)]
    assert ideal_seconds(one) == pytest.approx(sum(work))


def test_a_batch_waits_for_its_longest() -> None:
    one = scenario(Mode.batch, slots=8)
    work = [work_of(one.task(n), one.max_rounds, one.sleep).seconds for n in range(one.tasks)]
    assert ideal_seconds(one) == pytest.approx(max(work[:8]) + max(work[8:16]) + max(work[16:]))


def test_a_task_always_has_the_same_work() -> None:
    work = work_of("minimal-task-1", 6, 0.5)
    assert work == work_of("minimal-task-1", 6, 0.5)
    assert 1 <= len(work.rewards) <= 6
    assert len(work.sleeps) == 2 * len(work.rewards) + 1
    assert 0 <= work.told < len(work.rewards)
    assert FINAL_REWARD[0] <= work.final_reward <= FINAL_REWARD[1]


def test_ceilings_are_those_of_the_published_table() -> None:
    ceilings = {name: round(one.ceiling) for name, one in SCENARIOS.items()}
    assert ceilings == {
        "minimal": 16,
        "medium": 167,
        "mid-high": 750,
        "large": 4000,
        "long-queue": 853,
        "high-concurrency": 1280,
        "heavy": 47,
    }
