"""Attempt events as a runner writes them."""

import traceback

from headrace.schemas.records import AttemptEvent, ErrorInfo, Task, TaskFacts
from headrace.streams.agent.emit import type_name
from headrace.streams.ends import retry_follows
from headrace.streams.kafka.clock import wall_us
from headrace.streams.runner.dispatch.values import Entry, Start
from headrace.streams.task_facts import NO_INPUT, facts_of

MESSAGE_CHARACTERS = 10_000
STACK_CHARACTERS = 50_000  # the end of a stack trace is what tells


def facts(task: Task, offset: int, resources_id: str | None, *, with_input: bool = True) -> TaskFacts:
    """The facts of a task, with the resources that it is run with."""
    found = facts_of(task, offset)
    found.resources_id = resources_id
    if not with_input:
        found.input = NO_INPUT
    return found


def started(start: Start, worker_id: str, resources_id: str | None, *, with_input: bool = True) -> AttemptEvent:
    """The start of a delivery."""
    entry = start.entry
    return _event(
        start, "started", worker_id, task=facts(entry.task, entry.offset, resources_id, with_input=with_input)
    )


def sign(start: Start, kind: str, worker_id: str) -> AttemptEvent:
    """A `heartbeat` or an `activity`."""
    return _event(start, kind, worker_id)


def ended(start: Start, status: str, worker_id: str, error: ErrorInfo | None) -> AttemptEvent:
    """The end of a delivery; the retry rule says whether it is final."""
    task = start.entry.task
    retried = retry_follows(status, task.attempt, task.config.max_attempts, task.config.retry_condition)
    event = _event(start, status, worker_id)
    event.final = status == "cancelled" or not retried
    event.complete = True
    event.error = error
    if status == "lost":
        event.lost_reason = "given_back"
    return event


def withdrawn(entry: Entry, worker_id: str, *, with_input: bool = True) -> AttemptEvent:
    """The final end of a task that was cancelled before it started."""
    task = entry.task
    return AttemptEvent(
        rollout_id=task.rollout_id,
        attempt=task.attempt,
        type="cancelled",
        final=True,
        complete=True,
        task=facts(task, entry.offset, task.resources_id, with_input=with_input),
        worker_id=worker_id,
        at=wall_us(),
    )


def lease_over(entry: Entry, attempt_id: str, delivery: int, worker_id: str) -> AttemptEvent:
    """The end of a delivery that has given no sign of life; the next delivery follows."""
    return AttemptEvent(
        rollout_id=entry.task.rollout_id,
        attempt_id=attempt_id,
        attempt=entry.task.attempt,
        delivery=delivery,
        type="lost",
        lost_reason="lease",
        worker_id=worker_id,
        at=wall_us(),
    )


def error_info(error: BaseException) -> ErrorInfo:
    """An exception as the log keeps it."""
    stack = "".join(traceback.format_exception(error))
    return ErrorInfo(
        type=type_name(error), message=str(error)[:MESSAGE_CHARACTERS], stacktrace=stack[-STACK_CHARACTERS:]
    )


def _event(start: Start, kind: str, worker_id: str, task: TaskFacts | None = None) -> AttemptEvent:
    entry = start.entry
    return AttemptEvent(
        rollout_id=entry.task.rollout_id,
        attempt_id=start.attempt_id,
        attempt=entry.task.attempt,
        delivery=start.delivery,
        type=kind,
        task=task,
        worker_id=worker_id,
        at=wall_us(),
    )
