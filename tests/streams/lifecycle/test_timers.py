"""Timers, with log time as a number."""

from datetime import timedelta

import pytest

from headrace.schemas.records import AttemptEvent, Task, TaskConfig, TaskFacts
from headrace.streams.lifecycle.machine import Rollout, apply_event, from_task
from headrace.streams.lifecycle.timers import SECOND, Limits, event_of, overdue, silent

LIMITS = Limits.of(timedelta(seconds=30), timedelta(hours=24))


def rollout(*types: str, **config: object) -> Rollout:
    """Enqueued at 0 s; events at 10 s, 20 s, ..."""
    made = from_task(Task(rollout_id="ro", input="1", config=TaskConfig(**config), enqueued_at=0), 0, 0)  # type: ignore[arg-type]
    for offset, type_ in enumerate(types):
        event = AttemptEvent(rollout_id="ro", attempt_id="a", type=type_, task=TaskFacts(), at=0)
        apply_event(made, event, offset, (offset + 1) * 10 * SECOND)
    return made


@pytest.mark.parametrize(
    ("types", "seconds", "expected"),
    [
        ((), 86400, None),
        ((), 86401, "open_too_long"),
        (("started",), 15, None),
        (("started",), 15.1, "timeout"),
        (("started", "heartbeat"), 15.1, "timeout"),
    ],
)
def test_overdue_with_a_timeout_of_five_seconds(types: tuple[str, ...], seconds: float, expected: str | None):
    assert overdue(rollout(*types, timeout_seconds=5.0), int(seconds * SECOND), 0, LIMITS) == expected


@pytest.mark.parametrize(
    ("types", "seconds", "expected"),
    [(("started",), 40, None), (("started",), 41, "lost"), (("started", "heartbeat"), 41, None)],
)
def test_a_heartbeat_renews_the_lease(types: tuple[str, ...], seconds: float, expected: str | None):
    assert overdue(rollout(*types), int(seconds * SECOND), 0, LIMITS) == expected


def test_timeout_wins():
    assert overdue(rollout("started", timeout_seconds=5.0), 90_000 * SECOND, 0, LIMITS) == "timeout"


def test_timers_begin_anew():
    since = 100 * SECOND
    attempt = rollout("started", timeout_seconds=5.0)
    assert overdue(attempt, 104 * SECOND, since, LIMITS) is None
    assert overdue(attempt, 106 * SECOND, since, LIMITS) == "timeout"


def test_silence_is_absence_of_activity_while_heartbeats_come():
    quiet = rollout("started", "heartbeat", unresponsive_seconds=15.0)
    assert not silent(quiet, 24 * SECOND, 0)
    assert silent(quiet, 26 * SECOND, 0)
    busy = rollout("started", "activity", unresponsive_seconds=15.0)
    assert not silent(busy, 30 * SECOND, 0)


def test_the_event_is_final_unless_a_retry_follows():
    retried = rollout("started", timeout_seconds=5.0, max_attempts=2, retry_condition=["timeout"])
    assert not event_of("timeout", retried, 5, "w").final
    assert event_of("timeout", rollout("started"), 5, "w").final
    assert not event_of("lost", rollout("started"), 5, "w").final
    given_up = event_of("open_too_long", retried, 5, "w")
    assert (given_up.type, given_up.final, given_up.attempt_id) == ("timeout", True, "a")
    assert given_up.error is not None
    assert given_up.error.type == "open_too_long"


def test_a_rollout_that_never_started_ends_without_an_attempt():
    event = event_of("open_too_long", rollout(), 5, "w")
    assert (event.attempt_id, event.final, event.complete) == (None, True, True)
