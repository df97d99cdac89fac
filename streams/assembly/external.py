"""Rollouts that nobody enqueued, as decisions over values: when one begins, gives a sign of life, and ends.

A rollout is external if spans of it came and the attempts partition, read to an end that was noted later, has no start
of it. The assembler then writes what a runner writes of a task: `started`, `activity`, and the final end. Each counts
when it is read back.
"""

from enum import Enum

import msgspec

from headrace.schemas.records import AttemptEvent, Span, TaskFacts
from headrace.streams.assembly.records import RolloutRecords

ORIGIN = "external"
GRACE_SECONDS = 1.0  # the span of a writer that does not wait for the ack of its `started` may stand before that
ACTIVITY_SECONDS = 10.0
ERROR = "ERROR"


class Step(Enum):
    """What is to be done about a rollout without a start."""

    WAIT = "wait"
    BARRIER = "barrier"  # ask for the ends of attempts and spans
    DECIDE = "decide"  # nobody has started it


class Unstarted(msgspec.Struct):
    """A rollout of which a span or a reward came, but no start.

    Attributes:
        since: log time of its first record, microseconds.
        attempts, spans: ends of these partitions, noted after the grace; -1 before.
        decided: nothing is to be done any more.
    """

    since: int
    attempts: int = -1
    spans: int = -1
    decided: bool = False

    def step(self, attempts: int, spans: int, now: int) -> Step:
        """The next step, by the next offsets to be read of both partitions and log time in microseconds."""
        if self.decided or now - self.since < GRACE_SECONDS * 1e6:
            return Step.WAIT
        if self.attempts < 0:
            return Step.BARRIER
        return Step.DECIDE if attempts >= self.attempts and spans >= self.spans else Step.WAIT


def ends_the_trace(span: Span) -> bool:
    """Whether a span is the root of a trace that is a rollout of its own: spans are written when they have ended."""
    return not span.parent_id and span.trace_id == span.rollout_id


def start_of(records: RolloutRecords, worker_id: str, now: int) -> AttemptEvent:
    """The start of an external rollout; its attempt is the one that its spans name, if they name one."""
    spans = [logged.record for logged in records.spans.values()]
    named = next((span.attempt_id for span in spans if span.attempt_id is not None), None)
    session = next((span.session_id for span in spans if span.session_id is not None), None)
    return AttemptEvent(
        rollout_id=records.rollout_id,
        attempt_id=named or f"{records.rollout_id}-1",
        type="started",
        task=TaskFacts(origin=ORIGIN, session_id=session),
        worker_id=worker_id,
        at=now,
    )


def activity_of(records: RolloutRecords, worker_id: str, now: int) -> AttemptEvent:
    """A sign of the agent's life."""
    return _event(records, "activity", worker_id, now)


def end_of(records: RolloutRecords, root_status: str | None, worker_id: str, now: int) -> AttemptEvent:
    """The final end: `failed` if the root span says so. What is on its way still belongs to it."""
    event = _event(records, "failed" if root_status == ERROR else "succeeded", worker_id, now)
    event.final = True
    return event


def _event(records: RolloutRecords, type_: str, worker_id: str, now: int) -> AttemptEvent:
    latest = records.judge.latest
    assert latest is not None
    return AttemptEvent(
        rollout_id=records.rollout_id,
        attempt_id=latest.attempt_id,
        attempt=latest.attempt,
        delivery=latest.delivery,
        type=type_,
        worker_id=worker_id,
        at=now,
    )
