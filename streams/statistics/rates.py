"""Rates over a sliding window. Pure: every call says what time it is."""

from collections import deque

WINDOW_SECONDS = 5.0


class EventRate:
    """Events a second by the time that each of them has, so that reading a backlog is no burst."""

    def __init__(self, window: float = WINDOW_SECONDS) -> None:
        self._window = window
        self._buckets: deque[list[float]] = deque()  # [second, count], ascending

    def add(self, at: float, count: int = 1) -> None:
        """Counts events of a time in seconds; one older than the newest falls into the newest second."""
        second = float(int(at))
        if not self._buckets or second > self._buckets[-1][0]:
            self._buckets.append([second, count])
            while self._buckets[0][0] < second - self._window - 1:
                self._buckets.popleft()
        else:
            self._buckets[-1][1] += count

    def per_second(self, now: float) -> float:
        """The rate over the whole seconds of the window before this one."""
        end = float(int(now))
        return sum(n for second, n in self._buckets if end - self._window <= second < end) / self._window


class TotalRate:
    """The rate of a total that is asked for now and then, such as an end offset."""

    def __init__(self, window: float = WINDOW_SECONDS) -> None:
        self._window = window
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, at: float, total: int) -> None:
        """Takes the total of a time in seconds."""
        self._samples.append((at, total))
        while len(self._samples) > 2 and self._samples[1][0] <= at - self._window:
            self._samples.popleft()

    def per_second(self) -> float:
        """The rate between the oldest and the newest sample of the window; 0 before there are two."""
        if len(self._samples) < 2:
            return 0.0
        (since, before), (until, after) = self._samples[0], self._samples[-1]
        return max(0, after - before) / (until - since) if until > since else 0.0


class RecentMean:
    """The mean of the last values."""

    def __init__(self, size: int = 200) -> None:
        self._values: deque[float] = deque(maxlen=size)

    def add(self, value: float) -> None:
        """Takes a value."""
        self._values.append(value)

    def mean(self) -> float | None:
        """The mean, `None` before the first value."""
        return sum(self._values) / len(self._values) if self._values else None
