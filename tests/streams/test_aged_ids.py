"""Ids that are remembered for an age: what is kept of them, and what is forgotten."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, Task, TaskFacts
from headrace.streams import aged_ids
from headrace.streams.aged_ids import HOUR_MS, AgedIds
from headrace.streams.runner.dispatch.dispatcher import CAUGHT_UP_MS, Dispatcher
from headrace.streams.runner.dispatch.values import Happened, Start

P = 0
AGE = 3 * HOUR_MS


@pytest.fixture(autouse=True, scope="module")
def _merge_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aged_ids, "MERGE_AT", 4)
        yield


def test_ids_survive_the_merge() -> None:
    ids = AgedIds()
    ids.add_keys({f"r{i}".encode(): 0 for i in range(150)})
    for i in range(150, 420):
        ids.add(f"r{i}", 0)
    assert len(ids) == 420
    assert all(f"r{i}" in ids for i in range(420))
    assert not any(f"x{i}" in ids for i in range(420))


hours = st.integers(0, 12)
steps = st.lists(st.tuples(st.integers(0, 20) | st.none(), hours), max_size=60)


@given(steps)
def test_what_ended_in_an_hour_that_is_over_is_forgotten_and_nothing_else(steps: list[tuple[int | None, int]]) -> None:
    ids, expected = AgedIds(), dict[str, int]()
    for name, hour in steps:
        if name is None:
            ids.forget(hour * HOUR_MS + 1)
            expected = {n: at for n, at in expected.items() if at >= hour}
        else:
            ids.add(f"r{name}", hour * HOUR_MS + 17)
            expected[f"r{name}"] = max(hour, expected.get(f"r{name}", 0))
    assert {f"r{i}" for i in range(21) if f"r{i}" in ids} == expected.keys()
    ids.forget(13 * HOUR_MS)
    assert len(ids) == 0


def end_of(rollout_id: str) -> AttemptEvent:
    return AttemptEvent(
        rollout_id=rollout_id, attempt_id=f"{rollout_id}-1", type="succeeded", final=True, task=TaskFacts(), at=0
    )


minutes = st.integers(0, 200)
happenings = st.lists(
    st.tuples(st.sampled_from(["task", "task", "end", "external", "caught_up", "forget"]), st.integers(0, 9), minutes),
    max_size=80,
)


@given(happenings)
def test_a_repeated_task_starts_nothing_however_much_is_forgotten(happenings: list[tuple[str, int, int]]) -> None:
    dispatcher, now, offset, event_offset = Dispatcher(), 0, 0, 0
    dispatcher.assigned(P, 0, {}, [])
    ends: dict[str, int] = {}
    running: set[str] = set()
    for what, n, later in happenings:
        now += later * 60_000
        rollout_id = f"r{n}"
        if what == "task":
            dispatcher.fetched(P, offset, now, Task(rollout_id=rollout_id, input="1", enqueued_at=0))
            offset += 1
            start = dispatcher.take()
            repeats = rollout_id in running or now - ends.get(rollout_id, -AGE - 1) <= AGE
            if repeats:
                assert start is None
            if isinstance(start, Start):
                running.add(rollout_id)
        elif what == "caught_up":
            dispatcher.caught_up(P)
        elif what == "forget":
            dispatcher.forget_ended(AGE)
        elif (what == "end") == (rollout_id in running):  # of an external rollout there was no task
            dispatcher.read(Happened(P, event_offset, now, end_of(rollout_id)))
            event_offset += 1
            if what == "end":
                running.discard(rollout_id)
                ends[rollout_id] = now
            else:
                ends.setdefault(rollout_id, now)  # of two ends the first counts
    assert dispatcher.in_hand == len(running)


def test_months_of_work_take_the_memory_of_an_age() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, {}, [])
    for hour in range(2000):
        rollout_id = f"r{hour}"
        dispatcher.fetched(P, hour, hour * HOUR_MS, Task(rollout_id=rollout_id, input="1", enqueued_at=0))
        assert isinstance(dispatcher.take(), Start)
        dispatcher.read(Happened(P, hour, hour * HOUR_MS, end_of(rollout_id)))
        dispatcher.forget_ended(AGE)
    assert dispatcher.remembered == AGE // HOUR_MS + 1


def test_months_of_traffic_without_tasks_too() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, {}, [])
    for hour in range(500):
        dispatcher.read(Happened(P, hour, hour * HOUR_MS, end_of(f"r{hour}")))
        dispatcher.forget_ended(AGE)
    assert dispatcher.remembered == 500  # tasks that were not fetched yet may repeat any of them
    dispatcher.caught_up(P)
    dispatcher.forget_ended(AGE)
    assert dispatcher.remembered == (AGE + CAUGHT_UP_MS) // HOUR_MS + 2


def test_a_backlog_of_repeats_is_recognised_when_it_is_read_at_last() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, Task(rollout_id="a", input="1", enqueued_at=0))
    dispatcher.take()
    dispatcher.read(Happened(P, 0, 2 * AGE, end_of("a")))
    dispatcher.read(Happened(P, 1, 9 * AGE, end_of("b")))  # the log is far ahead of the tasks
    dispatcher.forget_ended(AGE)
    assert dispatcher.fetched(P, 1, 1, Task(rollout_id="a", input="1", enqueued_at=0)) is None
    assert dispatcher.take() is None
    assert dispatcher.repeated == 1
