"""What lifecycle writes that says more than it keeps in memory: the Task is read again by its offset."""

import logging

import msgspec

from headrace.schemas.records import AttemptEvent, AttemptState, ErrorInfo, Record, RolloutState, Task, TaskFacts
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.log_reader import LogReader, Partition
from headrace.streams.lifecycle.store import Reread, retry_of
from headrace.streams.settings import Settings
from headrace.streams.task_facts import NO_INPUT, facts_of

log = logging.getLogger(__name__)

TASKS = "tasks"
TASK_MISSING = ErrorInfo(type="task_missing", message="the task of the rollout can no longer be read")


class TaskAnswers:
    """Retries, and ends that carry the facts of a task which never started."""

    def __init__(self, settings: Settings, log_reader: LogReader, worker_id: str) -> None:
        self._codec = Codec(settings)
        self._log = log_reader
        self._worker_id = worker_id

    def make(self, rereads: list[tuple[int, Reread]], now: int) -> list[Record]:
        """The records of rereads, which come with their partitions."""
        wanted: dict[Partition, set[int]] = {}
        for partition, reread in rereads:
            if reread.task_offset is not None:
                wanted.setdefault((TASKS, partition), set()).add(reread.task_offset)
        found = self._log.at(wanted)
        answers: list[Record] = []
        for partition, reread in rereads:
            offset = reread.task_offset
            message = found.get((TASKS, partition, offset)) if offset is not None else None
            try:
                task = self._codec.decode_as(Task, message.value()) if message is not None else None
            except DecodeError as error:
                log.error("%s: its task at offset %s: %s", reread.rollout.state.rollout_id, offset, error)
                task = None
            answers.append(self._answer(reread, task, now))
        return answers

    def _answer(self, reread: Reread, task: Task | None, now: int) -> Record:
        state = reread.rollout.state
        latest = reread.rollout.latest
        number = latest.attempt if latest is not None else 1
        if reread.event is not None:
            reread.event.task = facts_of(task, reread.task_offset) if task is not None else _known_facts(state)
            return reread.event
        if task is not None:
            return retry_of(task, number + 1, now)
        return AttemptEvent(
            rollout_id=state.rollout_id,
            attempt=number + 1,
            type="failed",
            final=True,
            task=_known_facts(state),
            worker_id=self._worker_id,
            error=TASK_MISSING,
            at=now,
        )


def _known_facts(state: RolloutState) -> TaskFacts:
    """The facts of a task that can no longer be read; its input is lost."""
    return TaskFacts(
        origin=state.origin,
        group_id=state.group_id,
        group_size=state.group_size,
        sample_index=state.sample_index,
        mode=state.mode,
        run_id=state.run_id,
        resources_id=state.resources_id,
        input=NO_INPUT,
    )


def smaller(record: Record) -> Record:
    """A record without what it has of its task's input or metadata, and of its errors only the last stack trace."""
    if isinstance(record, AttemptEvent) and record.task is not None:
        return msgspec.structs.replace(record, task=msgspec.structs.replace(record.task, input=NO_INPUT))
    if isinstance(record, RolloutState):
        return msgspec.structs.replace(
            record, metadata={}, attempts=[*map(_without_stack, record.attempts[:-1]), *record.attempts[-1:]]
        )
    if isinstance(record, Task):
        return msgspec.structs.replace(record, metadata={})
    return record


def _without_stack(attempt: AttemptState) -> AttemptState:
    if attempt.error is None:
        return attempt
    error = msgspec.structs.replace(attempt.error, message=attempt.error.message[:200], stacktrace=None)
    return msgspec.structs.replace(attempt, error=error)
