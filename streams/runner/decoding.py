"""From a message of the tasks topic to a task, or to a dead letter."""

import msgspec

from headrace.schemas.records import Task
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka import dead_letters
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.messages import Message, OutMessage
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.settings import Settings

READER = "runner"


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
        self._codec = Codec(settings)
        self._partitions = len(partition_ids(settings, settings.topic("tasks")))

    def __call__(self, message: Message) -> Fetched:
        """The task of a message; a record that is none, or stands in the wrong place, with its dead letter."""
        partition, offset = message.partition() or 0, message.offset() or 0
        at = message.timestamp()[1]
        try:
            task = self._codec.decode_as(Task, message.value())
        except DecodeError as error:
            return Fetched(partition, offset, at, None, dead_letters.make(message, error.reason, str(error), READER))
        if message.key() != task.rollout_id.encode():
            detail = f"key {message.key()!r} of a Task of rollout {task.rollout_id!r}"
            return Fetched(partition, offset, at, None, dead_letters.make(message, "wrong_key", detail, READER))
        if partition_of(task.rollout_id, self._partitions) != partition:
            detail = f"{task.rollout_id!r} belongs to partition {partition_of(task.rollout_id, self._partitions)}"
            return Fetched(partition, offset, at, None, dead_letters.make(message, "wrong_partition", detail, READER))
        return Fetched(partition, offset, at, task)
