"""Ids of rollouts that are remembered for an age: millions, in twelve bytes each.

Runners remember so who has ended, for as long as a task may repeat one of them, and feeders who is counted.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

MERGE_AT = 65_536  # recent ids stand in a dict (100 bytes each) until they are merged into the sorted arrays
HOUR_MS = 3_600_000


class AgedIds:
    """A set of rollout ids with a time of each, kept as 64-bit hashes and hours.

    Python's hash of bytes is SipHash with a key of this process: 64 bits, and nobody outside can make two ids meet.
    Times are log time in milliseconds.
    """

    def __init__(self) -> None:
        self._hashes: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)  # sorted
        self._hours: npt.NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self._recent: dict[int, int] = {}

    def add(self, rollout_id: str, at: int) -> None:
        """Remembers an id of a time; of two times the later counts."""
        self._add(hash(rollout_id.encode()), at)

    def add_key(self, key: bytes, at: int) -> None:
        """As `add`, of an id as it stands in the key of a message."""
        self._add(hash(key), at)

    def add_keys(self, keys: Mapping[bytes, int]) -> None:
        """As `add_key`, of many ids with their times."""
        for key, at in keys.items():
            self._add(hash(key), at)

    def _add(self, number: int, at: int) -> None:
        self._recent[number] = max(at // HOUR_MS, self._recent.get(number, 0))
        if len(self._recent) >= MERGE_AT:
            self._merge()

    def forget(self, before: int) -> None:
        """Forgets what is of an hour that was over at a time."""
        hour = before // HOUR_MS
        self._recent = {number: at for number, at in self._recent.items() if at >= hour}
        kept = self._hours >= max(0, hour)
        if not kept.all():
            self._hashes, self._hours = self._hashes[kept], self._hours[kept]

    def __contains__(self, rollout_id: str) -> bool:
        return self.has_key(rollout_id.encode())

    def has_key(self, key: bytes) -> bool:
        """Whether the id is there that stands in the key of a message."""
        number = hash(key)
        if number in self._recent:
            return True
        if not self._hashes.size:
            return False
        place = int(self._hashes.searchsorted(number))
        return place < self._hashes.size and int(self._hashes[place]) == number

    def __len__(self) -> int:
        """How many ids there are; one that came again a moment ago may count twice."""
        return self._hashes.size + len(self._recent)

    def _merge(self) -> None:
        count = len(self._recent)
        hashes = np.concatenate((np.fromiter(self._recent.keys(), dtype=np.int64, count=count), self._hashes))
        hours = np.concatenate((np.fromiter(self._recent.values(), dtype=np.uint32, count=count), self._hours))
        self._recent = {}
        order = np.lexsort((~hours, hashes))
        hashes, hours = hashes[order], hours[order]
        first = np.concatenate(([True], hashes[1:] != hashes[:-1]))
        self._hashes, self._hours = hashes[first], hours[first]
