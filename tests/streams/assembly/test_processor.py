"""The assembler as a whole over a log in memory, on its clock."""

import gc
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32, unpack_offsets
from headrace.schemas.records import AttemptEvent, Choice, ModelCall, Reward, Span, SpanStatus, TaskFacts, Trajectory
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.settings import load_settings
from tests.streams.memory_log import MemoryLog, MemoryLoop, settle

SETTINGS = load_settings(prefix="t", partitions=1, lease=timedelta(days=300))
R_MS = int(SETTINGS.retention.total_seconds() * 1000)
YEAR_NS = 365 * 24 * 3600 * 1_000_000_000


class Pipeline:
    """Assembler and lifecycle over one log."""

    def __init__(self) -> None:
        self.log = MemoryLog(SETTINGS)
        self.assembler = MemoryLoop(self.log, lambda: AssemblyProcessor(SETTINGS, "a", log_reader=self.log))
        self.lifecycle = MemoryLoop(self.log, lambda: LifecycleProcessor(SETTINGS, "l", self.log))

    def run(self, seconds: float = 0) -> None:
        self.log.now_ms += int(seconds * 1000)
        while self.assembler.turn() | self.lifecycle.turn():
            pass

    @property
    def processor(self) -> Any:
        return self.assembler.processor

    @property
    def trajectories(self) -> list[Trajectory]:
        return self.log.records("triplets")


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


def event(type: str, rollout_id: str = "ro", *, attempt: int = 1, **more: Any) -> AttemptEvent:
    return AttemptEvent(
        rollout_id=rollout_id, attempt_id=f"{rollout_id}-{attempt}", attempt=attempt, type=type, at=0, **more
    )


def started(rollout_id: str = "ro", attempt: int = 1) -> AttemptEvent:
    return event("started", rollout_id, attempt=attempt, task=TaskFacts(group_id="g", input='"q"'))


def end(rollout_id: str = "ro", attempt: int = 1) -> AttemptEvent:
    return event("succeeded", rollout_id, attempt=attempt, final=True, complete=True)


def span(number: int = 0, rollout_id: str = "ro", **more: Any) -> Span:
    values: dict[str, Any] = {"trace_id": "t", "name": "step", "parent_id": "p", "start": 1, "end": 2, **more}
    return Span(rollout_id=rollout_id, source="otlp", span_id=f"s{number}", **values)


def reward(number: int = 0, rollout_id: str = "ro") -> Reward:
    return Reward(rollout_id=rollout_id, reward_id=f"r{number}", primary=True, value=1.0, source="agent", at=0)


# external rollouts


def test_a_trace_that_nobody_enqueued_ends_with_its_root(pipeline: Pipeline):
    log = pipeline.log
    log.write(span(1, "trace", trace_id="trace", session_id="s"))
    pipeline.run()
    assert not log.records("attempts")
    pipeline.run(1.5)
    begun, alive = log.records("attempts")
    assert (begun.type, begun.attempt_id, begun.task) == (
        "started",
        "trace-1",
        TaskFacts(origin="external", session_id="s"),
    )
    assert alive.type == "activity"
    assert log.last("rollouts")["trace"].status == "running"
    log.write(reward(1, "trace"), span(2, "trace", trace_id="trace", parent_id=None))
    pipeline.run()
    assert [e.type for e in log.records("attempts")] == ["started", "activity", "succeeded"]
    log.write(span(3, "trace", trace_id="trace"))  # its batch came later
    assert not pipeline.trajectories
    pipeline.run(SETTINGS.settle.total_seconds() + 1)
    (t,) = pipeline.trajectories
    assert (t.rollout_id, t.attempt_id, t.origin, t.session_id, t.status) == (
        "trace",
        "trace-1",
        "external",
        "s",
        "succeeded",
    )
    assert t.final_reward == 1.0
    assert t.source is not None
    assert len(unpack_offsets(t.source.spans)) == 3
    state = log.last("rollouts")["trace"]
    assert (state.status, state.origin) == ("succeeded", "external")


def test_a_root_that_failed_and_came_first(pipeline: Pipeline):
    pipeline.log.write(span(1, "trace", trace_id="trace", parent_id=None, status=SpanStatus(code="ERROR")))
    pipeline.run()
    pipeline.run(1.5)
    pipeline.run(6)
    (t,) = pipeline.trajectories
    assert (t.status, t.origin) == ("failed", "external")
    assert [e.type for e in pipeline.log.records("attempts")] == ["started", "failed"]


def test_a_given_id_ends_when_it_was_idle(pipeline: Pipeline):
    log = pipeline.log
    for number in range(4):
        log.write(span(number, "mine", parent_id=None))  # a root, but not of a rollout that is its trace
        pipeline.run(300)
        assert not pipeline.trajectories
    pipeline.assembler.restart()
    pipeline.run()
    pipeline.run(500)
    assert not pipeline.trajectories  # idle times begin anew
    pipeline.run(101)
    pipeline.run(6)
    (t,) = pipeline.trajectories
    assert t.source is not None
    assert len(unpack_offsets(t.source.spans)) == 4
    assert log.last("rollouts")["mine"].status == "succeeded"


def test_a_sign_of_activity_once_in_a_while(pipeline: Pipeline):
    for number in range(100):
        pipeline.log.write(span(number, "mine"))
        pipeline.run(0.4)
    signs = [e for e in pipeline.log.records("attempts") if e.type == "activity"]
    assert 4 <= len(signs) <= 5


def test_an_attempt_that_the_spans_name_is_the_attempt(pipeline: Pipeline):
    pipeline.log.write(span(1, "mine", attempt_id="own"))
    settle(pipeline.assembler, pipeline.lifecycle)
    (t,) = pipeline.trajectories
    assert t.attempt_id == "own"


def test_a_start_that_comes_a_moment_later_than_its_span_is_the_start(pipeline: Pipeline):
    pipeline.log.write(span(1), reward(1))
    pipeline.run()
    pipeline.log.write(started())
    pipeline.run(3)
    pipeline.log.write(end())
    pipeline.run()
    (t,) = pipeline.trajectories
    assert (t.origin, t.group_id, t.final_reward) == ("task", "g", 1.0)
    assert not [e for e in pipeline.log.records("attempts") if e.worker_id == "a"]


def test_a_crash_at_any_moment_starts_an_external_rollout_once(pipeline: Pipeline):
    log, loop = pipeline.log, pipeline.assembler
    log.write(span(1, "trace", trace_id="trace", parent_id=None))
    for seconds in (0, 2, 0, 2, 6, 0):
        for crash in ("within", "before"):
            log.now_ms += seconds * 1000
            loop.read()
            loop.write(crash=crash)
        loop.read()
        log.now_ms += 2000
        loop.read()
        loop.write()
    settle(pipeline.assembler, pipeline.lifecycle)
    assert [e.type for e in log.records("attempts")] == ["started", "succeeded"]
    assert len(pipeline.trajectories) == 1


def test_a_reward_opens_nothing(pipeline: Pipeline):
    pipeline.log.write(reward(1, "nobody"), reward(1, "nobody"))
    pipeline.run()
    pipeline.run(2)
    assert pipeline.log.reasons() == [("unknown_target", "nobody")]
    assert not pipeline.log.records("attempts")
    assert pipeline.processor.first_needed("rewards", 0) is None
    pipeline.assembler.restart()
    pipeline.run(2)
    assert len(pipeline.log.dead) == 1


# bad input


def test_an_end_before_its_start(pipeline: Pipeline):
    pipeline.log.write(event("failed", "ro"), started(), span(), started(attempt=2), end(attempt=2))
    pipeline.run()
    (t,) = pipeline.trajectories
    assert (t.attempt_id, t.status, t.group_id) == ("ro-2", "succeeded", "g")


def test_two_ends(pipeline: Pipeline):
    pipeline.log.write(started(), span(), end(), event("failed", final=True), end())
    pipeline.run(10)
    (t,) = pipeline.trajectories
    assert t.status == "succeeded"
    assert len(unpack_offsets(t.source.attempts if t.source else b"")) == 2


def test_clocks_a_year_off(pipeline: Pipeline):
    first, second = started(), end()
    first.at, second.at = 4 * 10**15, 1
    pipeline.log.write(first, span(1, start=YEAR_NS, end=YEAR_NS + 5), span(2, start=1, end=2), second)
    pipeline.run()
    (t,) = pipeline.trajectories
    assert t.source is not None
    assert len(unpack_offsets(t.source.spans)) == 2


def test_ten_thousand_duplicates_change_neither_output_nor_memory(pipeline: Pipeline):
    log = pipeline.log
    log.write(started(), span(), reward())
    pipeline.run()
    rollout = pipeline.processor.memories[0].open["ro"]
    before = rollout.source()
    for _ in range(2500):
        log.write(started(), span(), reward(), event("heartbeat"))
    pipeline.run()
    assert rollout.source() == before
    log.write(end())
    pipeline.run()
    (t,) = pipeline.trajectories
    assert t.source is not None
    assert [len(unpack_offsets(s)) for s in (t.source.attempts, t.source.spans, t.source.rewards)] == [2, 1, 1]
    for _ in range(2500):
        log.write(started(), span(), reward(), end())
    pipeline.run()
    assert len(pipeline.trajectories) == 1
    assert not pipeline.processor.memories[0].open


# memory


def test_what_is_open_for_a_minute_is_let_go_and_comes_back_whole(pipeline: Pipeline):
    log = pipeline.log
    log.write(started(), span(1), reward(1))
    pipeline.run()
    assert pipeline.processor.first_needed("spans", 0) == 0
    pipeline.run(61)
    memory = log.last("assembled")["ro"]
    assert (memory.state, memory.attempt_id) == ("open", "ro-1")
    assert pipeline.processor.first_needed("spans", 0) is None
    rollout = pipeline.processor.memories[0].open["ro"]
    assert not rollout.records.spans
    assert rollout.records.judge.facts is None
    for _ in range(100):
        pipeline.run(10)
        log.write(event("heartbeat"))
    assert len(log.messages("assembled")) == 1  # heartbeats hold nothing
    log.write(span(2))
    pipeline.run()
    pipeline.assembler.restart()
    log.write(end())
    pipeline.run()
    (t,) = pipeline.trajectories
    assert (t.group_id, t.input, t.final_reward) == ("g", '"q"', 1.0)
    assert t.source is not None
    assert len(unpack_offsets(t.source.spans)) == 2


def test_a_thousand_open_attempts_are_small():
    pipeline = Pipeline()
    count = 1000
    log = pipeline.log
    for n in range(count):
        log.write(
            AttemptEvent(
                rollout_id=f"ro{n}",
                attempt_id=f"ro{n}-1",
                type="started",
                at=0,
                task=TaskFacts(group_id="g", input=f'"{"x" * 5000}"'),
            )
        )
        log.write(*(span(i, f"ro{n}", attributes=f'{{"text": "{"y" * 2000}"}}') for i in range(3)))
    loop = MemoryLoop(log, lambda: AssemblyProcessor(SETTINGS, "a", log_reader=log))
    gc.collect()
    tracemalloc.start()
    try:
        loop.read()
        held = tracemalloc.get_traced_memory()[0]
        log.now_ms += 61_000
        loop.read()
        collected = loop.processor.collect(loop.now)
        follow = collected.follow
        assert follow is not None
        follow([])
        del collected, follow
        gc.collect()
        freed = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held / count > 10_000
    assert freed / count < 3_000


def test_a_backlog_is_not_held_until_its_end_is_read(pipeline: Pipeline):
    log = pipeline.log
    for n in range(600):  # ten minutes
        log.write(started(f"ro{n}"), span(1, f"ro{n}"), span(2, f"ro{n}"), end(f"ro{n}"))
        log.now_ms += 996
    log.write(span(3, "ro0"), reward(1, "ro0"))
    log.now_ms += 3_600_000
    held = 0
    while pipeline.assembler.turn(30):
        held = max(held, len(pipeline.processor.memories[0].open))
    assert held < 50
    trajectories = {t.rollout_id: t for t in pipeline.trajectories if t.rollout_id != "ro0"}
    assert len(trajectories) == 599
    assert {len(unpack_offsets(t.source.spans)) for t in trajectories.values() if t.source is not None} == {2}
    first, revised = [t for t in pipeline.trajectories if t.rollout_id == "ro0"]
    assert (first.revision, first.final_reward) == (0, None)  # as if the assembler had been there all the time
    assert (revised.revision, revised.final_reward) == (1, 1.0)
    assert pipeline.processor.counters["late_after_close"] == 1


def test_what_nobody_ever_ended_is_forgotten(pipeline: Pipeline):
    log = pipeline.log

    def run(seconds: float = 0) -> None:  # where lifecycle stands still, nobody ends it
        log.now_ms += int(seconds * 1000)
        while pipeline.assembler.turn():
            pass

    log.write(event("failed", "stray", task=TaskFacts()), started("done"), end("done"))
    run()
    assert {r: m.state for r, m in log.last("assembled").items()} == {"stray": "waiting", "done": "closed"}
    run(R_MS / 2000)
    log.write(started("young"), end("young"))
    run()
    run(R_MS / 2000 + 60)
    assert set(log.last("assembled")) == {"young"}
    assert pipeline.processor.counters["given_up"] == 1
    assert not pipeline.processor.memories[0].open
    log.write(reward(9, "done"))
    run()
    run(2)
    assert ("unknown_target", "done") in log.reasons()
    pipeline.assembler.restart()
    run(700)
    assert len([m for m in log.messages("assembled") if m.value() is None]) == 2


def test_a_late_reward_renews_its_memory(pipeline: Pipeline):
    log = pipeline.log
    log.write(started(), end())
    pipeline.run()
    pipeline.run(R_MS / 2000)
    log.write(reward(1))
    pipeline.run()
    pipeline.run(R_MS / 2000 + 60)
    assert log.last("assembled")["ro"].revision == 1
    pipeline.run(timedelta(days=9).total_seconds())
    assert not log.last("assembled")


# what is too large for a record


@pytest.mark.parametrize(
    ("turns", "input_bytes", "rewards"), [(60, 10, {"primary": 1.0}), (60, 5000, {}), (0, 5000, {})]
)
def test_a_trajectory_above_the_limit_is_written_without_what_makes_it_large(
    turns: int, input_bytes: int, rewards: dict[str, float]
) -> None:
    small = SETTINGS.model_copy(update={"max_message_bytes": 4096, "claim_check": "off"})
    log = MemoryLog(SETTINGS)  # the writers' limit is larger
    assembler = MemoryLoop(log, lambda: AssemblyProcessor(small, "a", log_reader=log))
    facts = TaskFacts(group_id="g", input=f'"{"q" * input_bytes}"')
    log.write(event("started", task=facts), reward())
    for turn in range(turns):
        call = ModelCall(
            model="m",
            response_id=f"c{turn}",
            prompt_token_ids=pack_int32(range(1000 * turn, 1000 * turn + 20)),
            choices=[Choice(index=0, response_token_ids=pack_int32([1, 2]), finish_reason="stop", text="x")],
        )
        log.write(span(turn, attempt_id="ro-1", start=turn, end=turn, llm=call))
    log.write(end())
    while assembler.turn():
        pass
    (trajectory,) = log.records("triplets")
    assert trajectory.triplets == []
    assert trajectory.rewards == rewards
    assert trajectory.group_id == "g"
    assert trajectory.status == "succeeded"
    assert trajectory.diagnostics.dropped["too_large"] == turns
    assert len(unpack_offsets(trajectory.source.spans)) == turns  # where all of it can be read again
    (assembled,) = log.records("assembled")
    assert assembled.state == "closed"
