"""The rule of the ends, over hand-written and generated histories."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, TaskFacts
from headrace.streams.ends import EndJudge, Verdict, begins, is_end, judge, retry_follows


def event(
    type: str,
    attempt_id: str | None = "a1",
    *,
    attempt: int = 1,
    delivery: int = 1,
    final: bool = False,
    task: TaskFacts | None = None,
) -> AttemptEvent:
    return AttemptEvent(
        rollout_id="ro",
        attempt_id=attempt_id,
        attempt=attempt,
        delivery=delivery,
        type=type,
        final=final,
        task=task or (TaskFacts() if type == "started" else None),
        at=0,
    )


def verdicts(*events: AttemptEvent) -> tuple[list[Verdict], EndJudge]:
    result = EndJudge()
    return [result.read(e, i) for i, e in enumerate(events)], result


def test_plain_rollout_closes_once():
    facts = TaskFacts(group_id="g", input='"q"')
    seen, result = verdicts(event("started", task=facts), event("heartbeat"), event("succeeded", final=True))
    assert seen == [Verdict.STARTED, Verdict.SIGN, Verdict.CLOSES]
    assert result.closed
    assert result.facts is facts
    assert result.chosen is not None
    assert result.chosen.status == "succeeded"


def test_crossing_ends_the_first_counts():
    seen, result = verdicts(event("started"), event("timeout", final=True), event("succeeded", final=True))
    assert seen[1:] == [Verdict.CLOSES, Verdict.IGNORED]
    assert result.chosen is not None
    assert result.chosen.status == "timeout"
    assert result.ignored_ends == 1


def test_zombie_of_a_lost_delivery_is_ignored():
    seen, result = verdicts(
        event("started", "a1-1"),
        event("lost", "a1-1"),
        event("started", "a1-2", delivery=2),
        event("succeeded", "a1-1", final=True),
        event("succeeded", "a1-2", delivery=2, final=True),
    )
    assert seen == [Verdict.STARTED, Verdict.COUNTS, Verdict.STARTED, Verdict.IGNORED, Verdict.CLOSES]
    assert result.chosen is not None
    assert result.chosen.attempt_id == "a1-2"


def test_final_end_without_attempt_closes_a_rollout_that_never_started():
    seen, result = verdicts(event("cancelled", None, final=True, task=TaskFacts()))
    assert seen == [Verdict.CLOSES]
    assert result.chosen is None
    assert result.closing is not None


def test_nothing_begins_with_an_event_that_does_not_tell_the_facts_of_its_task():
    facts = TaskFacts(group_id="g")
    without = AttemptEvent(rollout_id="ro", attempt_id="a1", type="started", at=0)
    seen, result = verdicts(event("succeeded", final=True), without, event("heartbeat", task=facts))
    assert seen == [Verdict.UNTOLD, Verdict.UNTOLD, Verdict.SIGN]
    assert (result.attempts, result.facts, result.closed, result.ignored_ends) == ({}, None, False, 1)
    assert result.read(event("succeeded", final=True, task=facts), 3) is Verdict.CLOSES
    assert result.facts is facts


def test_unresponsive_with_final_is_a_mark_and_activity_lifts_it():
    seen, result = verdicts(event("started"), event("unresponsive", final=True), event("activity"))
    assert seen[1:] == [Verdict.SIGN, Verdict.SIGN]
    assert not result.closed
    assert result.attempts["a1"].status == "running"


def test_unresponsive_with_a_retry_is_an_end():
    seen, result = verdicts(event("started"), event("unresponsive"), event("succeeded", final=True))
    assert seen[1:] == [Verdict.COUNTS, Verdict.IGNORED]
    assert not result.closed


def test_latest_that_succeeded_wins_over_the_latest():
    _, result = verdicts(
        event("started", "a1"),
        event("started", "a2", attempt=2),
        event("failed", "a2", attempt=2),
        event("succeeded", "a1", final=True),
    )
    assert result.latest is not None
    assert result.latest.attempt_id == "a2"
    assert result.chosen is not None
    assert result.chosen.attempt_id == "a1"


@pytest.mark.parametrize(
    ("status", "attempt", "expected"),
    [("failed", 1, True), ("failed", 2, False), ("timeout", 1, False), ("lost", 2, True)],
)
def test_retry_rule(status: str, attempt: int, expected: bool):
    assert retry_follows(status, attempt, 2, ["failed"]) is expected


EVENTS = st.builds(
    event,
    st.sampled_from(
        ["started", "heartbeat", "activity", "succeeded", "failed", "timeout", "unresponsive", "lost", "cancelled"]
    ),
    st.sampled_from([None, "a1", "a2", "a3"]),
    attempt=st.integers(1, 3),
    final=st.booleans(),
    task=st.sampled_from([None, TaskFacts()]),
)


@given(st.lists(EVENTS, max_size=14), st.data())
def test_repeats_change_nothing_and_one_end_closes(events: list[AttemptEvent], data: st.DataObject):
    log = list(enumerate(events))
    once = judge(log)
    repeated = [pair for i, pair in enumerate(log) for pair in (log[: i + 1] if data.draw(st.booleans()) else [pair])]
    assert judge(repeated) == once
    told = [i for i, e in enumerate(events) if begins(e)]
    assert bool(told) == (once.facts is not None)
    events = events[told[0] :] if told else []
    closing = [e for e in events if e is once.closing]
    assert once.closed == bool(closing)
    if once.closing is not None:
        assert once.closing.final
        assert is_end(once.closing)
    for attempt in once.attempts.values():
        if attempt.end is not None:
            assert attempt.end is next(e for e in events if e.attempt_id == attempt.attempt_id and is_end(e))
