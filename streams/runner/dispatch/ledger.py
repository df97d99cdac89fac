"""How far the tasks of one partition are finished."""

from collections import deque


class Ledger:
    """The offsets fetched of a tasks partition. `position` is the first unfinished one: what is committed."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._open: deque[int] = deque()
        self._finished: set[int] = set()
        self._last = position - 1

    def add(self, offset: int) -> bool:
        """Takes a fetched offset, in the log's order; False if it was fetched before."""
        if offset <= self._last:
            return False
        self._last = offset
        self._open.append(offset)
        return True

    def finish(self, offset: int) -> None:
        """The task of an offset is finished; one that is not in the ledger is another owner's, and ignored."""
        if offset < self.position or offset > self._last:
            return
        self._finished.add(offset)
        while self._open and self._open[0] in self._finished:
            self._finished.discard(self._open.popleft())
        # Between records may stand the markers of transactions, which nobody fetches.
        self.position = self._open[0] if self._open else self._last + 1

    @property
    def unfinished(self) -> int:
        """Fetched and not finished, as far as it can be said without a search."""
        return len(self._open) - len(self._finished)
