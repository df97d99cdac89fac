"""OFFSETS: where a replay begins and ends in a run's trajectories. Pure.

The forms are those of Kafka's own tools: `earliest` and `latest`, `PARTITION:OFFSET,...`, and a time (`--to-datetime`
of kafka-consumer-groups); a step of the run is one more.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from headrace.schemas.records import TrainingStep
from headrace.streams.errors import InvalidValueError
from headrace.trainers.replay.errors import ReplayError

OFFSETS = re.compile(r"\d{1,9}:\d{1,18}(,\d{1,9}:\d{1,18})*")
STEP = re.compile(r"step:(\d{1,9})")
FORMS = "earliest, latest, PARTITION:OFFSET,..., step:N, or a time as 2026-01-31T12:00"
Edge = Literal["from", "to"]


@dataclass(frozen=True)
class Bound:
    """One of the forms; the others are None.

    Attributes:
        text: as it was given.
        at_ms: an append time, milliseconds since the epoch.
        offsets: by partition.
    """

    text: str
    edge: Literal["earliest", "latest"] | None = None
    offsets: Mapping[int, int] | None = None
    at_ms: int | None = None
    step: int | None = None


def parse_bound(text: str, flag: str) -> Bound:
    """The bound that a text means. A time without an offset from UTC is UTC.

    Raises:
        InvalidValueError: it has none of the forms.
    """
    if text in ("earliest", "latest"):
        return Bound(text, edge=text)
    if found := STEP.fullmatch(text):
        return Bound(text, step=int(found[1]))
    if OFFSETS.fullmatch(text):
        offsets: dict[int, int] = {}
        for part in text.split(","):
            partition, _, offset = part.partition(":")
            if int(partition) in offsets:
                raise InvalidValueError(f"{flag} {text}: partition {partition} stands there twice")
            offsets[int(partition)] = int(offset)
        return Bound(text, offsets=offsets)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidValueError(f"{flag} {text!r}: write {FORMS}") from error
    return Bound(text, at_ms=int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))


@dataclass(frozen=True)
class Places:
    """A bound as offsets of every partition, or as a step."""

    offsets: Mapping[int, int]
    step: int | None = None

    def after(self, step: TrainingStep) -> list[bool]:
        """Of each sample of a step, whether it stands at or beyond this place."""
        if self.step is not None:
            return [step.step >= self.step]
        return [p.offset >= self.offsets.get(p.partition, 0) for p in step.window.samples]


@dataclass(frozen=True)
class Selection:
    """The steps of a run that a replay trains.

    Attributes:
        steps: that trained, without a gap.
        before: the last step that trained before them; None where they begin with the run's first.
        cut: numbers of the steps that lie across a bound, and are left out.
    """

    steps: Sequence[TrainingStep]
    before: TrainingStep | None
    cut: Sequence[int]


def select(steps: Sequence[TrainingStep], start: Places | None, end: Places | None) -> Selection:
    """The steps whose samples all lie from `start` up to (not at) `end`.

    Steps are a chain: they begin behind the last one that has a sample before `start`, and end before the first one
    that has a sample at or beyond `end`.

    Args:
        steps: all that have trained, in their order.

    Raises:
        ReplayError: there are none.
    """
    after = [[True] if start is None else start.after(step) for step in steps]
    beyond = [[False] if end is None else end.after(step) for step in steps]
    first = 1 + max((i for i, each in enumerate(after) if not all(each)), default=-1)
    last = next((i for i, each in enumerate(beyond) if i >= first and any(each)), len(steps))
    if first >= last:
        raise ReplayError(f"no step of the run lies whole between the bounds; it has {told(steps)}")
    cut = [step.step for step, a, b in zip(steps, after, beyond, strict=True) if not (_whole(a) and _whole(b))]
    return Selection(steps[first:last], steps[first - 1] if first else None, cut)


def told(steps: Sequence[TrainingStep]) -> str:
    """Steps in words, with where their samples lie."""
    if not steps:
        return "no steps that trained"
    spans: dict[int, tuple[int, int]] = {}
    for step in steps:
        for p in step.window.samples:
            low, high = spans.get(p.partition, (p.offset, p.offset))
            spans[p.partition] = min(low, p.offset), max(high, p.offset)
    where = ", ".join(f"{p}:{low}-{high}" for p, (low, high) in sorted(spans.items()))
    return f"steps {steps[0].step} to {steps[-1].step} with samples at {where}"


def _whole(sides: Sequence[bool]) -> bool:
    return all(sides) or not any(sides)
