"""Well-formed records with any content at all: no processor stops at one, and the rollouts beside it are as ever."""

from typing import Any

import msgspec
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, Record, Reward, Span, Task, TaskFacts
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.settings import load_settings
from tests.schemas.strategies import records_of
from tests.streams.memory_log import MemoryLog, MemoryLoop, settle

SETTINGS = load_settings(prefix="t", partitions=1)
TYPES = ("started", "heartbeat", "activity", "succeeded", "failed", "timeout", "lost", "cancel_requested", "cancelled")
IDS = st.sampled_from(("a", "b"))


def hostile(name: str) -> st.SearchStrategy[Record]:
    """A record of a rollout that others tell of too."""
    return st.builds(lambda record, i: msgspec.structs.replace(record, rollout_id=i), records_of(name), IDS)


def event(fields: tuple[Record, str, str, str]) -> Record:
    record, rollout_id, type_, attempt_id = fields
    return msgspec.structs.replace(record, rollout_id=rollout_id, type=type_, attempt_id=attempt_id)


EVENTS = st.tuples(records_of("AttemptEvent"), IDS, st.sampled_from(TYPES), st.sampled_from(("1", "2"))).map(event)
HOSTILE = st.one_of(EVENTS, *map(hostile, ("Task", "AttemptEvent", "Span", "Reward")))


def good() -> list[Record]:
    common: dict[str, Any] = {"rollout_id": "good", "attempt_id": "good-1", "attempt": 1, "at": 0}
    return [
        Task(rollout_id="good", input="1", enqueued_at=0),
        AttemptEvent(type="started", task=TaskFacts(offset=0, input="1"), **common),
        Span(
            rollout_id="good", attempt_id="good-1", source="gateway", trace_id="a" * 32, span_id="b" * 16, name="chat",
            start=1, end=2,
        ),
        Reward(
            rollout_id="good", attempt_id="good-1", reward_id="i", primary=True, value=0.5, source="agent", at=0
        ),
        AttemptEvent(type="succeeded", final=True, complete=True, **common),
    ]  # fmt: skip


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(HOSTILE, max_size=10))
def test_processors_go_on(records: list[Record]) -> None:
    log = MemoryLog(SETTINGS)
    lifecycle = MemoryLoop(log, lambda: LifecycleProcessor(SETTINGS, "l", log))
    assembler = MemoryLoop(log, lambda: AssemblyProcessor(SETTINGS, "a", log_reader=log))
    log.write(*records, *good())
    settle(lifecycle, assembler)
    lifecycle.restart()
    assembler.restart()
    settle(lifecycle, assembler)
    assert log.last("rollouts")["good"].status == "succeeded"
    (trajectory,) = [t for t in log.records("triplets") if t.rollout_id == "good"]
    assert (trajectory.final_reward, trajectory.status) == (0.5, "succeeded")
