"""What goes into dispatch and what comes out of it."""

from enum import Enum

import msgspec

from headrace.schemas.records import AttemptEvent, Task


class State(Enum):
    """Where an entry stands."""

    READY = "ready"  # waits for a free slot here
    HERE = "here"  # started here; its end was not read back yet
    ELSEWHERE = "elsewhere"  # started by another worker, or by an earlier process
    WITHDRAWN = "withdrawn"  # its end is written without a start, and was not read back yet
    FINISHED = "finished"


class Entry(msgspec.Struct, kw_only=True, gc=False):
    """A task in hand: one attempt of one rollout."""

    task: Task
    partition: int
    offset: int
    state: State = State.READY
    attempt_id: str = ""  # of its latest delivery
    delivery: int = 0  # of its latest delivery
    losses: int = 0  # deliveries that were lost by their lease or by a child's death
    child_deaths: int = 0


class Start(msgspec.Struct, frozen=True, gc=False):
    """Start this delivery here.

    Attributes:
        alone: in a child process of its own: an earlier delivery was lost, and its agent may be why.
        child_deaths: how many deliveries of the attempt took their process with them.
    """

    entry: Entry
    attempt_id: str
    delivery: int
    alone: bool = False
    child_deaths: int = 0


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Write the final `cancelled` of a task that nobody has started."""

    entry: Entry


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """Write the dead letter and the final `failed` of a task that was lost too often.

    The ids are those of the next delivery.
    """

    entry: Entry
    attempt_id: str
    delivery: int


class Abandon(msgspec.Struct, frozen=True, gc=False):
    """Stop the attempt that runs here and write nothing more for it.

    `why` stands in the log already: its end, or another runner's start of it.
    """

    attempt_id: str
    why: AttemptEvent


class Cancel(msgspec.Struct, frozen=True, gc=False):
    """A cancel was asked for: stop the attempt that runs here and write its end."""

    attempt_id: str


class Happened(msgspec.Struct, frozen=True, gc=False):
    """An event with its offset in a partition of attempts, and its append time in milliseconds since the epoch."""

    partition: int
    offset: int
    at: int
    event: AttemptEvent


def attempt_id_of(rollout_id: str, attempt: int, delivery: int) -> str:
    """The id of a delivery of an attempt: the same wherever it is started, so that a repeated start is one."""
    return f"{rollout_id}-{attempt}" if delivery == 1 else f"{rollout_id}-{attempt}.{delivery}"
