"""What the assembler knows of one partition: open rollouts, and of closed ones where their Assembled lies."""

import msgspec

from headrace.schemas.packing import pack_offsets, unpack_offsets
from headrace.schemas.records import Assembled, Source
from headrace.streams.assembly.closing import Closing
from headrace.streams.assembly.records import LoggedReward, RolloutRecords
from headrace.streams.hashed_ids import HashedIds
from headrace.streams.kafka.transactional import LogEntry

OPEN_SECONDS = 60.0  # held in memory, and its offsets uncommitted, for no longer


class OpenRollout(msgspec.Struct):
    """A rollout that has no trajectory yet.

    The records that were freed are known by their offsets alone, and stand in Assembled; attempt events, which are
    small, stay.
    """

    records: RolloutRecords
    closing: Closing | None = None
    freed_spans: set[int] = msgspec.field(default_factory=set[int])
    freed_rewards: set[int] = msgspec.field(default_factory=set[int])

    def source(self) -> Source:
        """The offsets of all its records, freed or not."""
        spans = self.freed_spans | {s.offset for s in self.records.spans.values()}
        rewards = self.freed_rewards | {r.offset for r in self.records.rewards.values()}
        return Source(
            partition=self.records.partition,
            attempts=pack_offsets(self.records.attempt_offsets),
            spans=pack_offsets(sorted(spans)),
            rewards=pack_offsets(sorted(rewards)),
        )

    def free(self) -> Source:
        """Forgets spans and rewards but for their offsets; the source to be kept in Assembled."""
        source = self.source()
        self.freed_spans.update(s.offset for s in self.records.spans.values())
        self.freed_rewards.update(r.offset for r in self.records.rewards.values())
        self.records.spans.clear()
        self.records.rewards.clear()
        return source

    @property
    def freed(self) -> bool:
        return bool(self.freed_spans or self.freed_rewards)


class PartitionMemory(msgspec.Struct):
    """Of each topic the first record of every rollout that is held says how far offsets may be committed.

    The dicts of first offsets are in the order of the log, because records come in it.
    """

    number: int
    open: dict[str, OpenRollout] = msgspec.field(default_factory=dict[str, OpenRollout])
    closed: HashedIds = msgspec.field(default_factory=HashedIds)  # with the offset of its Assembled
    closing: dict[str, OpenRollout] = msgspec.field(default_factory=dict[str, OpenRollout])  # ended, not yet closed
    done: list[OpenRollout] = msgspec.field(default_factory=list[OpenRollout])  # may be assembled
    waiting: set[str] = msgspec.field(default_factory=set[str])  # a retry follows: to be freed
    late: dict[str, list[LoggedReward]] = msgspec.field(default_factory=dict[str, list[LoggedReward]])
    held: dict[str, int] = msgspec.field(default_factory=dict[str, int])  # since when, microseconds of log time
    first: dict[str, dict[str, int]] = msgspec.field(
        default_factory=lambda: dict[str, dict[str, int]](attempts={}, spans={}, rewards={})
    )

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

    def release(self, rollout_id: str) -> None:
        """Lets the offsets of a rollout's records be committed."""
        self.held.pop(rollout_id, None)
        self.waiting.discard(rollout_id)
        for first in self.first.values():
            first.pop(rollout_id, None)

    def first_needed(self, topic: str) -> int | None:
        """The first offset of a topic that is still held."""
        offset = next(iter(self.first[topic].values()), None)
        if topic == "rewards" and self.late:
            late = min(reward.offset for rewards in self.late.values() for reward in rewards)
            return late if offset is None else min(late, offset)
        return offset

    def open_too_long(self, now: int) -> list[str]:
        """Rollouts that are held for longer than a minute."""
        limit = now - int(OPEN_SECONDS * 1_000_000)
        old: list[str] = []
        for rollout_id, since in self.held.items():
            if since > limit:
                break
            if rollout_id not in self.closing:
                old.append(rollout_id)
        return old


def restored(assembled: Assembled, records: RolloutRecords) -> OpenRollout:
    """A rollout that was freed before; `records` has its attempt events."""
    return OpenRollout(
        records,
        freed_spans=set(unpack_offsets(assembled.source.spans)),
        freed_rewards=set(unpack_offsets(assembled.source.rewards)),
    )
