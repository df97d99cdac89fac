"""Records as rows: tuples in the order of their table's columns."""

import math
from typing import Any, NamedTuple

import msgspec

from headrace.schemas.records import AttemptState, ResourcesUpdate, Reward, RolloutState, WorkerState

Row = tuple[Any, ...]


class Place(NamedTuple):
    """Where a record stands in its topic, and when it was appended (microseconds since the epoch)."""

    partition: int
    offset: int
    at: int


def json_text(value: Any) -> str:
    """A value or record as JSON."""
    return msgspec.json.encode(value).decode()


def finite(value: float | None) -> float | None:
    """A number that both databases hold: NaN and the infinities are none."""
    return value if value is not None and math.isfinite(value) else None


def rollout_row(state: RolloutState, place: Place) -> Row:
    """Of `tables.rollouts`."""
    error = next((a.error for a in reversed(state.attempts) if a.error is not None), None)
    return (
        state.rollout_id,
        state.status,
        state.mode,
        state.run_id,
        state.group_id,
        state.group_size,
        state.sample_index,
        state.resources_id,
        state.origin,
        len(state.attempts),
        error.type if error is not None else None,
        error.message if error is not None else None,
        state.enqueued_at,
        state.ended_at,
        state.cancel_requested_at,
        state.task_offset,
        json_text(state.config),
        json_text(state.metadata),
        state.applied.tasks,
        state.applied.attempts,
        *place,
    )


def attempt_rows(state: RolloutState) -> list[Row]:
    """Of `tables.attempts`: all of a rollout, by their position in its state."""
    return [_attempt_row(state.rollout_id, position, attempt) for position, attempt in enumerate(state.attempts)]


def _attempt_row(rollout_id: str, position: int, attempt: AttemptState) -> Row:
    error = attempt.error
    return (
        rollout_id,
        position,
        attempt.attempt_id,
        attempt.attempt,
        attempt.delivery,
        attempt.status,
        attempt.worker_id,
        attempt.started_at,
        attempt.last_heartbeat_at,
        attempt.last_activity_at,
        attempt.ended_at,
        error.type if error is not None else None,
        error.message if error is not None else None,
        error.stacktrace if error is not None else None,
    )


def reward_row(reward: Reward, place: Place) -> Row:
    """Of `tables.rewards`."""
    return (
        *place,
        reward.rollout_id,
        reward.reward_id,
        reward.attempt_id,
        reward.name,
        reward.primary,
        finite(reward.value),
        reward.span_id,
        reward.source,
        reward.at,
        json_text(reward.metadata),
    )


def resources_row(update: ResourcesUpdate, place: Place) -> Row:
    """Of `tables.resources`."""
    return (
        update.resources_id,
        update.name,
        update.version,
        json_text(update.resources),
        update.run_id,
        update.step,
        update.created_at,
        *place,
    )


def worker_row(worker: WorkerState, place: Place) -> Row:
    """Of `tables.workers`."""
    return (
        worker.worker_id,
        worker.kind,
        worker.host,
        worker.pid,
        worker.status,
        worker.endpoint,
        worker.policy,
        worker.loading_version,
        worker.loaded_version,
        worker.weights_id,
        json_text(worker.counters),
        worker.version,
        worker.started_at,
        worker.last_heartbeat_at,
        *place,
    )
