"""Millions of ids in little memory: 64-bit hashes, each with a number if wanted."""

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

RECENT = 8_192  # in a dict, some 150 bytes each, until they are merged into the sorted arrays
GONE = -(2**63)


class HashedIds:
    """A map from ids to integers that keeps 16 bytes an id. Ids that share a hash (1 in 2^64) are taken for one.

    The hash is Python's own, salted anew in each process: the map never leaves it.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._hashes: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._numbers: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._sorted = self._hashes.data  # bisect on it makes no numpy scalars

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    def __len__(self) -> int:
        """How many ids there are, give or take those discarded a moment ago."""
        return len(self._hashes) + sum(self._place(key) is None for key in self._recent)

    def get(self, id_: str) -> int | None:
        """The number of an id, `None` for one that is not there."""
        key = hash(id_)
        number = self._recent.get(key)
        if number is None:
            place = self._place(key)
            if place is None:
                return None
            number = int(self._numbers[place])
        return None if number == GONE else number

    def add(self, id_: str, number: int = 0) -> None:
        """Keeps an id, or gives a known one another number."""
        self._recent[hash(id_)] = number
        if len(self._recent) >= RECENT:
            self._merge()

    def discard(self, id_: str) -> None:
        """Forgets an id."""
        key = hash(id_)
        if self._place(key) is None:
            self._recent.pop(key, None)
        else:
            self._recent[key] = GONE

    def _place(self, key: int) -> int | None:
        place = bisect_left(self._sorted, key)
        return place if place < len(self._sorted) and self._sorted[place] == key else None

    def _merge(self) -> None:
        count = len(self._recent)
        hashes = np.fromiter(self._recent.keys(), dtype=np.int64, count=count)
        numbers = np.fromiter(self._recent.values(), dtype=np.int64, count=count)
        self._recent.clear()
        order = np.argsort(hashes)
        hashes, numbers = hashes[order], numbers[order]
        places = np.searchsorted(self._hashes, hashes)
        known = np.zeros(count, dtype=bool)
        inside = places < len(self._hashes)
        known[inside] = self._hashes[places[inside]] == hashes[inside]
        self._numbers[places[known]] = numbers[known]
        fresh = ~known & (numbers != GONE)
        merged_hashes = np.insert(self._hashes, places[fresh], hashes[fresh])
        merged_numbers = np.insert(self._numbers, places[fresh], numbers[fresh])
        if (gone := merged_numbers == GONE).any():
            merged_hashes, merged_numbers = merged_hashes[~gone], merged_numbers[~gone]
        self._hashes, self._numbers = merged_hashes, merged_numbers
        self._sorted = self._hashes.data
