"""How far the assembler lets offsets be committed, and what it forgets."""

from typing import Any, cast

from headrace.schemas.packing import unpack_offsets
from headrace.schemas.records import AttemptEvent, Reward, Span, TaskFacts
from headrace.streams.assembly.memory import OPEN_SECONDS, PartitionMemory
from headrace.streams.assembly.records import LoggedReward
from headrace.streams.kafka.transactional import LogEntry

SECOND = 1_000_000


def entry(topic: str, offset: int, seconds: float = 0) -> LogEntry:
    return LogEntry(topic, 0, offset, int(seconds * SECOND), cast(Any, None))


def span(n: int) -> Span:
    return Span(
        rollout_id="a", attempt_id="a-1", source="runner", trace_id="t", span_id=f"s{n}", name="x", start=0, end=1
    )


def reward(n: int) -> Reward:
    return Reward(rollout_id="a", reward_id=f"r{n}", primary=True, value=1.0, source="agent", at=0)


def test_commits_stop_at_the_first_record_of_the_oldest_held_rollout():
    memory = PartitionMemory(0)
    assert memory.first_needed("spans") is None
    memory.rollout("a", entry("spans", 3))
    memory.rollout("b", entry("spans", 4))
    memory.rollout("a", entry("spans", 5))
    memory.rollout("b", entry("attempts", 1))
    assert (memory.first_needed("spans"), memory.first_needed("attempts")) == (3, 1)
    memory.release("a")
    assert memory.first_needed("spans") == 4
    memory.rollout("a", entry("spans", 9))
    memory.release("b")
    assert (memory.first_needed("spans"), memory.first_needed("attempts")) == (9, None)


def test_a_late_reward_holds_its_offset_until_it_is_written():
    memory = PartitionMemory(0)
    memory.rollout("b", entry("rewards", 7))
    memory.late["a"] = [LoggedReward(reward(1), 5, 0)]
    assert memory.first_needed("rewards") == 5
    memory.late.clear()
    assert memory.first_needed("rewards") == 7


def test_a_minute_open_is_too_long():
    memory = PartitionMemory(0)
    memory.rollout("a", entry("spans", 0, seconds=0))
    memory.rollout("b", entry("spans", 1, seconds=30))
    memory.rollout("a", entry("spans", 2, seconds=50))
    assert memory.open_too_long(int((OPEN_SECONDS - 1) * SECOND)) == []
    assert memory.open_too_long(int((OPEN_SECONDS + 1) * SECOND)) == ["a"]
    memory.release("a")
    memory.rollout("a", entry("spans", 3, seconds=OPEN_SECONDS + 2))
    assert memory.open_too_long(int((OPEN_SECONDS + 31) * SECOND)) == ["b"]


def test_freed_records_stay_known_by_their_offsets():
    memory = PartitionMemory(0)
    rollout = memory.rollout("a", entry("spans", 3))
    rollout.records.add_span(span(1), 3, 0)
    rollout.records.add_reward(reward(1), 6, 0)
    start = AttemptEvent(rollout_id="a", attempt_id="a-1", type="started", task=TaskFacts(), at=0)
    rollout.records.add_event(start, 2, 0)
    rollout.free()
    assert rollout.freed
    assert not rollout.records.spans
    rollout.records.add_span(span(2), 8, 0)
    source = rollout.source()
    assert [unpack_offsets(s) for s in (source.attempts, source.spans, source.rewards)] == [[2], [3, 8], [6]]
