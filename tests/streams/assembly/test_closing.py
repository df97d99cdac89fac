"""When an ended rollout is closed, on a fake clock."""

from headrace.schemas.records import AttemptEvent, Span, TaskFacts
from headrace.streams.assembly.closing import Closing, Step
from headrace.streams.assembly.records import Positions, RolloutRecords

SETTLE = 5.0


def ended(complete: bool) -> RolloutRecords:
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="a", type="started", task=TaskFacts(), at=0), 0, 100)
    end = AttemptEvent(rollout_id="ro", attempt_id="a", type="succeeded", final=True, complete=complete, at=0)
    records.add_event(end, 1, 1_000)
    return records


def span(key: str) -> Span:
    return Span(rollout_id="ro", attempt_id="a", source="otlp", trace_id="t", span_id=key, name="n", start=1, end=2)


def test_a_complete_end_closes_by_one_barrier_without_a_wait():
    records = ended(complete=True)
    closing = Closing.of(records)
    assert closing.step(records, Positions(0, 0), 1_000, SETTLE) is Step.BARRIER
    closing.set_barrier(Positions(7, 3), records)
    records.add_span(span("late"), 9, 1_001)
    assert closing.step(records, Positions(6, 3), 1_000, SETTLE) is Step.WAIT
    assert closing.step(records, Positions(7, 2), 1_000, SETTLE) is Step.WAIT
    assert closing.step(records, Positions(10, 3), 1_000, SETTLE) is Step.CLOSE
    assert [logged.offset for logged in records.spans_before(closing.barrier)] == []


def test_any_other_end_settles_and_then_needs_a_barrier_that_brings_nothing():
    records = ended(complete=False)
    closing = Closing.of(records)
    assert closing.step(records, Positions(0, 0), 5_999, SETTLE) is Step.WAIT
    assert closing.step(records, Positions(0, 0), 6_000, SETTLE) is Step.BARRIER
    closing.set_barrier(Positions(1, 0), records)
    assert closing.step(records, Positions(0, 0), 6_000, SETTLE) is Step.WAIT
    records.add_span(span("came"), 0, 6_001)
    assert closing.step(records, Positions(1, 0), 6_002, SETTLE) is Step.BARRIER
    closing.set_barrier(Positions(1, 0), records)
    assert closing.step(records, Positions(1, 0), 6_002, SETTLE) is Step.CLOSE


def test_the_barrier_of_an_old_end_stands_a_little_later_than_the_end():
    closing = Closing.of(ended(complete=True))  # at 1,000
    assert closing.horizon(19_999) is None
    assert closing.horizon(20_000) == 20_000
    assert closing.horizon(10_000_000) == 20_000


def test_the_first_of_two_records_with_one_identity_wins():
    records = ended(complete=True)
    assert records.add_span(span("x"), 4, 1)
    assert not records.add_span(span("x"), 5, 2)
    assert [logged.offset for logged in records.spans.values()] == [4]
