"""Synthetic trajectories for the trainers' tests."""

from typing import Any

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import LogPosition, Sampling, Trajectory, Triplet, VersionRange

RUN, POLICY = "run-1", "policy"


def triplet(prompt: list[int], response: list[int], logprobs: list[float] | None, **fields: Any) -> Triplet:
    """One call, at temperature 1 by version 0 unless told otherwise."""
    values: dict[str, Any] = {
        "span_id": "0" * 16,
        "policy": POLICY,
        "policy_version": VersionRange(min=0, max=0),
        "sampling": Sampling(),
        "logprobs_mode": "processed",
    }
    return Triplet(
        prompt_token_ids=pack_int32(prompt),
        response_token_ids=pack_int32(response),
        logprobs=None if logprobs is None else pack_float32(logprobs),
        **(values | fields),
    )


def trajectory(group: str | None, index: int, **fields: Any) -> Trajectory:
    """Sample `index` of a group of two with reward `index`, by version 0 unless told otherwise."""
    version = fields.get("policy_version") or VersionRange(min=0, max=0)
    values: dict[str, Any] = {
        "rollout_id": f"{group}-{index}",
        "group_id": group,
        "group_size": 2,
        "sample_index": index,
        "mode": "train",
        "run_id": RUN,
        "status": "succeeded",
        "final_reward": float(index),
        "policy": POLICY,
        "policy_version": version,
        "assembled_at": 0,
        "triplets": [triplet([5, 6, 7], [8, 9], [-0.5, -0.25], policy_version=version)],
    }
    return Trajectory(**(values | fields))


def at(partition: int, offset: int) -> LogPosition:
    return LogPosition(partition=partition, offset=offset)
