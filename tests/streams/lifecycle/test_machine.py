"""The state machine of rollouts, over hand-written and generated histories."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, ErrorInfo, RolloutState, Task, TaskConfig, TaskFacts
from headrace.streams.codec import Codec
from headrace.streams.lifecycle.machine import (
    Change,
    Rollout,
    apply_event,
    apply_task,
    fold,
    from_facts,
    from_task,
    restored,
)
from headrace.streams.settings import load_settings

CODEC = Codec(load_settings())


def task(*, attempt: int = 1, max_attempts: int = 1, retry: tuple[str, ...] = ()) -> Task:
    config = TaskConfig(max_attempts=max_attempts, retry_condition=list(retry))
    return Task(rollout_id="ro", input='"q"', config=config, attempt=attempt, enqueued_at=5)


def event(type: str, attempt_id: str | None = "a1", *, attempt: int = 1, **more: object) -> AttemptEvent:
    if type == "started":
        more.setdefault("task", TaskFacts())
    return AttemptEvent(rollout_id="ro", attempt_id=attempt_id, attempt=attempt, type=type, at=0, **more)  # type: ignore[arg-type]


def run(rollout: Rollout, *events: AttemptEvent) -> list[Change]:
    """Applies events at offsets 0, 1, ... and append times 1000, 1001, ..."""
    return [apply_event(rollout, e, offset, 1000 + offset) for offset, e in enumerate(events)]


def statuses(*events: AttemptEvent, config: Task | None = None) -> list[str]:
    rollout = from_task(config or task(), 0, 10)
    seen = [rollout.state.status]
    for offset, e in enumerate(events):
        apply_event(rollout, e, offset, 1000 + offset)
        seen.append(rollout.state.status)
    return seen


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (["started", "heartbeat", "succeeded"], ["queuing", "preparing", "running", "succeeded"]),
        (["started", "activity", "failed"], ["queuing", "preparing", "running", "failed"]),
        (["started", "timeout"], ["queuing", "preparing", "failed"]),
        (["started", "cancelled"], ["queuing", "preparing", "cancelled"]),
        (["started", "succeeded", "failed"], ["queuing", "preparing", "succeeded", "succeeded"]),
        (["started", "heartbeat", "unresponsive", "heartbeat"], ["queuing", "preparing", *["running"] * 3]),
    ],
)
def test_plain_transitions(events: list[str], expected: list[str]):
    log = [event(e, final=e not in ("started", "heartbeat", "activity")) for e in events]
    assert statuses(*log) == expected


def test_an_ended_attempt_keeps_time_and_error():
    rollout = from_task(task(), 7, 10)
    run(rollout, event("started", worker_id="w"), event("failed", final=True, error=ErrorInfo(type="ValueError")))
    (attempt,) = rollout.state.attempts
    assert (attempt.status, attempt.started_at, attempt.ended_at) == ("failed", 1000, 1001)
    assert attempt.error == ErrorInfo(type="ValueError")
    assert attempt.worker_id == "w"
    assert rollout.state.ended_at == 1001
    assert (rollout.state.applied.tasks, rollout.state.applied.attempts) == (7, 1)
    assert rollout.state.enqueued_at == 10


def test_a_retry_waits_for_its_task():
    rollout = from_task(task(max_attempts=2, retry=("failed",)), 0, 10)
    changes = run(rollout, event("started"), event("failed"))
    assert changes[1].retry
    assert changes[1].task_offset == 0
    assert (rollout.state.status, rollout.state.task_offset) == ("requeuing", None)
    assert not apply_task(rollout, task(attempt=3), 4).state
    assert apply_task(rollout, task(attempt=2), 5).state
    assert not apply_task(rollout, task(attempt=2), 6).state
    assert rollout.state.task_offset == 5
    apply_event(rollout, event("started", "a2", attempt=2), 2, 1002)
    assert rollout.state.status == "preparing"
    apply_event(rollout, event("succeeded", "a2", attempt=2, final=True), 3, 1003)
    assert rollout.state.status == "succeeded"
    assert [a.status for a in rollout.state.attempts] == ["failed", "succeeded"]


def test_a_lost_delivery_needs_no_task():
    rollout = from_task(task(), 3, 10)
    changes = run(rollout, event("started"), event("lost"))
    assert not changes[1].retry
    assert (rollout.state.status, rollout.state.task_offset) == ("requeuing", 3)
    apply_event(rollout, event("started", "a1-2", delivery=2), 2, 1002)
    apply_event(rollout, event("succeeded", final=True), 3, 1003)  # of the lost delivery: does not count
    assert rollout.state.status == "preparing"
    assert rollout.live is not None
    assert rollout.live.delivery == 2


def test_an_old_attempt_does_not_move_the_rollout():
    rollout = from_task(task(max_attempts=2, retry=("unresponsive",)), 0, 10)
    run(rollout, event("started"), event("unresponsive"), event("started", "a2", attempt=2))
    change = apply_event(rollout, event("heartbeat"), 3, 1003)
    assert not change.state
    assert rollout.state.status == "preparing"


def test_cancel_of_what_nobody_runs_is_lifecycles():
    rollout = from_task(task(), 4, 10)
    first, again = run(rollout, event("cancel_requested", None, attempt=0), event("cancel_requested", None, attempt=0))
    assert first.cancel
    assert first.task_offset == 4
    assert not again.cancel
    running = from_task(task(), 4, 10)
    changes = run(running, event("started"), event("cancel_requested", None, attempt=0))
    assert not changes[1].cancel
    assert running.state.cancel_requested_at == 1001


def test_a_cancelled_rollout_is_not_retried():
    rollout = from_task(task(max_attempts=3, retry=("failed",)), 0, 10)
    changes = run(rollout, event("started"), event("cancel_requested", None, attempt=0), event("failed"))
    assert changes[2].cancel
    assert not changes[2].retry


def test_an_external_rollout_has_facts_instead_of_a_task():
    facts = TaskFacts(origin="external", mode="train", group_id="g")
    rollout = from_facts("ro", facts, 10)
    run(rollout, event("started", task=facts), event("succeeded", final=True))
    assert (rollout.state.origin, rollout.state.status, rollout.state.task_offset) == ("external", "succeeded", None)


EVENTS = st.builds(
    event,
    st.sampled_from(
        [
            "started",
            "heartbeat",
            "activity",
            "succeeded",
            "failed",
            "timeout",
            "unresponsive",
            "lost",
            "cancelled",
            "cancel_requested",
        ]
    ),
    st.sampled_from([None, "a1", "a2", "a3"]),
    attempt=st.integers(1, 3),
    final=st.booleans(),
)


@given(st.lists(EVENTS, max_size=14), st.integers(0, 14))
def test_a_restart_anywhere_changes_nothing(events: list[AttemptEvent], cut: int):
    whole = from_task(task(), 0, 10)
    for offset, e in enumerate(events):
        apply_event(whole, e, offset, 1000 + offset)
    part = from_task(task(), 0, 10)
    for offset, e in enumerate(events[:cut]):
        apply_event(part, e, offset, 1000 + offset)
    published = CODEC.decode_as(RolloutState, CODEC.encode(part.state))
    again = restored(published)
    # A successor reads somewhat further back than the published state.
    for offset, e in enumerate(events[max(0, cut - 3) :], max(0, cut - 3)):
        apply_event(again, e, offset, 1000 + offset)
    assert again.state == whole.state


@given(st.lists(EVENTS, max_size=10))
def test_repeats_change_nothing(events: list[AttemptEvent]):
    rollout = from_task(task(), 0, 10)
    for offset, e in enumerate(events):
        apply_event(rollout, e, offset, 1000 + offset)
        before = copy.deepcopy(rollout.state)
        assert not apply_event(rollout, e, offset, 2000).state
        assert rollout.state == before


def test_fold_of_a_partition():
    tasks = [(0, 10, task(max_attempts=2, retry=("failed",))), (1, 20, task(attempt=2))]
    events = [
        (0, 11, event("started")),
        (1, 12, event("failed")),
        (2, 21, event("started", "a2", attempt=2)),
        (3, 22, event("succeeded", "a2", attempt=2, final=True)),
    ]
    state = fold(tasks, events)["ro"]
    assert (state.status, state.task_offset, len(state.attempts)) == ("succeeded", 1, 2)
