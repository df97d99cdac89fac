"""Signs of life of the attempts in hand."""

from collections import deque
from collections.abc import Iterator

from headrace.streams.runner.attempt import RunningAttempt


class Heartbeats:
    """Which attempts are due. All have the same interval, so the next to be due always stands first."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._due: deque[tuple[float, RunningAttempt]] = deque()

    def add(self, running: RunningAttempt, now: float) -> None:
        """An attempt has started. `now` and the interval are in seconds of one monotonic clock."""
        self._due.append((now + self._interval, running))

    def due(self, now: float) -> Iterator[RunningAttempt]:
        """The attempts that still run and whose sign of life is due; each comes again after the interval."""
        while self._due and self._due[0][0] <= now:
            running = self._due.popleft()[1]
            if running.over:
                continue
            self._due.append((now + self._interval, running))
            yield running
