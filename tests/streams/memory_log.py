"""A log of one partition in memory, and a loop without threads: whole processors, crashed at any moment, quickly.

The log has what matters of Kafka's: offsets with gaps (markers and aborted records take some), append times, reading up
to a noted end, compaction that nobody relies on, and transactions that are there as a whole or not at all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.schemas.records import LogPosition, Record
from headrace.streams.codec import Codec
from headrace.streams.kafka.dead_letters import make as make_dead_letter
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.log_reader import LogReader, Partition, Place
from headrace.streams.kafka.messages import Message, MessageMaker, OutMessage
from headrace.streams.kafka.transactional import LogEntry, Processor
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings
from headrace.streams.topics import short_name

START_MS = 1_700_000_000_000


@dataclass
class Stored:
    """A record of the log, or an offset that holds none."""

    name: str
    at: int
    place: int
    out: OutMessage | None = None

    def topic(self) -> str:
        return self.name

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes | None:
        return self.out.key if self.out is not None else None

    def value(self) -> bytes | None:
        return self.out.value if self.out is not None else None

    def headers(self) -> Any:
        headers = self.out.headers if self.out is not None else []
        return [(name, value.encode() if isinstance(value, str) else value) for name, value in headers] or None

    def timestamp(self) -> tuple[int, int]:
        return 2, self.at

    def error(self) -> Any:
        return None


class MemoryLog(LogReader):
    """One partition of each topic."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now_ms = START_MS
        self.topics: dict[str, list[Stored]] = {}
        self.first: dict[str, int] = {}
        self.commits: dict[str, dict[str, int]] = {}
        self.dead: list[Any] = []
        self._message = MessageMaker(settings, partitions=lambda: 1)
        self._codec = Codec(settings)

    def write(self, *records: Record) -> None:
        """Records of a writer without transactions."""
        for record in records:
            self.append(self._message(record))

    def append(self, message: OutMessage | None, topic: str | None = None) -> int:
        """A message, or an offset without one; the offset."""
        name = message.topic if message is not None else self.settings.topic(topic or "")
        stored = self.topics.setdefault(short_name(name, self.settings), [])
        self.now_ms += 1
        stored.append(Stored(name, self.now_ms, len(stored), message))
        return len(stored) - 1

    def messages(self, topic: str, start: int = 0, end: int | None = None) -> list[Stored]:
        """The records of a topic from an offset on."""
        start = max(start, self.first.get(topic, 0))
        return [m for m in self.topics.get(topic, [])[start:end] if m.out is not None]

    def records(self, topic: str) -> list[Any]:
        """The records of a topic, decoded."""
        return [self._codec.decode(m.value()) for m in self.messages(topic) if m.value() is not None]

    def decode(self, message: Message) -> Any:
        """The record of a message."""
        return self._codec.decode(message.value())

    def last(self, topic: str) -> dict[str, Any]:
        """What compaction leaves: the last record of each key."""
        found: dict[str, Any] = {}
        for m in self.messages(topic):
            key = (m.key() or b"").decode()
            if m.value() is None:
                found.pop(key, None)
            else:
                found[key] = self._codec.decode(m.value())
        return found

    def reasons(self) -> list[tuple[str, str]]:
        """Reason and key of each dead letter."""
        return [(letter.reason, (letter.key or b"").decode()) for letter in self.dead]

    # -- LogReader

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {at: len(self.topics.get(at[0], [])) for at in partitions}

    def count(self, topic: str) -> int:
        return 1

    def whole(self, topic: str, partitions: Iterable[int]) -> Iterator[Message]:
        return iter(self.messages(topic))

    def stretch(self, topic: str, partition: int, start: int, end: int) -> Iterator[Message]:
        return iter(self.messages(topic, max(start, 0), end))

    def at(self, wanted: Mapping[Partition, Iterable[int]]) -> dict[Place, Message]:
        places = {(topic, p, offset) for (topic, p), offsets in wanted.items() for offset in offsets}
        return {(t, p, m.place): m for t, p in wanted for m in self.messages(t) if (t, p, m.place) in places}

    def first_since(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        found: dict[Partition, int] = {}
        for (topic, p), at in times.items():
            stored = self.topics.get(topic, [])
            found[topic, p] = next((m.place for m in stored if m.at >= at), len(stored))
        return found

    def committed(self, topic: str, partitions: Iterable[int]) -> dict[str, dict[int, int]]:
        return {group: {0: offsets[topic]} for group, offsets in self.commits.items() if topic in offsets}

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        self.first[topic] = max(self.first.get(topic, 0), offsets[0])


@dataclass
class MemoryLoop:
    """One processor as a session runs it. `make` makes a new process's."""

    log: MemoryLog
    make: Callable[[], Processor]
    processor: Processor = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A kill -9 and a new process: what was not committed is gone."""
        self.processor = self.make()
        name = self.processor.name
        self._offsets = self.log.commits.setdefault(name, {})
        self._positions = {(t, 0): self._offsets.get(t, 0) for t in self.processor.topics}
        self.processor.restore([0])
        self._intake = Intake(self.log.settings, self.processor.topics, 1)
        self._rank = {topic: rank for rank, topic in enumerate(self.processor.topics)}
        self._left = self.log.ends(self._positions)
        self._caught_up = False

    @property
    def now(self) -> int:
        return self.log.now_ms * 1000

    def read(self, most: int = 1_000_000, *, only: str = "") -> int:
        """A batch of at most so many records of each topic, or of one; how many came."""
        entries: list[LogEntry] = []
        for topic in [only] if only else self.processor.topics:
            start = self._positions[topic, 0]
            messages = self.log.messages(topic, start)
            for m in messages[:most]:
                entries.append(LogEntry(topic, 0, m.place, m.at * 1000, m))
                self._positions[topic, 0] = m.place + 1
            if len(messages) <= most:  # an end-of-partition mark
                self._positions |= self.log.ends([(topic, 0)])
        entries.sort(key=lambda entry: self._rank[entry.topic])
        for entry in entries:
            try:
                record = self._intake.record(entry.topic, entry.message)
            except RefusedError as refusal:
                self.processor.refuse(entry, refusal.reason, str(refusal))
            else:
                self.processor.read(record, entry)
        self.processor.advance(self._positions, self.now)
        self._left = {key: end for key, end in self._left.items() if self._positions[key] < end}
        if not self._left and not self._caught_up:
            self._caught_up = True
            self.processor.restart_timers(self.now)
        if self._caught_up:
            self.processor.tick(self.now)
            self.processor.advance(self._positions, self.now)
        return len(entries)

    def write(self, *, crash: str = "") -> bool:
        """A transaction, if there is something for one; `before` or `within` it the process may be killed."""
        if crash == "before":
            self.restart()
            return False
        processor = self.processor
        output = processor.collect(self.now)
        refused, processor.dead_letters = processor.dead_letters, []
        places = [(m, self._append(m, aborted=crash == "within")) for m in output.messages]
        after: list[LogPosition] = []
        if output.follow is not None:
            follow = output.follow([LogPosition(partition=0, offset=offset) for _, offset in places])
            after = [LogPosition(partition=0, offset=self._append(m, aborted=crash == "within")) for m in follow]
            places += [(m, 0) for m in follow]
        for topic in {m.topic for m, _ in places}:
            self.log.append(None, short_name(topic, self.log.settings))  # the marker
        if crash == "within":
            self.restart()
            return False
        self.log.dead += [parse(_letter(e, reason, detail, processor.name)) for e, reason, detail in refused]
        for (topic, p), position in self._positions.items():
            first = processor.first_needed(topic, p)
            offset = position if first is None else min(first, position)
            self._offsets[topic] = max(offset, self._offsets.get(topic, 0))
        processor.committed(after)
        return bool(places or refused)

    def _append(self, message: OutMessage, *, aborted: bool) -> int:
        if aborted:
            return self.log.append(None, short_name(message.topic, self.log.settings))
        return self.log.append(message)

    def turn(self, most: int = 1_000_000) -> bool:
        """Reads and writes; whether there was anything."""
        came = self.read(most)
        return self.write() or came > 0


def _letter(entry: LogEntry, reason: str, detail: str, reader: str) -> Stored:
    return Stored("dlq", entry.at // 1000, 0, make_dead_letter(entry.message, reason, detail, reader))


def settle(*loops: MemoryLoop) -> None:
    """Runs loops until nothing comes any more, now and after each wait that the defaults know."""
    log = loops[0].log
    for seconds in (0, 2, 7, 32, 700, 2, 7, 0):
        log.now_ms += seconds * 1000
        while any([loop.turn() for loop in loops]):  # noqa: C419  # each has its turn
            pass
