"""What of each partition is finished: the first unfinished offset and the finished runs beyond it."""

from collections.abc import Iterable
from itertools import pairwise

from headrace.schemas.records import OffsetRun, PartitionPosition

At = tuple[int, int]


class Positions:
    """Offsets read so far, less those that are unfinished.

    Offsets that no record has (transaction markers, compacted records) count as finished once they were passed.
    """

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self._unfinished: dict[int, list[int]] = {}
        self._unread: dict[int, list[int]] = {}

    @classmethod
    def restored(cls, positions: Iterable[PartitionPosition]) -> "Positions":
        """As `snapshot` has written them; the unfinished offsets wait to be read again."""
        restored = cls()
        for position in positions:
            missing: list[int] = []
            offset = position.next
            for run in position.finished:
                missing.extend(range(offset, run.first))
                offset = run.last + 1
            restored._next[position.partition] = offset
            restored._unfinished[position.partition] = list(missing)
            restored._unread[position.partition] = missing
        return restored

    def read(self, at: At) -> tuple[bool, list[At]]:
        """Notes a record that was read.

        Returns:
            Whether it is to be decided (false: it was, before a restart), and positions that were unfinished before a
            restart and are not there any more.
        """
        partition, offset = at
        expired = self._expire(partition, offset)
        unread = self._unread.get(partition)
        if unread and unread[0] == offset:
            unread.pop(0)
            return True, expired
        if offset < self._next.get(partition, 0):
            return False, expired
        self._next[partition] = offset + 1
        # Offsets of a partition come in order, so that the list stays sorted.
        self._unfinished.setdefault(partition, []).append(offset)
        return True, expired

    def reached(self, partition: int, offset: int) -> list[At]:
        """All before `offset` was read; returns positions that are not there any more, as `read`."""
        expired = self._expire(partition, offset)
        self._next[partition] = max(offset, self._next.get(partition, 0))
        return expired

    def finish(self, at: At) -> None:
        """A record that was read is decided."""
        self._unfinished[at[0]].remove(at[1])

    def snapshot(self) -> list[PartitionPosition]:
        """The position of every partition that was read, by partition."""
        return [
            PartitionPosition(
                partition=partition,
                next=unfinished[0] if (unfinished := self._unfinished.get(partition)) else end,
                finished=_runs(unfinished or [], end),
            )
            for partition, end in sorted(self._next.items())
        ]

    def _expire(self, partition: int, before: int) -> list[At]:
        unread = self._unread.get(partition)
        expired: list[At] = []
        while unread and unread[0] < before:
            expired.append((partition, unread.pop(0)))
        for at in expired:
            self.finish(at)
        return expired


def _runs(unfinished: list[int], end: int) -> list[OffsetRun]:
    bounds = [*unfinished, end]
    return [OffsetRun(first=before + 1, last=after - 1) for before, after in pairwise(bounds) if after - before > 1]
