"""Counters that threads share, without a lock: one that is held while the process forks would stay locked there."""

from collections import deque
from collections.abc import Iterable, Mapping


class Counts:
    """Named counters. Any thread adds to them, one reads them."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._added: deque[tuple[str, int]] = deque()

    def declare(self, names: Iterable[str]) -> None:
        """These are told even while they are zero."""
        self._values = {**dict.fromkeys(names, 0), **self._values}

    def add(self, name: str, count: int = 1) -> None:
        """Counts."""
        if count:
            self._added.append((name, count))

    def merge(self, counts: Mapping[str, int]) -> None:
        """Takes what another process has counted."""
        for name, count in counts.items():
            self.add(name, count)

    def values(self) -> dict[str, int]:
        """All of them."""
        while self._added:
            name, count = self._added.popleft()
            self._values[name] = self._values.get(name, 0) + count
        return dict(self._values)

    def take(self) -> dict[str, int]:
        """All that are not zero; they are zero then."""
        taken = {name: count for name, count in self.values().items() if count}
        self._values = dict.fromkeys(self._values, 0)
        return taken
