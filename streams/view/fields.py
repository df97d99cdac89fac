"""Rows back as what they say: RolloutStates, and dicts with JSON decoded."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.schemas.records import AppliedOffsets, AttemptState, ErrorInfo, RolloutState, TaskConfig
from headrace.streams.view.source import Fields

JSON_COLUMNS = frozenset(
    {
        "attributes",
        "events",
        "links",
        "resource",
        "scope",
        "request",
        "response",
        "metadata",
        "input",
        "rewards",
        "dropped",
        "triplets",
        "conversations",
    }
)
_config = msgspec.json.Decoder(TaskConfig).decode
_texts = msgspec.json.Decoder(dict[str, str]).decode


def fields_of(names: Iterable[str], row: Iterable[Any]) -> Fields:
    """A row of spans, rewards or trajectories by column, with the values that JSON texts hold."""
    return {name: _value(name, value) for name, value in zip(names, row, strict=True)}


def _value(name: str, value: Any) -> Any:
    if name not in JSON_COLUMNS or not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:  # what it should be is the writer's business; it is shown as it is
        return value


def rollout_of(row: Mapping[Any, Any], attempts: Iterable[Mapping[Any, Any]]) -> RolloutState:
    """The state that a row of rollouts and those of its attempts, by position, were made from."""
    return RolloutState(
        rollout_id=row["rollout_id"],
        status=row["status"],
        mode=row["mode"],
        resources_id=row["resources_id"],
        config=_config(row["config"]),
        metadata=_texts(row["metadata"]),
        attempts=[_attempt(a) for a in attempts],
        task_offset=row["task_offset"],
        group_id=row["group_id"],
        group_size=row["group_size"],
        sample_index=row["sample_index"],
        run_id=row["run_id"],
        origin=row["origin"],
        cancel_requested_at=row["cancel_requested_at"],
        applied=AppliedOffsets(tasks=row["applied_tasks"], attempts=row["applied_attempts"]),
        enqueued_at=row["enqueued_at"],
        ended_at=row["ended_at"],
    )


def _attempt(row: Mapping[Any, Any]) -> AttemptState:
    error = None
    if row["error_type"] is not None:
        error = ErrorInfo(type=row["error_type"], message=row["error_message"], stacktrace=row["error_stacktrace"])
    return AttemptState(
        attempt_id=row["attempt_id"],
        attempt=row["attempt"],
        delivery=row["delivery"],
        status=row["status"],
        worker_id=row["worker_id"],
        started_at=row["started_at"],
        last_heartbeat_at=row["last_heartbeat_at"],
        last_activity_at=row["last_activity_at"],
        ended_at=row["ended_at"],
        error=error,
    )
