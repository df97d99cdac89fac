"""The assembler on real Kafka: each trajectory once, through kill -9 and over late rewards."""

import signal
from typing import Any

import pytest

from headrace.schemas.packing import pack_float32, pack_int32, unpack_int32, unpack_offsets
from headrace.schemas.records import (
    AttemptEvent,
    Choice,
    ModelCall,
    Record,
    Reward,
    Span,
    TaskFacts,
    Trajectory,
)
from headrace.streams.kafka.dead_letters import parse

pytestmark = pytest.mark.kafka


def started(n: int, attempt: int = 1) -> AttemptEvent:
    facts = TaskFacts(offset=n, group_id=f"g{n // 4}", group_size=4, sample_index=n % 4, mode="train", input=f'"{n}"')
    return event(n, "started", attempt=attempt, task=facts)


def event(n: int, type: str, *, attempt: int = 1, **more: Any) -> AttemptEvent:
    return AttemptEvent(rollout_id=f"ro{n}", attempt_id=f"ro{n}-{attempt}", attempt=attempt, type=type, at=2, **more)


def end(n: int, *, attempt: int = 1, **more: Any) -> AttemptEvent:
    return event(n, "succeeded", attempt=attempt, **{"final": True, "complete": True, **more})


def call(n: int, number: int = 0, *, attempt: int = 1) -> Span:
    """A model call that samples the token n."""
    return Span(
        rollout_id=f"ro{n}",
        attempt_id=f"ro{n}-{attempt}",
        source="gateway",
        trace_id=f"{n:032x}",
        span_id=f"{(n << 8) + (attempt << 4) + number:016x}",
        name="chat policy",
        start=1000 + number * 10,
        end=1005 + number * 10,
        llm=ModelCall(
            model="policy",
            response_id=f"c{n}-{attempt}-{number}",
            prompt_token_ids=pack_int32([1, 2, number]),
            choices=[
                Choice(
                    index=0,
                    response_token_ids=pack_int32([n]),
                    logprobs=pack_float32([-0.5]),
                    finish_reason="stop",
                    text="x",
                )
            ],
        ),
    )


def reward(n: int, reward_id: str = "", *, value: float = 1.0, attempt: int | None = 1, **more: Any) -> Reward:
    return Reward(
        rollout_id=f"ro{n}",
        attempt_id=f"ro{n}-{attempt}" if attempt else None,
        reward_id=reward_id or f"rw{n}",
        primary=True,
        value=value,
        source="agent",
        at=3,
        **more,
    )


def whole(n: int) -> list[Record]:
    return [started(n), call(n), reward(n), end(n)]


def trajectories(log: Any, n: int | None = None) -> list[Trajectory]:
    found: list[Trajectory] = log.records("triplets")
    return found if n is None else [t for t in found if t.rollout_id == f"ro{n}"]


def assembled(log: Any, n: int) -> Any:
    return next((a for a in reversed(log.records("assembled")) if a.rollout_id == f"ro{n}"), None)


def test_a_complete_rollout_becomes_a_trajectory(log: Any, start_processor: Any, wait_for: Any):
    process = start_processor("assembler", "w")
    log.write(*whole(7))
    (t,) = wait_for(lambda: trajectories(log))
    assert (t.rollout_id, t.attempt_id, t.group_id, t.group_size, t.sample_index) == ("ro7", "ro7-1", "g1", 4, 3)
    assert (t.mode, t.input, t.status, t.revision, t.final_reward) == ("train", '"7"', "succeeded", 0, 1.0)
    (triplet,) = t.triplets
    assert unpack_int32(triplet.response_token_ids) == [7]
    assert triplet.reward == 1.0
    memory = assembled(log, 7)
    (message,) = log.messages("triplets")
    assert (memory.state, memory.revision, memory.reward_ids) == ("closed", 0, ["rw7"])
    assert (memory.trajectory.partition, memory.trajectory.offset) == (message.partition(), message.offset())
    assert memory.source == t.source
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0


def test_killed_while_one_is_held_open_no_trajectory_appears_twice(log: Any, start_processor: Any, wait_for: Any):
    first = start_processor("assembler", "w")
    log.write(started(0), call(0))  # held open: offsets stay behind it
    for n in range(1, 60):
        log.write(*whole(n))
        if n == 30:
            wait_for(lambda: len(trajectories(log)) >= 10)
            first.send_signal(signal.SIGKILL)
            first.wait()
    second = start_processor("assembler", "w")
    wait_for(lambda: len({t.rollout_id for t in trajectories(log)}) == 59)
    second.send_signal(signal.SIGKILL)
    second.wait()
    log.write(call(0, 1), reward(0), end(0))
    start_processor("assembler", "w")
    (held,) = wait_for(lambda: trajectories(log, 0))
    assert len(held.triplets) == 2
    log.write(*whole(60))
    wait_for(lambda: trajectories(log, 60))
    ids = [t.rollout_id for t in trajectories(log) if t.revision == 0]
    assert sorted(ids) == sorted(f"ro{n}" for n in range(61))
    assert all(t.revision == 0 and t.triplets for t in trajectories(log))


def test_duplicates_count_once(log: Any, start_processor: Any, wait_for: Any):
    log.write(started(1), call(1), call(1), reward(1), reward(1, value=0.0), end(1), end(1), event(1, "failed"))
    start_processor("assembler", "w")
    (t,) = wait_for(lambda: trajectories(log))
    assert (len(t.triplets), t.final_reward, t.status) == (1, 1.0, "succeeded")
    log.write(*whole(2))
    wait_for(lambda: trajectories(log, 2))
    assert len(trajectories(log, 1)) == 1


def test_a_late_reward_makes_the_next_revision(log: Any, start_processor: Any, wait_for: Any):
    first = start_processor("assembler", "w")
    log.write(*whole(1))
    wait_for(lambda: trajectories(log, 1))
    log.write(reward(1))  # known
    log.write(reward(1, "late", value=0.25, attempt=None))
    _, second = wait_for(lambda: len(found := trajectories(log, 1)) == 2 and found)
    offset = next(m.offset() for m in log.messages("triplets") if m.key() == b"g0")
    assert (second.revision, second.final_reward, second.supersedes.offset) == (1, 0.25, offset)
    assert len(second.triplets) == 1
    first.send_signal(signal.SIGKILL)
    first.wait()
    log.write(reward(1, "later", value=0.5, attempt=None))
    start_processor("assembler", "w")
    *_, third = wait_for(lambda: len(found := trajectories(log, 1)) == 3 and found)
    assert (third.revision, third.final_reward) == (2, 0.5)
    assert assembled(log, 1).reward_ids == ["rw1", "late", "later"]
    assert len(unpack_offsets(third.source.rewards)) == 3


def test_an_attempt_that_is_retried_is_freed_and_read_again_at_the_close(log: Any, start_processor: Any, wait_for: Any):
    first = start_processor("assembler", "w")
    log.write(started(1), call(1), event(1, "failed"))
    # The end may be read before the span, which is then added to the source.
    memory = wait_for(lambda: (m := assembled(log, 1)) and len(unpack_offsets(m.source.spans)) == 1 and m)
    assert (memory.state, memory.trajectory) == ("waiting", None)
    first.send_signal(signal.SIGKILL)
    first.wait()
    log.write(started(1, attempt=2), call(1, attempt=2), reward(1, attempt=2), end(1, attempt=2))
    start_processor("assembler", "w")
    (t,) = wait_for(lambda: trajectories(log, 1))
    assert (t.attempt_id, t.status, len(t.triplets)) == ("ro1-2", "succeeded", 1)
    assert t.diagnostics.dropped == {"superseded_attempt": 1}
    assert len(unpack_offsets(t.source.spans)) == 2
    assert assembled(log, 1).state == "closed"


def test_an_incomplete_end_waits_for_stragglers(log: Any, start_processor: Any, wait_for: Any):
    start_processor("assembler", "w", "--settle-seconds", "5")
    log.write(started(1), call(1), end(1, complete=False))
    log.write(*whole(2))
    wait_for(lambda: trajectories(log, 2))
    assert not trajectories(log, 1)
    log.write(call(1, 1), reward(1))
    (t,) = wait_for(lambda: trajectories(log, 1))
    assert (len(t.triplets), t.final_reward) == (2, 1.0)


def test_an_end_without_a_start_gives_a_trajectory_without_triplets(log: Any, start_processor: Any, wait_for: Any):
    start_processor("assembler", "w")
    facts = TaskFacts(group_id="g", group_size=2, input='"q"')
    log.write(
        AttemptEvent(rollout_id="ro1", type="cancelled", final=True, complete=True, task=facts, at=2),
    )
    (t,) = wait_for(lambda: trajectories(log))
    assert (t.status, t.triplets, t.group_id, t.input) == ("cancelled", [], "g", '"q"')


def test_a_reward_that_is_no_number_is_refused(log: Any, start_processor: Any, wait_for: Any):
    start_processor("assembler", "w")
    log.write(started(1), call(1), reward(1, "nan", value=float("nan")), reward(1), end(1))
    (t,) = wait_for(lambda: trajectories(log))
    assert t.final_reward == 1.0
    (letter,) = wait_for(lambda: log.messages("rewards", dead=True))
    assert parse(letter).reason == "not_finite"


@pytest.mark.slow
def test_a_member_that_was_paused_past_its_time_writes_nothing_twice(log: Any, start_processor: Any, wait_for: Any):
    first = start_processor("assembler", "w1")
    log.write(*(record for n in range(20) for record in whole(n)))
    wait_for(lambda: len({t.rollout_id for t in trajectories(log)}) == 20)
    log.write(*(record for n in range(20, 40) for record in whole(n)))
    first.send_signal(signal.SIGSTOP)
    start_processor("assembler", "w2")  # gets the partitions when the other's session is over
    log.write(*(record for n in range(40, 60) for record in whole(n)))
    wait_for(lambda: len({t.rollout_id for t in trajectories(log)}) == 60)
    first.send_signal(signal.SIGCONT)
    for n in range(60, 100):
        log.write(*whole(n))
    wait_for(lambda: len({t.rollout_id for t in trajectories(log)}) == 100)
    # The writer does not order topics, so a reward may come after its end and make a revision: that is no second one.
    ids = [t.rollout_id for t in trajectories(log) if t.revision == 0]
    assert len(ids) == len(set(ids))
    assert first.poll() is None
