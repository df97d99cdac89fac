"""Which ends of a rollout count: the one rule that every reader of the attempts topic shares.

An end counts if it is the first of its attempt_id (or has none) and its rollout is open; the first counting end with
`final` closes the rollout. Everything else is ignored, by every reader alike, so ends that cross, zombies and repeats
need no fencing among the writers.

A rollout begins with an event that tells the facts of its task: its first `started`, or an end without a start, which
carries them. What comes before that is not its own, whatever its Task says, because not every reader reads tasks.

`unresponsive` is an end only where a retry follows, that is where `final` is false; with `final` it is a mark, which
the next activity or end lifts.
"""

from collections.abc import Iterable
from enum import Enum

import msgspec

from headrace.schemas.records import AttemptEvent, TaskFacts

ENDS = frozenset({"succeeded", "failed", "timeout", "lost", "cancelled"})
"""Types that end an attempt wherever they stand; `unresponsive` does so by `final` alone."""


def is_end(event: AttemptEvent) -> bool:
    """Whether the event ends an attempt (whether the end counts is the judge's to say)."""
    return event.type in ENDS or (event.type == "unresponsive" and not event.final)


def begins(event: AttemptEvent) -> bool:
    """Whether the event can be the first one of a rollout, of which nothing else is known."""
    return event.task is not None and (is_end(event) or (event.type == "started" and event.attempt_id is not None))


def retry_follows(status: str, attempt: int, max_attempts: int, retry_condition: Iterable[str]) -> bool:
    """Agent Lightning's retry rule, applied by whoever writes an end: `final = not retry_follows(...)`.

    A `lost` delivery is started again without using up an attempt, so a retry always follows it.
    """
    return status == "lost" or (status in retry_condition and attempt < max_attempts)


class Verdict(Enum):
    """What an event does to its rollout."""

    STARTED = "started"  # a new delivery of an attempt
    SIGN = "sign"  # heartbeat, activity, a mark of unresponsiveness, a cancel request: no end
    COUNTS = "counts"  # an end that counts; the rollout stays open
    CLOSES = "closes"  # the end that closes the rollout
    UNTOLD = "untold"  # a start or an end of a rollout that has not begun, without the facts of its task
    IGNORED = "ignored"  # an end that does not count, a repeated start, or anything after the close


class Attempt(msgspec.Struct, kw_only=True, gc=False):
    """One delivery of one attempt, as far as the partition tells."""

    attempt_id: str
    attempt: int
    delivery: int
    offset: int  # of `started`, else of the first event that names it
    started: AttemptEvent | None = None
    end: AttemptEvent | None = None  # the end that counts
    unresponsive: bool = False  # marked, not ended

    @property
    def rank(self) -> tuple[int, int, int]:
        """The latest attempt has the highest rank."""
        return self.attempt, self.delivery, self.offset

    @property
    def status(self) -> str:
        """running, unresponsive, or the type of the end that counts."""
        if self.end is not None:
            return self.end.type
        return "unresponsive" if self.unresponsive else "running"


class EndJudge(msgspec.Struct, gc=False):
    """The events of one rollout, folded in the order of their offsets. The result depends on nothing else.

    A record at or below the last offset read is a repeat of the same record and changes nothing.
    """

    attempts: dict[str, Attempt] = msgspec.field(default_factory=dict[str, Attempt])
    closing: AttemptEvent | None = None  # the end that closed the rollout
    facts: TaskFacts | None = None  # of the task, from the event with which the rollout begins
    cancel_requested_at: int | None = None  # microseconds
    ignored_ends: int = 0
    last_offset: int = -1

    @property
    def closed(self) -> bool:
        return self.closing is not None

    @property
    def latest(self) -> Attempt | None:
        """The attempt with the highest (attempt, delivery, offset of `started`)."""
        return max(self.attempts.values(), key=_rank, default=None)

    @property
    def chosen(self) -> Attempt | None:
        """Whose calls make the trajectory: the latest attempt that succeeded, else the latest."""
        if len(self.attempts) == 1:
            return next(iter(self.attempts.values()))
        succeeded = [a for a in self.attempts.values() if a.end is not None and a.end.type == "succeeded"]
        return max(succeeded, key=_rank) if succeeded else self.latest

    def read(self, event: AttemptEvent, offset: int) -> Verdict:
        """Fold one event. `offset` is its position in the attempts partition."""
        if offset <= self.last_offset:
            return Verdict.IGNORED
        self.last_offset = offset
        ends = is_end(event)
        if self.closing is not None:
            self.ignored_ends += ends
            return Verdict.IGNORED
        if ends or event.type == "started":
            if not self.attempts and not begins(event):
                self.ignored_ends += ends
                return Verdict.UNTOLD
            if self.facts is None:
                self.facts = event.task
        if ends:
            return self._read_end(event, offset)
        if event.type == "started":
            return self._read_started(event, offset)
        if event.type == "cancel_requested":
            if self.cancel_requested_at is None:
                self.cancel_requested_at = event.at
            return Verdict.SIGN
        if event.attempt_id is not None and (attempt := self.attempts.get(event.attempt_id)) is not None:
            if event.type == "unresponsive":
                attempt.unresponsive = True
            elif event.type == "activity":
                attempt.unresponsive = False
        return Verdict.SIGN

    def _read_started(self, event: AttemptEvent, offset: int) -> Verdict:
        if event.attempt_id is None:
            return Verdict.IGNORED
        known = self.attempts.get(event.attempt_id)
        if known is not None:
            if known.started is None and known.end is None:
                known.started, known.offset = event, offset
                return Verdict.STARTED
            return Verdict.IGNORED
        self.attempts[event.attempt_id] = Attempt(
            attempt_id=event.attempt_id, attempt=event.attempt, delivery=event.delivery, offset=offset, started=event
        )
        return Verdict.STARTED

    def _read_end(self, event: AttemptEvent, offset: int) -> Verdict:
        if event.attempt_id is not None:
            attempt = self.attempts.get(event.attempt_id)
            if attempt is None:
                attempt = self.attempts[event.attempt_id] = Attempt(
                    attempt_id=event.attempt_id, attempt=event.attempt, delivery=event.delivery, offset=offset
                )
            elif attempt.end is not None:
                self.ignored_ends += 1
                return Verdict.IGNORED
            attempt.end = event
            attempt.unresponsive = False
        if event.final:
            self.closing = event
            return Verdict.CLOSES
        return Verdict.COUNTS


def _rank(attempt: Attempt) -> tuple[int, int, int]:
    return attempt.rank


def judge(events: Iterable[tuple[int, AttemptEvent]]) -> EndJudge:
    """The verdict on a whole rollout: (offset, event) in the order of the partition."""
    result = EndJudge()
    for offset, event in events:
        result.read(event, offset)
    return result
