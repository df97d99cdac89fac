"""What is left out of records that would be too large."""

from headrace.schemas.records import AttemptState, ErrorInfo, RolloutState
from headrace.streams.lifecycle.answers import smaller


def test_a_state_of_many_failed_attempts_keeps_its_last_stack_trace() -> None:
    error = ErrorInfo(type="ValueError", message="m" * 5000, stacktrace="s" * 30_000)
    attempts = [
        AttemptState(attempt_id=f"r-{n}", attempt=n, status="failed", started_at=0, error=error) for n in (1, 2, 3)
    ]
    state = RolloutState(rollout_id="r", status="failed", enqueued_at=0, attempts=attempts, metadata={"a": "b"})
    left = smaller(state)
    assert isinstance(left, RolloutState)
    assert left.attempts[2].error == error
    assert [len(a.error.message) for a in left.attempts[:2] if a.error is not None] == [200, 200]
    assert all(a.error is not None and a.error.stacktrace is None for a in left.attempts[:2])
    assert (left.status, left.metadata) == ("failed", {})
