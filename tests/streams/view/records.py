"""Records that the tests of the view are made of."""

import json
from typing import Any

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    AttemptState,
    Choice,
    Diagnostics,
    Dropped,
    ErrorInfo,
    LogPosition,
    ModelCall,
    PromptPrefix,
    ResourcesUpdate,
    Reward,
    RolloutState,
    RunManifest,
    Span,
    TaskConfig,
    TrainerState,
    TrainingStep,
    Trajectory,
    Triplet,
    Usage,
    VersionRange,
    Weights,
    Window,
    WorkerState,
)

SECOND = 1_000_000
NOON = 1_700_000_000 * SECOND


def rollout(n: int = 1, status: str = "succeeded", **changes: Any) -> RolloutState:
    """A rollout whose first attempt failed and whose second has the rollout's status."""
    values: dict[str, Any] = {
        "rollout_id": f"ro-{n}",
        "status": status,
        "mode": "train",
        "config": TaskConfig(timeout_seconds=9.5, max_attempts=2, retry_condition=["failed"]),
        "metadata": {"who": "me"},
        "attempts": [
            AttemptState(
                attempt_id=f"ro-{n}-1",
                attempt=1,
                status="failed",
                worker_id="w",
                started_at=NOON,
                ended_at=NOON + SECOND,
                error=ErrorInfo(type="ValueError", message="no", stacktrace="line 1"),
            ),
            AttemptState(attempt_id=f"ro-{n}-2", attempt=2, status=status, started_at=NOON + SECOND),
        ],
        "task_offset": n,
        "group_id": "g",
        "group_size": 4,
        "sample_index": n % 4,
        "run_id": "run",
        "enqueued_at": NOON + n * SECOND,
        "ended_at": NOON + (n + 2) * SECOND if status in ("succeeded", "failed", "cancelled") else None,
    }
    return RolloutState(**(values | changes))


def span(n: int = 1, rollout_id: str = "ro-1", **changes: Any) -> Span:
    """A model call of the gateway: 60 tokens in, 4 out."""
    values: dict[str, Any] = {
        "rollout_id": rollout_id,
        "attempt_id": f"{rollout_id}-2",
        "source": "gateway",
        "trace_id": f"{n:032x}",
        "span_id": f"{n:016x}",
        "name": "chat policy",
        "kind": "CLIENT",
        "start": NOON * 1000,
        "end": NOON * 1000 + 12_500_000,
        "attributes": json.dumps({"gen_ai.operation.name": "chat", "agent.name": "solver"}),
        "llm": ModelCall(
            model="policy",
            policy="policy",
            policy_version=VersionRange(min=3, max=4),
            response_id=f"chatcmpl-{n}",
            prompt_token_ids=pack_int32(list(range(60))),
            choices=[
                Choice(
                    index=0,
                    response_token_ids=pack_int32([5, 6, 7, 2]),
                    logprobs=pack_float32([-0.1] * 4),
                    finish_reason="stop",
                    text="7",
                )
            ],
            usage=Usage(input_tokens=60, output_tokens=4),
            request='{"messages": []}',
            response="{}",
        ),
    }
    return Span(**(values | changes))


def reward(n: int = 1, rollout_id: str = "ro-1", value: float = 0.5, **changes: Any) -> Reward:
    """A primary reward of the rollout's second attempt."""
    values: dict[str, Any] = {
        "rollout_id": rollout_id,
        "attempt_id": f"{rollout_id}-2",
        "reward_id": f"rw-{n}",
        "primary": True,
        "value": value,
        "source": "agent",
        "at": NOON,
    }
    return Reward(**(values | changes))


def trajectory(n: int = 1, revision: int = 0, **changes: Any) -> Trajectory:
    """Two triplets, the second with the first one's prompt and response as its prefix."""
    first = Triplet(prompt_token_ids=pack_int32([1, 2, 3]), response_token_ids=pack_int32([4]), span_id="a", reward=1.0)
    second = Triplet(
        prompt_token_ids=pack_int32([5]),
        prompt_prefix=PromptPrefix(triplet=0, length=4),
        response_token_ids=pack_int32([6, 7]),
        span_id="b",
        policy_version=VersionRange(min=1, max=1),
    )
    values: dict[str, Any] = {
        "rollout_id": f"ro-{n}",
        "group_id": "g",
        "status": "succeeded",
        "triplets": [first, second],
        "final_reward": 1.0,
        "rewards": {"primary": 1.0},
        "policy": "policy",
        "policy_version": VersionRange(min=1, max=2),
        "diagnostics": Diagnostics(calls=3, kept=2, dropped={"no_token_ids": 1}),
        "revision": revision,
        "assembled_at": NOON,
    }
    return Trajectory(**(values | changes))


def step(n: int = 1, **changes: Any) -> TrainingStep:
    """A step that trained two samples and dropped one."""
    window = Window(
        samples=[LogPosition(partition=0, offset=1), LogPosition(partition=1, offset=2)],
        dropped=[Dropped(reason="stale", samples=[LogPosition(partition=0, offset=0)])],
    )
    values: dict[str, Any] = {
        "run_id": "run",
        "step": n,
        "policy": "policy",
        "policy_version": n,
        "window": window,
        "state": TrainerState(uri="file:///s", sha256="00"),
        "metrics": {"loss": 0.5},
        "staleness": {"0": 2},
        "started_at": NOON,
        "ended_at": NOON + SECOND,
    }
    return TrainingStep(**(values | changes))


def resources(n: int = 1) -> ResourcesUpdate:
    """A publication of weights."""
    weights = Weights(policy="policy", version=n, weights_id="w", uri="file:///w")
    return ResourcesUpdate(
        resources_id=f"rs-{n}", name="policy", version=n, resources={"policy": weights}, created_at=NOON
    )


def manifest() -> RunManifest:
    """The beginning of a run."""
    return RunManifest(run_id="run", algorithm="grpo", policy="policy", created_at=NOON)


def worker(name: str = "w", status: str = "idle") -> WorkerState:
    """A gateway."""
    return WorkerState(
        worker_id=name,
        kind="gateway",
        host="h",
        pid=1,
        status=status,
        counters={"calls": 3},
        started_at=NOON,
        last_heartbeat_at=NOON,
    )
