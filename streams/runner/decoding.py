"""From a message of the tasks topic to a task, or to a dead letter."""

from typing import cast

import msgspec

from headrace.schemas.records import Task
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.messages import Message, OutMessage
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings

READER = "runner"
TASKS = "tasks"


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """A record of the tasks topic: a task, or what is to be written of it to the dead letters."""

    partition: int
    offset: int
    at: int  # append time, milliseconds since the epoch
    task: Task | None
    dead: OutMessage | None = None


class TaskDecoder:
    """Reads and checks tasks."""

    def __init__(self, settings: Settings) -> None:
        self._intake = Intake(settings, (TASKS,), len(partition_ids(settings, settings.topic(TASKS))))
        self._dead_letter = DeadLetterMaker(settings, READER)

    def __call__(self, message: Message) -> Fetched:
        """The task of a message; a record that is none, or stands in the wrong place, with its dead letter.

        Raises:
            UnavailableError: what else it needs (registry, claim-check store) does not answer now.
        """
        partition, offset = message.partition() or 0, message.offset() or 0
        at = message.timestamp()[1]
        try:
            task = cast(Task, self._intake.record(TASKS, message))
        except RefusedError as refusal:
            letter = self._dead_letter(message, refusal.reason, str(refusal))
            return Fetched(partition, offset, at, None, letter)
        return Fetched(partition, offset, at, task)
