"""The records of a compacted topic that are older than an age, each looked at once: what is to be removed from it."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import BEGINNING

PORTION = 20_000  # offsets a partition and a look; a processor does nothing else meanwhile
LOOK_SECONDS = 600.0  # ages are days


class OldRecords:
    """A cursor a partition, which follows now - age. Times are log time in microseconds."""

    def __init__(self, log: LogReader, topic: str, age: timedelta) -> None:
        self._log = log
        self._topic = topic
        self._age = int(age.total_seconds() * 1e6)
        self._cursors: dict[int, int] = {}
        self._next_look = 0

    def take(self, partitions: Iterable[int]) -> None:
        """Looks at partitions too, from their beginnings."""
        self._cursors |= dict.fromkeys(partitions, BEGINNING)
        self._next_look = 0

    def drop(self, partitions: Iterable[int]) -> None:
        """Looks at partitions no more."""
        for partition in partitions:
            self._cursors.pop(partition, None)

    def limit(self, now: int) -> int:
        """The time that old records are older than."""
        return now - self._age

    def due(self, now: int) -> bool:
        """Whether it is time for another look."""
        return bool(self._cursors) and now >= self._next_look

    def look(self, now: int, until: int | None = None) -> Iterator[Message]:
        """The old records that were not given before; the rest of a long stretch comes with the next look.

        Args:
            until: counts ages to then, if that is before now.

        Raises:
            BrokerUnavailableError: no answer.
        """
        self._next_look = now + int(LOOK_SECONDS * 1e6)
        limit_ms = self.limit(now if until is None else until) // 1000
        ends = self._log.first_since({(self._topic, p): limit_ms for p in self._cursors})
        for partition, start in list(self._cursors.items()):
            end = ends[self._topic, partition]
            if end - max(start, 0) > PORTION:
                end = max(start, 0) + PORTION
                self._next_look = now
            if end > max(start, 0):
                yield from self._log.stretch(self._topic, partition, start, end)
                self._cursors[partition] = end
