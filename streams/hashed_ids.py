"""Millions of ids in little memory: 64-bit hashes, each with a number if wanted."""

from array import array
from bisect import bisect_left

import numpy as np

RECENT = 65_536


class HashedIds:
    """A map from ids to integers that keeps 16 bytes an id. Ids that share a hash (1 in 2^64) are taken for one.

    The hash is Python's own, salted anew in each process: the map never leaves it.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._hashes = array("q")
        self._numbers = array("q")

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    def __len__(self) -> int:
        return len(self._hashes) + len(self._recent)

    def get(self, id_: str) -> int | None:
        """The number of an id, `None` for one that is not there."""
        key = hash(id_)
        number = self._recent.get(key)
        if number is not None:
            return number
        place = bisect_left(self._hashes, key)
        if place < len(self._hashes) and self._hashes[place] == key:
            return self._numbers[place]
        return None

    def add(self, id_: str, number: int = 0) -> None:
        """Keeps an id, or gives a known one another number."""
        self._recent[hash(id_)] = number
        if len(self._recent) >= RECENT:
            self._merge()

    def _merge(self) -> None:
        recent = np.fromiter(self._recent.items(), dtype=[("hash", "<i8"), ("number", "<i8")], count=len(self._recent))
        # The recent ones stand first: of equal hashes numpy keeps the first.
        hashes = np.concatenate([recent["hash"], np.frombuffer(self._hashes, dtype=np.int64)])
        numbers = np.concatenate([recent["number"], np.frombuffer(self._numbers, dtype=np.int64)])
        hashes, index = np.unique(hashes, return_index=True)
        self._hashes = array("q", hashes.tobytes())
        self._numbers = array("q", numbers[index].tobytes())
        self._recent.clear()
