"""Attempt events as a runner writes them."""

from headrace.schemas.records import AttemptEvent, ErrorInfo, Task, TaskFacts
from headrace.streams.ends import retry_follows
from headrace.streams.kafka.clock import wall_us
from headrace.streams.runner.calling import Outcome
from headrace.streams.runner.dispatch.values import Entry, GiveUp, Start
from headrace.streams.task_facts import NO_INPUT, facts_of

TOO_MANY_DELIVERIES = "too_many_deliveries"


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
    task = facts(entry.task, entry.offset, resources_id, with_input=with_input)
    event = _event(start, "started", worker_id, task=task)
    event.child_deaths = start.child_deaths
    return event


def sign(start: Start, kind: str, worker_id: str) -> AttemptEvent:
    """A `heartbeat` or an `activity`."""
    return _event(start, kind, worker_id)


def ended(start: Start, outcome: Outcome, worker_id: str) -> AttemptEvent:
    """The end of a delivery; the retry rule says whether it is final."""
    task, status = start.entry.task, outcome.status
    retried = retry_follows(status, task.attempt, task.config.max_attempts, task.config.retry_condition)
    event = _event(start, status, worker_id)
    event.final = status == "cancelled" or not retried
    event.complete = True
    event.error = outcome.error
    event.lost_reason = outcome.lost_reason
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


def given_up(give_up: GiveUp, worker_id: str) -> AttemptEvent:
    """The final end of a task whose deliveries were lost too often; it has no start."""
    entry = give_up.entry
    message = (
        f"{entry.losses} deliveries were lost, {entry.child_deaths} of them with the process that ran them "
        "(max_deliveries); the task is a dead letter"
    )
    return AttemptEvent(
        rollout_id=entry.task.rollout_id,
        attempt_id=give_up.attempt_id,
        attempt=entry.task.attempt,
        delivery=give_up.delivery,
        type="failed",
        final=True,
        complete=True,
        child_deaths=entry.child_deaths,
        worker_id=worker_id,
        error=ErrorInfo(type=TOO_MANY_DELIVERIES, message=message),
        at=wall_us(),
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
