"""One rollout as its attempts tell it: how it ended, which attempt its trajectory is of, what was started twice."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.chaos.entries import Entry

ENDS = ("succeeded", "failed", "timeout", "lost", "cancelled")
STATUS = {"succeeded": "succeeded", "cancelled": "cancelled"}  # every other final end: failed
SHOWN = 12


@dataclass(frozen=True)
class Twice:
    """Two starts of which the second should not be."""

    first: Entry
    second: Entry
    detail: str


@dataclass
class _Attempt:
    rank: tuple[int, int, int]
    start: Entry | None = None
    end: str | None = None


@dataclass
class RolloutRead:
    """What the attempts say of a rollout.

    Attributes:
        status: how it ended; None while it is open.
        closing: the end that closed it.
        chosen: whose calls make its trajectory: the latest attempt that succeeded, else the latest; None without any.
        twice: second starts of a delivery, starts beside an attempt that had not ended, starts after the final end.
    """

    status: str | None = None
    closing: Entry | None = None
    chosen: str | None = None
    twice: list[Twice] = field(default_factory=list[Twice])
    summary: str = ""


def read_rollout(entries: Sequence[Entry]) -> RolloutRead:
    """Reads the events of one rollout, in the order of their offsets."""
    read = RolloutRead()
    attempts: dict[str, _Attempt] = {}
    words: list[str] = []
    for entry in entries:
        kind = str(entry["type"])
        if kind not in ("heartbeat", "activity"):
            words.append(f"{kind}{'!' if entry['final'] else ''} {entry['attempt_id'] or ''}".strip())
        ends = kind in ENDS or (kind == "unresponsive" and not entry["final"])
        if kind == "started":
            _started(read, attempts, entry)
        elif ends and read.status is None:
            _ended(read, attempts, entry)
    succeeded = {i: a for i, a in attempts.items() if a.end == "succeeded"}
    candidates = succeeded or attempts
    read.chosen = max(candidates, key=lambda i: candidates[i].rank, default=None)
    read.summary = ", ".join(words[-SHOWN:])
    return read


def _started(read: RolloutRead, attempts: dict[str, _Attempt], entry: Entry) -> None:
    attempt_id = str(entry["attempt_id"])
    known = attempts.get(attempt_id)
    open_ones = [a.start for i, a in attempts.items() if i != attempt_id and a.start is not None and a.end is None]
    if known is not None and known.start is not None:
        read.twice.append(Twice(known.start, entry, f"{attempt_id} by {entry['worker_id']}, started before"))
    elif read.status is not None:
        read.twice.append(Twice(entry, entry, f"{attempt_id} by {entry['worker_id']} after the end"))
    elif open_ones:
        first = open_ones[-1]
        read.twice.append(Twice(first, entry, f"{attempt_id} by {entry['worker_id']} beside {first['attempt_id']}"))
    if read.status is not None:
        return
    if known is None:
        rank = (int(entry["attempt"]), int(entry["delivery"]), entry.offset)
        attempts[attempt_id] = _Attempt(rank, start=entry)
    elif known.start is None:
        known.start = entry


def _ended(read: RolloutRead, attempts: dict[str, _Attempt], entry: Entry) -> None:
    kind = str(entry["type"])
    attempt_id = entry["attempt_id"]
    if attempt_id is not None:
        rank = (int(entry["attempt"]), int(entry["delivery"]), entry.offset)
        attempt = attempts.setdefault(str(attempt_id), _Attempt(rank))
        if attempt.end is not None:
            return
        attempt.end = kind
    if entry["final"]:
        read.status = STATUS.get(kind, "failed")
        read.closing = entry
