"""Segments of external rollouts: after the close of `ID` a new trace opens `ID~2`, a trace already in it opens nothing.

All segments of an id stand in its partition. Spans and rewards name the id; events and trajectories the segment.
"""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from headrace.schemas.records import Reward
from headrace.streams.feedback.request import END, SOURCE
from headrace.streams.hashed_ids import HashedIds
from headrace.streams.kafka.partitioner import SEGMENT_MARK

HASH_BYTES = 8
MAX_TRACES = 65_536  # of an id and its segments, half a megabyte; older ones are forgotten
CACHED_IDS = 4096  # of closed ones; those of others are read again
Traces = dict[int, None]
"""Hashes of traces in the order in which they came."""


def trace_hash(trace_id: str) -> int:
    """The hash of a trace id, the same in every process."""
    return int.from_bytes(blake2b(trace_id.encode(), digest_size=HASH_BYTES).digest(), "little", signed=True)


def pack_traces(hashes: Iterable[int]) -> bytes:
    """Hashes as Assembled has them, the newest where there are too many."""
    return np.fromiter(hashes, dtype="<i8")[-MAX_TRACES:].tobytes()


def unpack_traces(packed: bytes) -> Traces:
    """The hashes of an Assembled; none of bytes that are none."""
    if len(packed) % HASH_BYTES:
        return {}
    return dict.fromkeys(np.frombuffer(packed, dtype="<i8").tolist())


def base_of(rollout_id: str) -> str:
    """The id that a segment belongs to."""
    return rollout_id.partition(SEGMENT_MARK)[0]


def number_of(rollout_id: str) -> int:
    """Which segment: 1 for an id without a number."""
    number = rollout_id.partition(SEGMENT_MARK)[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 1


def segment(base: str, number: int) -> str:
    """The rollout_id of a segment."""
    return base if number == 1 else f"{base}{SEGMENT_MARK}{number}"


def segment_of_reward(reward: Reward, last: int) -> str:
    """The segment that a reward goes to: that of the attempt it names, else the last.

    Args:
        last: number of the last segment of the rollout that it names.
    """
    base, attempt = reward.rollout_id, reward.attempt_id
    if attempt == f"{base}-1":
        return base
    if attempt is not None and attempt.startswith(f"{base}{SEGMENT_MARK}"):
        number = number_of(attempt.removesuffix("-1"))
        if 1 < number <= last:
            return segment(base, number)
    return segment(base, last)


def ends_the_rollout(reward: Reward) -> bool:
    """Whether feedback says that nothing more comes."""
    return reward.source == SOURCE and reward.metadata.get(END) == "true"


class Segments:
    """The external rollouts of one partition that have closed, and which segment is the last of each id.

    Attributes:
        last: by id, where there is more than one.
    """

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self._closed = HashedIds()
        self._traces: OrderedDict[str, Traces] = OrderedDict()

    def current(self, rollout_id: str) -> str:
        """The last segment of an id."""
        if not self.last:
            return rollout_id
        number = self.last.get(rollout_id)
        return rollout_id if number is None else segment(rollout_id, number)

    def of_reward(self, reward: Reward) -> str:
        """The segment that a reward goes to."""
        number = self.last.get(reward.rollout_id) if self.last else None
        return reward.rollout_id if number is None else segment_of_reward(reward, number)

    def opened(self, rollout_id: str) -> None:
        """A segment is there."""
        number = number_of(rollout_id)
        if number > 1:
            base = base_of(rollout_id)
            self.last[base] = max(number, self.last.get(base, 1))

    def closed(self, rollout_id: str, traces: Traces | None = None) -> None:
        """An external rollout or a segment of one has closed.

        Args:
            traces: in it and in its earlier segments, where they are known.
        """
        self.opened(rollout_id)
        self._closed.add(rollout_id)
        if traces is not None:
            self.remember(base_of(rollout_id), traces)

    def has_closed(self, rollout_id: str) -> bool:
        """Whether it is an external rollout, or a segment of one, that has closed."""
        return rollout_id in self._closed

    def traces(self, base: str) -> Traces | None:
        """The traces in the closed segments of an id; None where they must be read first."""
        found = self._traces.get(base)
        if found is not None:
            self._traces.move_to_end(base)
        return found

    def remember(self, base: str, traces: Traces) -> None:
        """Keeps the traces of an id in memory for a while."""
        self._traces[base] = traces
        self._traces.move_to_end(base)
        if len(self._traces) > CACHED_IDS:
            self._traces.popitem(last=False)

    def forget(self, rollout_id: str) -> None:
        """Its Assembled is no longer kept."""
        base, number = base_of(rollout_id), number_of(rollout_id)
        self._closed.discard(rollout_id)
        if self.last.get(base, 1) != number:
            return
        while number > 1:
            number -= 1
            if number > 1 and segment(base, number) in self._closed:
                self.last[base] = number
                return
        self.last.pop(base, None)
        self._traces.pop(base, None)
