"""What a processor is to the loop that runs it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from headrace.schemas.records import LogPosition, Record
from headrace.streams.kafka.messages import Message, OutMessage

TopicPartitionKey = tuple[str, int]
"""A partition: short name of its topic (as in the catalogue) and number."""


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """Where a record stands in the log.

    Attributes:
        topic: short name.
        at: append time, microseconds since the epoch.
        message: as it came, for a dead letter.
    """

    topic: str
    partition: int
    offset: int
    at: int
    message: Message

    @classmethod
    def of(cls, topic: str, message: Message) -> "LogEntry":
        """The entry of a message; `topic` is the short name."""
        return cls(topic, message.partition() or 0, message.offset() or 0, message.timestamp()[1] * 1000, message)


Follow = Callable[[list[LogPosition]], list[OutMessage]]


@dataclass(slots=True)
class Output:
    """What goes into one transaction besides offsets and dead letters.

    Attributes:
        messages: encoded and sized.
        follow: if given, it is called with the positions of `messages` once the brokers have them, still within the
            transaction; what it returns is written after them.
    """

    messages: list[OutMessage] = field(default_factory=list[OutMessage])
    follow: Follow | None = None


class Processor(ABC):
    """State and rules of one processor; every method is called on the loop's one thread.

    State belongs to partitions. What `read` has folded into it counts only once the transaction that `collect` feeds
    is committed; when one fails, every partition is dropped and restored from the log.
    """

    name: ClassVar[str]
    """Its group, and part of its client and transaction ids."""
    topics: ClassVar[tuple[str, ...]]
    """Short names of the co-partitioned topics that it reads; within a batch they are read in this order."""
    gap_seconds: ClassVar[float]
    """Between the starts of two transactions at least: fewer, bigger ones cost less, in the broker too."""
    fetch_pause_ms: ClassVar[int]
    """Between two fetches under load, in milliseconds: fewer, fuller ones cost less, in the broker too."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.dead_letters: list[tuple[LogEntry, str, str]] = []

    def count(self, name: str, more: int = 1) -> None:
        """Adds to a counter."""
        self.counters[name] = self.counters.get(name, 0) + more

    def refuse(self, entry: LogEntry, reason: str, detail: str) -> None:
        """Sends a record to the dead letters, in the transaction that finishes it."""
        self.dead_letters.append((entry, reason, detail))

    @abstractmethod
    def restore(self, partitions: Sequence[int]) -> None:
        """Makes the state of new partitions from the log, to the read_uncommitted end as of now.

        The loop has noted the committed offsets before, and begins to read there.
        """

    @abstractmethod
    def drop(self, partitions: Iterable[int]) -> None:
        """Forgets partitions: state, and what was not collected."""

    @abstractmethod
    def read(self, record: Record, entry: LogEntry) -> None:
        """Folds one record."""

    def advance(self, positions: Mapping[TopicPartitionKey, int], now: int) -> None:  # noqa: B027
        """Called after each batch with the next offset of each partition; an end-of-partition's offset counts."""

    def tick(self, now: int) -> None:  # noqa: B027
        """Called a few times a second while all is read up to date; `now` is log time in microseconds."""

    def restart_timers(self, now: int) -> None:  # noqa: B027
        """All timers begin anew: after an assignment, or when nothing could be read for a while."""

    @property
    def ready(self) -> bool:
        """Whether there is something that `collect` would give."""
        return False

    @property
    def waiting(self) -> bool:
        """Whether something hangs on positions that are still to come: the loop then looks again soon."""
        return False

    @abstractmethod
    def collect(self, now: int) -> Output:
        """What is to be written now; it is not given again."""

    def first_needed(self, topic: str, partition: int) -> int | None:
        """The first offset that a successor has to read again, if it is not simply the next one."""
        return None

    def committed(self, positions: list[LogPosition]) -> None:  # noqa: B027
        """The transaction is done; the positions are those of what `Output.follow` returned."""
