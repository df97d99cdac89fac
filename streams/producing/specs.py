"""What is asked for, and the Task records that come of it. Pure."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.schemas.records import Task, TaskConfig
from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.partitioner import MAX_ID_LENGTH, SEGMENT_MARK

MODES = ("train", "val", "test")
RETRIED = ("failed", "timeout", "unresponsive")
"""Attempt statuses that a retry may follow."""


class TaskFieldError(HeadraceError):
    """A task that cannot be asked for.

    Attributes:
        field: which one, dotted below `config`.
        detail: what is wrong with it.
    """

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What is asked for once; a group asks for it several times.

    Attributes:
        input: a JSON value as text.
        rollout_id: made up where it is not given.
        group_id: specs that share one make one group, in their order.
    """

    input: str
    rollout_id: str | None = None
    group_id: str | None = None
    mode: str | None = None
    resources_id: str | None = None
    config: TaskConfig | None = None
    metadata: dict[str, str] = field(default_factory=dict[str, str])


def json_text(value: Any) -> str:
    """A Python value as JSON text.

    Raises:
        TaskFieldError: JSON has no such value (NaN and infinities included).
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskFieldError("input", f"is no JSON value: {error}") from error


def check(spec: TaskSpec) -> TaskSpec:
    """The spec itself.

    Raises:
        TaskFieldError: a field has a value that no task may have.
    """
    for name, value in (("rollout_id", spec.rollout_id), ("group_id", spec.group_id)):
        if value == "":
            raise TaskFieldError(name, "is empty; leave it out to have one made up")
        if value is not None and (len(value) > MAX_ID_LENGTH or not value.isprintable()):
            raise TaskFieldError(name, f"is {value[:40]!r}...: at most {MAX_ID_LENGTH} printable characters")
    if spec.rollout_id is not None and SEGMENT_MARK in spec.rollout_id:
        raise TaskFieldError("rollout_id", f"contains {SEGMENT_MARK!r}, which marks the segments of an id")
    if spec.mode is not None and spec.mode not in MODES:
        raise TaskFieldError("mode", f"is {spec.mode!r}; choose one of {', '.join(MODES)}")
    config = spec.config
    if config is None:
        return spec
    for name, seconds in (
        ("timeout_seconds", config.timeout_seconds),
        ("unresponsive_seconds", config.unresponsive_seconds),
    ):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise TaskFieldError(f"config.{name}", f"is {seconds}; it must be positive")
    if config.max_attempts < 1:
        raise TaskFieldError("config.max_attempts", f"is {config.max_attempts}; it must be at least 1")
    for status in config.retry_condition:
        if status not in RETRIED:
            raise TaskFieldError("config.retry_condition", f"has {status!r}; there are {', '.join(RETRIED)}")
    return spec


def spec_of(
    input: Any,
    *,
    rollout_id: str | None = None,
    group_id: str | None = None,
    mode: str | None = None,
    resources_id: str | None = None,
    config: TaskConfig | Mapping[str, Any] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> TaskSpec:
    """The spec of what is asked for from Python.

    Raises:
        TaskFieldError: a field has a value that no task may have.
    """
    if config is not None and not isinstance(config, TaskConfig):
        known = TaskConfig.__struct_fields__
        unknown = [name for name in config if name not in known]
        if unknown:
            raise TaskFieldError(f"config.{unknown[0]}", f"is unknown; there are {', '.join(known)}")
        try:
            config = msgspec.convert(dict(config), TaskConfig)
        except msgspec.ValidationError as error:
            raise TaskFieldError("config", str(error)) from error
    return check(
        TaskSpec(
            input=json_text(input),
            rollout_id=rollout_id,
            group_id=group_id,
            mode=mode,
            resources_id=resources_id,
            config=config,
            metadata=dict(metadata or {}),
        )
    )


def new_rollout_id() -> str:
    """An id that nobody else has: 80 random bits."""
    return f"ro-{uuid.uuid4().hex[:20]}"


def new_group_id() -> str:
    """As `new_rollout_id`."""
    return f"gr-{uuid.uuid4().hex[:20]}"


def tasks_of(
    specs: Iterable[TaskSpec],
    now: Callable[[], int],
    *,
    group_size: int = 1,
    mode: str | None = None,
    run_id: str | None = None,
) -> Iterator[Task]:
    """The tasks of specs: `group_size` of each, which share a group and are numbered by `sample_index` from 0.

    Specs with the same `group_id` are members of one group, of `group_size` for each of them. A spec alone and without
    a `group_id` belongs to no group.

    Args:
        now: microseconds since the epoch, asked for each task.
        mode: of specs that have none.
        run_id: the training run that asks.
    """
    specs = list(specs)
    sizes = Counter(spec.group_id for spec in specs if spec.group_id is not None)
    numbered: Counter[str] = Counter()
    for spec in specs:
        group_id = spec.group_id or (new_group_id() if group_size > 1 else None)
        size = group_size * (sizes[spec.group_id] if spec.group_id is not None else 1)
        for _ in range(group_size):
            index = 0
            if group_id is not None:
                index = numbered[group_id]
                numbered[group_id] += 1
            yield Task(
                rollout_id=spec.rollout_id or new_rollout_id(),
                group_id=group_id,
                group_size=size,
                sample_index=index,
                input=spec.input,
                mode=spec.mode or mode,
                run_id=run_id,
                resources_id=spec.resources_id,
                config=spec.config or TaskConfig(),
                metadata=spec.metadata,
                enqueued_at=now(),
            )
