"""Segments of external rollouts, and feedback that ends or revises them, over a log in memory."""

from typing import Any

import pytest

from headrace.schemas.records import Reward, Trajectory
from headrace.streams.assembly.segments import pack_traces, segment_of_reward, trace_hash, unpack_traces
from headrace.streams.feedback.request import Target, read_feedback, reward_of
from tests.streams.assembly.test_processor import SETTINGS, Pipeline, end, span, started
from tests.streams.memory_log import settle

IDLE = SETTINGS.session_idle.total_seconds()


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


def call(number: int, trace: str, rollout_id: str = "chat") -> Any:
    return span(number, rollout_id, trace_id=trace, parent_id=None)


def feedback(value: float = 1.0, rollout_id: str = "chat", attempt_id: str | None = None, **more: Any) -> Reward:
    return reward_of(
        read_feedback({"rollout_id": rollout_id, "value": value, **more}), Target(rollout_id, attempt_id), 0
    )


def close(pipeline: Pipeline) -> None:
    """Lets what is open be idle for long enough."""
    pipeline.run()
    pipeline.run(2)
    pipeline.run(IDLE + 1)
    pipeline.run(SETTINGS.settle.total_seconds() + 1)


def found(pipeline: Pipeline) -> list[tuple[str, int, float | None, int]]:
    """Of each trajectory rollout, revision, final reward, and how many spans it holds."""
    return [(t.rollout_id, t.revision, t.final_reward, spans_of(t)) for t in pipeline.trajectories]


def spans_of(trajectory: Trajectory) -> int:
    from headrace.schemas.packing import unpack_offsets

    assert trajectory.source is not None
    return len(unpack_offsets(trajectory.source.spans))


@pytest.mark.parametrize("restart", [False, True])
def test_a_new_trace_opens_the_next_segment_and_an_old_one_nothing(pipeline: Pipeline, restart: bool):
    log = pipeline.log

    def again() -> None:
        if restart:
            pipeline.assembler.restart()

    log.write(call(1, "t1"), call(2, "t2"))
    close(pipeline)
    again()
    log.write(call(3, "t1"), call(4, "t3"), feedback(0.5), call(5, "t3"), call(6, "t2"))
    pipeline.run()
    again()
    pipeline.run(2)
    begun = [e.attempt_id for e in log.records("attempts") if e.type == "started"]
    assert begun == ["chat-1", "chat~2-1"]
    log.write(call(7, "t1"), call(8, "t4"))
    close(pipeline)
    assert found(pipeline) == [("chat", 0, None, 2), ("chat~2", 0, 0.5, 3)]
    again()
    log.write(call(9, "t4"), call(10, "t5"))
    close(pipeline)
    assert found(pipeline)[2:] == [("chat~3", 0, None, 1)]
    states = log.last("rollouts")
    assert {i: (s.status, s.origin) for i, s in states.items()} == dict.fromkeys(
        ("chat", "chat~2", "chat~3"), ("succeeded", "external")
    )
    assert not log.dead


def test_feedback_goes_to_the_last_segment_or_to_the_one_whose_attempt_it_names(pipeline: Pipeline):
    log = pipeline.log
    log.write(call(1, "t1"))
    close(pipeline)
    log.write(call(2, "t2"))
    close(pipeline)
    log.write(feedback(1), feedback(2, attempt_id="chat-1"), feedback(3, attempt_id="chat~2-1"), feedback(4, "chat~2"))
    settle(pipeline.assembler, pipeline.lifecycle)
    late = [(rollout, revision) for rollout, revision, _, _ in found(pipeline) if revision]
    assert late == [("chat~2", 1), ("chat", 1)] or late == [("chat", 1), ("chat~2", 1)]
    last = {t.rollout_id: t for t in pipeline.trajectories}
    assert (last["chat"].final_reward, last["chat~2"].final_reward) == (2.0, 4.0)
    first = next(t for t in pipeline.trajectories if t.rollout_id == "chat")
    assert last["chat"].supersedes is not None
    assert last["chat"].supersedes.offset == next(
        m.offset() for m in log.messages("triplets") if log.decode(m) == first
    )


def test_the_same_feedback_twice_makes_one_revision(pipeline: Pipeline):
    pipeline.log.write(call(1, "t1"))
    close(pipeline)
    for _ in range(3):
        pipeline.log.write(feedback(1, key="k"), feedback(1, key="k"))
        pipeline.run(3600)
        pipeline.assembler.restart()
    settle(pipeline.assembler, pipeline.lifecycle)
    assert [(revision, reward) for _, revision, reward, _ in found(pipeline)] == [(0, None), (1, 1.0)]


@pytest.mark.parametrize("when", ["before its start", "while it is open", "a second time"])
def test_feedback_ends_an_external_rollout(pipeline: Pipeline, when: str):
    log = pipeline.log
    log.write(call(1, "t1"))
    if when == "before its start":
        log.write(feedback(0.5, end=True))
        pipeline.run()
        pipeline.assembler.restart()
    else:
        pipeline.run()
        pipeline.run(2)
        log.write(feedback(0.5))
        pipeline.run(1)
        assert not [e for e in log.records("attempts") if e.final]
        log.write(feedback(0.5, end=True))  # the same reward, which now says more
    for seconds in (0, 2, SETTINGS.settle.total_seconds() + 1):
        pipeline.run(seconds)
    if when == "a second time":
        log.write(feedback(0.5, end=True))
        pipeline.run(5)
    assert found(pipeline) == [("chat", 0, 0.5, 1)]
    assert [e.type for e in log.records("attempts") if e.final] == ["succeeded"]


def test_the_end_of_a_task_is_its_runners(pipeline: Pipeline):
    pipeline.log.write(started("ro"), feedback(1, "ro", end=True))
    pipeline.run()
    pipeline.run(60)
    assert not pipeline.trajectories
    pipeline.log.write(end("ro"))
    pipeline.run()
    assert found(pipeline) == [("ro", 0, 1.0, 0)]


def test_a_straggler_of_a_task_opens_nothing(pipeline: Pipeline):
    pipeline.log.write(started("ro"), end("ro"))
    pipeline.run()
    pipeline.log.write(span(1, "ro", trace_id="other"))
    close(pipeline)
    assert len(pipeline.trajectories) == 1


def test_a_new_trace_beyond_the_barrier_opens_the_next(pipeline: Pipeline):
    log = pipeline.log
    log.write(call(1, "t1"), feedback(1, end=True))
    pipeline.run()
    pipeline.run(2)
    log.now_ms += int((SETTINGS.settle.total_seconds() + 1) * 1000)
    for number in range(2, 6):
        log.write(call(number, f"t{number}"))
        pipeline.assembler.turn()
    close(pipeline)
    ids = [rollout for rollout, _, _, _ in found(pipeline)]
    assert len(ids) == len(set(ids)) <= 2
    assert sum(spans for _, _, _, spans in found(pipeline)) == 5


def test_expired_segments_are_forgotten(pipeline: Pipeline):
    for number in range(3):
        pipeline.log.write(call(number, f"t{number}"))
        close(pipeline)
    segments = pipeline.processor.memories[0].segments
    assert segments.last == {"chat": 3}
    segments.forget("chat")
    segments.forget("chat~3")
    assert segments.last == {"chat": 2}
    segments.forget("chat~2")
    assert not segments.last


def test_traces_survive_packing():
    hashes = [trace_hash(str(n)) for n in range(100)]
    assert list(unpack_traces(pack_traces(hashes))) == hashes
    assert not unpack_traces(b"\1\2\3")


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (None, "r~3"),
        ("r-1", "r"),
        ("r~2-1", "r~2"),
        ("r~3-1", "r~3"),
        ("r~4-1", "r~3"),
        ("r~x-1", "r~3"),
        ("own", "r~3"),
    ],
)
def test_the_segment_of_a_reward(attempt: str | None, expected: str):
    reward = Reward(rollout_id="r", attempt_id=attempt, reward_id="x", primary=True, value=1, source="grader", at=0)
    assert segment_of_reward(reward, 3) == expected
