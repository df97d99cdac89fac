"""Trajectories, runs and their steps as rows."""

from typing import Any

from headrace.schemas.records import RunManifest, TrainingStep, Trajectory, Triplet
from headrace.streams.view.rows import Place, Row, finite, json_text

TOKEN_BYTES = 4


def trajectory_row(trajectory: Trajectory, place: Place) -> Row:
    """Of `tables.trajectories`. `triplets` is a summary: token counts instead of tokens, which stay in the log."""
    version, supersedes, found = trajectory.policy_version, trajectory.supersedes, trajectory.diagnostics
    triplets = [_summary(triplet) for triplet in trajectory.triplets]
    return (
        *place,
        trajectory.rollout_id,
        trajectory.revision,
        trajectory.attempt_id,
        trajectory.group_id,
        trajectory.group_size,
        trajectory.sample_index,
        trajectory.mode,
        trajectory.run_id,
        trajectory.origin,
        trajectory.session_id,
        trajectory.status,
        trajectory.input,
        finite(trajectory.final_reward),
        json_text(trajectory.rewards),
        trajectory.resources_id,
        trajectory.policy,
        version.min if version is not None else None,
        version.max if version is not None else None,
        found.calls,
        found.kept,
        json_text(found.dropped),
        len(triplets),
        sum(t["prompt_tokens"] for t in triplets),
        sum(t["response_tokens"] for t in triplets),
        json_text(triplets),
        trajectory.conversations,
        supersedes.partition if supersedes is not None else None,
        supersedes.offset if supersedes is not None else None,
        trajectory.assembled_at,
    )


def _summary(triplet: Triplet) -> dict[str, Any]:
    prefix, version = triplet.prompt_prefix, triplet.policy_version
    return {
        "span_id": triplet.span_id,
        "choice": triplet.choice,
        "model": triplet.model,
        "agent_name": triplet.agent_name,
        "prompt_tokens": len(triplet.prompt_token_ids) // TOKEN_BYTES + (prefix.length if prefix is not None else 0),
        "response_tokens": len(triplet.response_token_ids) // TOKEN_BYTES,
        "logprobs": triplet.logprobs is not None,
        "reward": triplet.reward,
        "finish_reason": triplet.finish_reason,
        "policy_version": None if version is None else [version.min, version.max],
    }


def step_row(step: TrainingStep, place: Place) -> Row:
    """Of `tables.training_steps`."""
    window, state = step.window, step.state
    reasons = {d.reason: len(d.samples) for d in window.dropped}
    return (
        *place,
        step.run_id,
        step.step,
        step.policy,
        step.policy_version,
        len(window.samples),
        sum(reasons.values()),
        json_text(reasons),
        step.decided,
        json_text(window),
        json_text(step.metrics),
        json_text(step.staleness),
        state.uri if state is not None else None,
        state.sha256 if state is not None else None,
        step.started_at,
        step.ended_at,
    )


def run_row(run: RunManifest, place: Place) -> Row:
    """Of `tables.runs`."""
    parent = run.parent
    return (
        *place,
        run.run_id,
        run.algorithm,
        run.policy,
        run.settings,
        run.seed,
        json_text(run.base_weights) if run.base_weights is not None else None,
        parent.run_id if parent is not None else None,
        parent.step if parent is not None else None,
        json_text(run.versions),
        run.device,
        run.threads,
        run.dtype,
        run.offline,
        run.created_at,
    )
