"""What comes before what within an attempt.

The log is the order (append time, a span before a reward at the same millisecond); `sequence` is where every span has
one; start time is where spans came by OTLP, since exporters send in batches, and late.
"""

import math
from collections.abc import Sequence
from enum import Enum

import msgspec

from headrace.streams.assembly.records import LoggedReward
from headrace.streams.assembly.reward_forms import OPERATION_START, SEQUENCE
from headrace.streams.assembly.values import Call, Node

AFTER_ALL = math.inf
LONGEST_NUMBER = 25  # characters


class OrderBy(Enum):
    SEQUENCE = "sequence"
    LOG = "log"
    TIME = "time"


def order_of(nodes: Sequence[Node]) -> OrderBy:
    """How the spans of one attempt are ordered."""
    if not nodes:
        return OrderBy.LOG
    numbered, outside = True, False
    for node in nodes:
        numbered = numbered and node.span.sequence is not None
        outside = outside or node.span.source == "otlp"
    if numbered:
        return OrderBy.SEQUENCE
    return OrderBy.TIME if outside else OrderBy.LOG


def call_order(call: Call, by: OrderBy) -> tuple[float, ...]:
    """Sort key of calls, and so of triplets."""
    span, index = call.outer.span, call.node.index
    if by is OrderBy.SEQUENCE:
        return span.sequence or 0, span.start, span.end, index
    return (index,) if by is OrderBy.LOG else (span.start, index)


def ending(call: Call, by: OrderBy) -> tuple[float, int]:
    """Sort key of calls by their ends: the latest call is the one with the highest."""
    span, index = call.outer.span, call.node.index
    if by is OrderBy.SEQUENCE:
        return span.sequence or 0, index
    return (index, index) if by is OrderBy.LOG else (span.end, index)


class PlacedReward(msgspec.Struct, frozen=True, gc=False):
    """A reward with its place among the calls of the attempt."""

    reward: LoggedReward
    index: int  # in the log's order among the rewards
    moment: float  # sequence, or nanoseconds, by the attempt's order; beyond all calls for graders and feedback
    by_log: bool  # its place is the append time

    @property
    def key(self) -> tuple[float, int]:
        return self.moment, self.index

    def follows(self, call: Call, by: OrderBy) -> bool:
        """Whether the call had ended before the reward was given."""
        if self.moment == AFTER_ALL and not self.by_log:
            return True
        if self.by_log:
            return call.outer.at <= self.reward.at
        if by is OrderBy.SEQUENCE:
            return (call.outer.span.sequence or 0) < self.moment
        return call.outer.span.end <= self.moment


def place_rewards(rewards: Sequence[LoggedReward], by: OrderBy) -> list[PlacedReward]:
    """The rewards of one attempt in their order; those of graders and feedback come after all calls."""
    placed = [_place(reward, index, by) for index, reward in enumerate(rewards)]
    if len(placed) > 1:
        placed.sort(key=_key)
    return placed


def _place(logged: LoggedReward, index: int, by: OrderBy) -> PlacedReward:
    reward = logged.record
    if reward.source != "agent":
        return PlacedReward(logged, index, AFTER_ALL, False)
    if by is OrderBy.LOG:
        return PlacedReward(logged, index, logged.at, True)
    if by is OrderBy.SEQUENCE:
        sequence = _whole(reward.metadata.get(SEQUENCE))
        if sequence is None:
            return PlacedReward(logged, index, AFTER_ALL, True)
        return PlacedReward(logged, index, sequence, False)
    start = _whole(reward.metadata.get(OPERATION_START))
    return PlacedReward(logged, index, start if start is not None else reward.at * 1000, False)


def _whole(text: str | None) -> int | None:
    """A whole number; metadata may be anybody's."""
    return int(text) if text is not None and text.removeprefix("-").isdecimal() and len(text) < LONGEST_NUMBER else None


def _key(placed: PlacedReward) -> tuple[float, int]:
    return placed.key
