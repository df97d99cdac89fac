"""CPU time of assembly: one gateway call with one reward (the common rollout), and a long traced attempt.

python tests/bench/assembly.py [--rollouts N]
"""

import argparse
import json
import time

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    AttemptEvent,
    Choice,
    ModelCall,
    Reward,
    Span,
    SpanStatus,
    TaskFacts,
    Trajectory,
    Usage,
    VersionRange,
)
from headrace.streams.assembly.records import Positions, RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble
from headrace.trainers.rows import make_rows

FACTS = TaskFacts(group_id="g", group_size=16, sample_index=3, mode="train", run_id="run", input='{"question": 1}')
SETTINGS = AssemblySettings()
Common = tuple[AttemptEvent, AttemptEvent, Span, Reward]


def common(number: int) -> Common:
    """The records of a rollout as the demo writes them."""
    rollout_id, attempt_id = f"ro-{number}", f"ro-{number}-1"
    call = ModelCall(
        model="policy",
        policy="policy",
        policy_version=VersionRange(min=1, max=1),
        response_id=f"chatcmpl-{number}",
        prompt_token_ids=pack_int32(range(40)),
        choices=[
            Choice(
                index=0,
                response_token_ids=pack_int32(range(4)),
                logprobs=pack_float32([-0.5] * 4),
                finish_reason="stop",
                text="5",
            )
        ],
        usage=Usage(input_tokens=40, output_tokens=4),
    )
    started = AttemptEvent(rollout_id=rollout_id, attempt_id=attempt_id, type="started", task=FACTS, at=1)
    ended = AttemptEvent(
        rollout_id=rollout_id, attempt_id=attempt_id, type="succeeded", final=True, complete=True, at=4
    )
    span = Span(
        rollout_id=rollout_id,
        attempt_id=attempt_id,
        source="gateway",
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        name="chat policy",
        start=1,
        end=2,
        llm=call,
    )
    reward = Reward(
        rollout_id=rollout_id,
        attempt_id=attempt_id,
        reward_id=str(number),
        primary=True,
        value=1.0,
        source="agent",
        at=3,
    )
    return started, ended, span, reward


def assemble_common(rollouts: list[Common]) -> None:
    for number, (started, ended, span, reward) in enumerate(rollouts):
        records = RolloutRecords(started.rollout_id)
        records.add_event(started, 2 * number, 1)
        records.add_span(span, number, 2)
        records.add_reward(reward, number, 3)
        records.add_event(ended, 2 * number + 1, 4)
        assemble(records, SETTINGS, assembled_at=5, limit=Positions(number + 1, number + 1))


def traced(turns: int, step: int) -> Trajectory:
    """An attempt of many turns, traced by a library: an agent, a call and a tool a turn, prompts that grow."""
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="started", task=FACTS, at=1), 0, 1)
    for turn in range(turns):
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.id": f"r{turn}",
            "gen_ai.response.finish_reasons": ["stop"],
            "prompt_token_ids": list(range(step * turn + 1)),
            "response_token_ids": list(range(step * turn + 1, step * turn + step // 2)),
        }
        for place, (name, told) in enumerate((("agent", {"agent.name": "a"}), ("chat", attributes), ("tool", {}))):
            span = Span(
                rollout_id="ro",
                attempt_id="at",
                source="otlp",
                trace_id="t",
                span_id=f"{turn}.{place}",
                parent_id=f"{turn}.0" if place else None,
                name=name,
                status=SpanStatus(code="OK"),
                start=100 * turn + place,
                end=100 * turn + 99 - place,
                attributes=json.dumps(told),
            )
            records.add_span(span, 3 * turn + place, 2)
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="succeeded", final=True, at=1), 1, 9)
    begin = time.process_time()
    trajectory = assemble(records, SETTINGS, assembled_at=5)
    rows = make_rows(trajectory)
    took = time.process_time() - begin
    size = sum(len(t.prompt_token_ids) + len(t.response_token_ids) for t in trajectory.triplets)
    print(
        f"{turns} traced turns, last prompt {step * turns} tokens: {took * 1e3:.1f} ms, "
        f"{len(rows.rows)} row(s), {size / 1e3:.0f} kB of ids"
    )
    return trajectory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=5000)
    options = parser.parse_args()
    rollouts = [common(number) for number in range(options.rollouts)]
    times: list[float] = []
    for _ in range(7):
        begin = time.process_time()
        assemble_common(rollouts)
        times.append((time.process_time() - begin) / len(rollouts))
    print(f"one call, one reward: {min(times) * 1e6:.1f} µs of CPU a rollout (best of 7)")
    traced(20, 200)
    traced(200, 50)


if __name__ == "__main__":
    main()
