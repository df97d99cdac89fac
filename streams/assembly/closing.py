"""When a rollout that has ended may be closed, as a decision over values.

A `complete` end says that all that belongs to the attempt was in the log before it: one barrier (the read-uncommitted
end of the rollout's partitions of spans and rewards, asked for after the end was read) and no wait. Any other end waits
`settle_seconds` of log time first, and then for a barrier that brings nothing new.

Of an end that is older than `SKEW_MS` the barrier is where the partitions ended so long after it: what lies beyond was
not in the log before it, and while a backlog is worked off, no more than that is held in memory.
"""

from enum import Enum

import msgspec

from headrace.streams.assembly.records import Positions, RolloutRecords

SKEW_MS = 15_000
"""What was in the log before an end bears no append time later than this after the end's: clocks of brokers differ."""
SHARED_MS = 5_000  # ends of so many milliseconds share a barrier


class Step(Enum):
    """What the loop has to do for a rollout that has ended."""

    WAIT = "wait"
    BARRIER = "barrier"  # ask the broker for the ends of spans and rewards, then call `set_barrier`
    CLOSE = "close"  # assemble with `barrier` as the limit


class Closing(msgspec.Struct):
    """The way of one rollout from its closing end to its close."""

    ended_at: int  # append time of the closing end, milliseconds
    complete: bool
    barrier: Positions | None = None
    size_at_barrier: int = 0

    @classmethod
    def of(cls, records: RolloutRecords) -> "Closing":
        """Raises ValueError if no end closes the rollout."""
        end, at = records.judge.closing, records.closed_at
        if end is None or at is None:
            raise ValueError(f"rollout {records.rollout_id} is open")
        return cls(at, end.complete)

    def due_at(self, settle_seconds: float) -> int:
        """Log time in milliseconds from which the rollout can be closed."""
        return self.ended_at if self.complete else self.ended_at + round(settle_seconds * 1000)

    def horizon(self, now: int) -> int | None:
        """The append time in milliseconds at which the barrier may stand; None where only the log's end will do."""
        at = (self.ended_at + SKEW_MS) // SHARED_MS * SHARED_MS + SHARED_MS
        return at if at <= now else None

    def step(self, records: RolloutRecords, read: Positions, now: int, settle_seconds: float) -> Step:
        """The next step.

        Args:
            records: all that was read of the rollout.
            read: how far spans and rewards have been read; an end-of-partition's offset counts.
            now: log time in milliseconds.
            settle_seconds: the wait after an end that is not complete.
        """
        if now < self.due_at(settle_seconds):
            return Step.WAIT
        if self.barrier is None:
            return Step.BARRIER
        if not read.reaches(self.barrier):
            return Step.WAIT
        if not self.complete and records.size != self.size_at_barrier:
            self.barrier = None
            return Step.BARRIER
        return Step.CLOSE

    def set_barrier(self, barrier: Positions, records: RolloutRecords) -> None:
        """Take the ends that were asked for."""
        self.barrier = barrier
        self.size_at_barrier = records.size
