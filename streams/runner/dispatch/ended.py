"""Which rollouts have ended: millions of ids in eight bytes each."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

MERGE_AT = 65_536  # recent ids stand in a set (70 bytes each) until they are merged into the sorted array


class EndedIds:
    """A set of rollout ids, kept as 64-bit hashes.

    Python's hash of bytes is SipHash with a key of this process: 64 bits, and nobody outside can make two ids meet.
    """

    def __init__(self) -> None:
        self._sorted: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._recent: set[int] = set()

    def add(self, rollout_id: str) -> None:
        """Remembers an id."""
        self._recent.add(hash(rollout_id.encode()))
        if len(self._recent) >= MERGE_AT:
            self._merge()

    def add_keys(self, keys: Iterable[bytes]) -> None:
        """Remembers ids as they stand in the keys of messages."""
        self._recent.update(map(hash, keys))
        if len(self._recent) >= MERGE_AT:
            self._merge()

    def __contains__(self, rollout_id: str) -> bool:
        number = hash(rollout_id.encode())
        if number in self._recent:
            return True
        if not self._sorted.size:
            return False
        place = int(self._sorted.searchsorted(number))
        return place < self._sorted.size and int(self._sorted[place]) == number

    def __len__(self) -> int:
        return self._sorted.size + len(self._recent)

    def _merge(self) -> None:
        recent = np.fromiter(self._recent, dtype=np.int64, count=len(self._recent))
        self._sorted = np.union1d(self._sorted, recent)
        self._recent = set()
