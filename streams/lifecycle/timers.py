"""When a rollout that nothing is heard of gets an event from lifecycle. A timer changes no state: it writes an event.

All times are log time in microseconds. `since` is the moment from which timers count after an assignment.
"""

from datetime import timedelta

import msgspec

from headrace.schemas.records import AttemptEvent, ErrorInfo
from headrace.streams.ends import retry_follows
from headrace.streams.lifecycle.machine import Rollout

TIMEOUT = "timeout"
LOST = "lost"
UNRESPONSIVE = "unresponsive"
OPEN_TOO_LONG = "open_too_long"
SECOND = 1_000_000


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The limits that are not the task's own, in microseconds."""

    lease: int
    max_open: int

    @classmethod
    def of(cls, lease: timedelta, max_open: timedelta) -> "Limits":
        return cls(int(lease.total_seconds() * SECOND), int(max_open.total_seconds() * SECOND))


def overdue(rollout: Rollout, now: int, since: int, limits: Limits) -> str | None:
    """Which limit a rollout is past: `timeout` wins over `open_too_long`, that over `lost`."""
    attempt = rollout.live
    if attempt is not None and attempt.started_at is not None:
        timeout = rollout.state.config.timeout_seconds
        if timeout is not None and now - max(attempt.started_at, since) > timeout * SECOND:
            return TIMEOUT
    # Records are kept for a time that reckons with `max_open`: what is that old only gets a lease to show its end.
    if now - rollout.state.enqueued_at > limits.max_open and now - since > min(limits.lease, limits.max_open):
        return OPEN_TOO_LONG
    if attempt is not None and attempt.started_at is not None and rollout.state.origin == "task":
        sign = max(attempt.started_at, attempt.last_heartbeat_at or 0, since)
        if now - sign > limits.lease:
            return LOST
    return None


def silent(rollout: Rollout, heartbeat_at: int, since: int) -> bool:
    """Whether a heartbeat comes from an attempt whose agent has done nothing for too long."""
    attempt = rollout.live
    limit = rollout.state.config.unresponsive_seconds
    if attempt is None or limit is None or attempt.status == UNRESPONSIVE or attempt.started_at is None:
        return False
    return heartbeat_at - max(attempt.started_at, attempt.last_activity_at or 0, since) > limit * SECOND


def event_of(kind: str, rollout: Rollout, now: int, worker_id: str) -> AttemptEvent:
    """The event that a timer writes; it counts when it is read back, if it does."""
    state = rollout.state
    attempt = rollout.live
    type_ = TIMEOUT if kind == OPEN_TOO_LONG else kind
    number = attempt.attempt if attempt is not None else 1
    retried = kind != OPEN_TOO_LONG and retry_follows(
        type_, number, state.config.max_attempts, state.config.retry_condition
    )
    return AttemptEvent(
        rollout_id=state.rollout_id,
        attempt_id=attempt.attempt_id if attempt is not None else None,
        attempt=number,
        delivery=attempt.delivery if attempt is not None else 1,
        type=type_,
        final=not retried,
        complete=attempt is None and not state.attempts,
        lost_reason="lease" if kind == LOST else None,
        worker_id=worker_id,
        error=ErrorInfo(type=kind, message=MESSAGES[kind]),
        at=now,
    )


MESSAGES = {
    TIMEOUT: "the attempt was not over within its timeout_seconds",
    UNRESPONSIVE: "the agent made no model call and emitted nothing within its unresponsive_seconds",
    LOST: "no heartbeat came from the worker within the lease",
    OPEN_TOO_LONG: "the rollout was open for longer than max_open",
}
