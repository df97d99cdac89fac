"""What the assembler knows of one partition: open rollouts, and of closed ones where their Assembled lies."""

from collections.abc import Iterable
from operator import itemgetter

import msgspec

from headrace.schemas.packing import pack_offsets
from headrace.schemas.records import Assembled, Reward, Source, Span
from headrace.streams.assembly.closing import Closing
from headrace.streams.assembly.external import Unstarted
from headrace.streams.assembly.offsets import PackedOffsets
from headrace.streams.assembly.records import LoggedReward, Positions, RolloutRecords
from headrace.streams.assembly.segments import (
    Segments,
    Traces,
    number_of,
    pack_traces,
    segment,
    trace_hash,
    unpack_traces,
)
from headrace.streams.hashed_ids import HashedIds
from headrace.streams.kafka.transactional import LogEntry

OPEN_SECONDS = 60.0  # held in memory, and its offsets uncommitted, for no longer


class OpenRollout(msgspec.Struct, gc=False):
    """A rollout that has no trajectory yet.

    Records that were freed are known by their offsets alone, which stand in Assembled. Of the attempts stays what
    judges further events.

    Attributes:
        seen_at: append time of its last span or reward, microseconds.
        signed_at: log time of the last sign of activity that the assembler wrote of it, microseconds.
        root_status: status code of the root span, once a trace's root has ended.
        end_asked: feedback says that nothing more comes.
        former: the traces of the segments before this one.
        assembled: offset of its last Assembled, -1 where there is none.
    """

    records: RolloutRecords
    closing: Closing | None = None
    freed_spans: PackedOffsets | None = None
    freed_rewards: PackedOffsets | None = None
    unstarted: Unstarted | None = None
    seen_at: int = 0
    signed_at: int = 0
    root_status: str | None = None
    end_asked: bool = False
    former: Traces = msgspec.field(default_factory=Traces)
    ending: bool = False  # its end is written, and not read back yet
    assembled: int = -1

    def knows_span(self, offset: int) -> bool:
        """Whether a span was freed before. A rollout's records come in the order of their offsets."""
        return self.freed_spans is not None and offset <= self.freed_spans.last

    def knows_reward(self, offset: int) -> bool:
        """Whether a reward was freed before."""
        return self.freed_rewards is not None and offset <= self.freed_rewards.last

    def source(self) -> Source:
        """The offsets of all its records, freed or not."""
        spans = [s.offset for s in self.records.spans.values()]
        rewards = [r.offset for r in self.records.rewards.values()]
        return Source(
            partition=self.records.partition,
            attempts=pack_offsets(self.records.attempt_offsets),
            spans=self.freed_spans.with_more(spans) if self.freed_spans is not None else pack_offsets(spans),
            rewards=self.freed_rewards.with_more(rewards) if self.freed_rewards is not None else pack_offsets(rewards),
        )

    def free(self) -> Source:
        """Forgets all records but for their offsets; the source to be kept in Assembled."""
        source = self.source()
        self.keep_only(source)
        return source

    def keep_only(self, source: Source) -> None:
        """Takes a source in place of the records."""
        self.freed_spans = PackedOffsets(source.spans)
        self.freed_rewards = PackedOffsets(source.rewards)
        self.records.spans.clear()
        self.records.rewards.clear()
        self.records.forget_facts()

    @property
    def freed(self) -> bool:
        return self.freed_spans is not None

    def traces(self, limit: Positions | None) -> Traces:
        """The traces of its spans before a limit, and of the segments before this one."""
        spans = self.records.spans_before(limit)
        return {**self.former, **dict.fromkeys(trace_hash(logged.record.trace_id) for logged in spans)}


class PartitionMemory(msgspec.Struct):
    """Of each topic the first record of every rollout that is held says how far offsets may be committed.

    The dicts of first offsets are in the order of the log, because records come in it.

    Attributes:
        doubtful: spans that may open the next segment of a closed rollout, once its traces were read, and the rewards
            after them.
    """

    number: int
    open: dict[str, OpenRollout] = msgspec.field(default_factory=dict[str, OpenRollout])
    closed: HashedIds = msgspec.field(default_factory=HashedIds)  # with the offset of its Assembled
    segments: Segments = msgspec.field(default_factory=Segments)
    doubtful: list[tuple[Span | Reward, LogEntry]] = msgspec.field(default_factory=list[tuple[Span | Reward, LogEntry]])
    closing: dict[str, OpenRollout] = msgspec.field(default_factory=dict[str, OpenRollout])  # ended, not yet closed
    done: list[OpenRollout] = msgspec.field(default_factory=list[OpenRollout])  # may be assembled
    waiting: set[str] = msgspec.field(default_factory=set[str])  # to be freed
    late: dict[str, list[LoggedReward]] = msgspec.field(default_factory=dict[str, list[LoggedReward]])
    unstarted: dict[str, OpenRollout] = msgspec.field(default_factory=dict[str, OpenRollout])  # nobody has started them
    external: dict[str, OpenRollout] = msgspec.field(default_factory=dict[str, OpenRollout])  # and open
    removed: list[str] = msgspec.field(default_factory=list[str])  # to be forgotten in the log too
    held: dict[str, int] = msgspec.field(default_factory=dict[str, int])  # since when, microseconds of log time
    first: dict[str, dict[str, int]] = msgspec.field(
        default_factory=lambda: dict[str, dict[str, int]](attempts={}, spans={}, rewards={})
    )

    def is_closed(self, rollout_id: str) -> bool:
        """Whether a rollout has its trajectory."""
        return rollout_id not in self.open and rollout_id in self.closed  # most records are of open ones

    def rollout(self, rollout_id: str, entry: LogEntry) -> OpenRollout:
        """The open rollout that a record belongs to, which is held from now on."""
        rollout = self.open.get(rollout_id)
        if rollout is None:
            rollout = self.open[rollout_id] = OpenRollout(RolloutRecords(rollout_id, self.number))
        first = self.first[entry.topic]
        if rollout_id not in first:
            first[rollout_id] = entry.offset
            if rollout_id not in self.held:
                self.held[rollout_id] = entry.at
        return rollout

    def rollout_of_span(self, span: Span, entry: LogEntry) -> OpenRollout | None:
        """The open rollout, or the next segment of a closed one, that a span belongs to; None where it is late.

        `doubts` comes first.
        """
        rollout_id = self.segments.current(span.rollout_id)
        if not self.is_closed(rollout_id):
            rollout = self.rollout(rollout_id, entry)
            return None if rollout.former and trace_hash(span.trace_id) in rollout.former else rollout
        if not self._may_open_next(rollout_id, span):
            return None
        traces = self.segments.traces(span.rollout_id) or {}
        if trace_hash(span.trace_id) in traces:
            return None
        number = number_of(rollout_id) + 1
        rollout_id = segment(span.rollout_id, number)
        self.segments.opened(rollout_id)
        rollout = self.rollout(rollout_id, entry)
        rollout.former = traces
        return rollout

    def _may_open_next(self, rollout_id: str, span: Span) -> bool:
        return span.trace_id != span.rollout_id and self.segments.has_closed(rollout_id)

    def doubts(self, span: Span) -> bool:
        """Whether a span may open the next segment of a rollout whose traces are not in memory."""
        if span.rollout_id in self.open:
            return False
        last = self.segments.current(span.rollout_id)
        may = self.is_closed(last) and self._may_open_next(last, span)
        return may and self.segments.traces(span.rollout_id) is None

    def doubts_before(self, reward: Reward) -> bool:
        """Whether a span before it may open the segment that a reward goes to."""
        return any(record.rollout_id == reward.rollout_id for record, _ in self.doubtful)

    def unread_traces(self) -> dict[str, int]:
        """The last segments whose traces doubtful records need, and where their Assembled lies."""
        ids = {record.rollout_id for record, _ in self.doubtful}
        lasts = [self.segments.current(base) for base in ids if self.segments.traces(base) is None]
        return {last: place for last in lasts if (place := self.closed.get(last)) is not None}

    def close_external(self, rollout: OpenRollout, limit: Positions | None) -> bytes:
        """An external rollout closes; its traces, packed."""
        traces = rollout.traces(limit)
        self.segments.closed(rollout.records.rollout_id, traces)
        return pack_traces(traces)

    def release(self, rollout_id: str) -> None:
        """Lets the offsets of a rollout's records be committed."""
        self.held.pop(rollout_id, None)
        self.waiting.discard(rollout_id)
        for first in self.first.values():
            first.pop(rollout_id, None)

    def forget(self, rollout_id: str) -> None:
        """Lets an open rollout go for good."""
        self.open.pop(rollout_id, None)
        self.unstarted.pop(rollout_id, None)
        self.external.pop(rollout_id, None)
        self.release(rollout_id)

    def first_needed(self, topic: str) -> int | None:
        """The first offset of a topic that is still held."""
        offset = next(iter(self.first[topic].values()), None)
        needed = [offset] if offset is not None else []
        if self.doubtful:
            needed += [entry.offset for _, entry in self.doubtful if entry.topic == topic]
        if topic == "rewards" and self.late:
            needed += [reward.offset for rewards in self.late.values() for reward in rewards]
        return min(needed, default=None)

    def take_doubtful(self) -> list[tuple[Span | Reward, LogEntry]]:
        """The doubtful records, to be read again."""
        doubtful, self.doubtful = self.doubtful, []
        return doubtful

    def in_order(self) -> None:
        """Puts what is held into the order of the log, after records were read later than their turn."""
        self.held = dict(sorted(self.held.items(), key=itemgetter(1)))
        self.first = {topic: dict(sorted(first.items(), key=itemgetter(1))) for topic, first in self.first.items()}

    def open_too_long(self, now: int) -> list[str]:
        """Rollouts that are held for longer than a minute, and wait for nothing that comes by itself."""
        limit = now - int(OPEN_SECONDS * 1_000_000)
        old: list[str] = []
        for rollout_id, since in self.held.items():
            if since > limit:
                break
            if rollout_id not in self.closing and rollout_id not in self.unstarted:
                old.append(rollout_id)
        return old

    def expire(self, assembled: Iterable[tuple[str, int]]) -> int:
        """Takes the ids and offsets of old records of the assembled topic; those that still stand are to be removed.

        Returns how many open rollouts are among them: nothing ended them in time.
        """
        given_up = 0
        for rollout_id, offset in assembled:
            rollout = self.open.get(rollout_id)
            if rollout is not None and rollout.assembled == offset and rollout_id not in self.closing:
                given_up += 1
                self.forget(rollout_id)
            elif self.closed.get(rollout_id) == offset:
                self.closed.discard(rollout_id)
            else:
                continue
            self.segments.forget(rollout_id)
            self.removed.append(rollout_id)
        return given_up


def restored(assembled: Assembled, records: RolloutRecords, offset: int) -> OpenRollout:
    """A rollout that was freed before; `records` has its attempt events, `offset` is that of its Assembled."""
    rollout = OpenRollout(records, assembled=offset, former=unpack_traces(assembled.traces))
    rollout.keep_only(assembled.source)
    return rollout
