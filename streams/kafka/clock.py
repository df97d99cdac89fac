"""Time is the log's: the newest append time that this process has read, plus monotonic time since."""

import time
from collections.abc import Callable


class LogClock:
    """Now, in microseconds since the epoch, as the brokers stamp it. Before the first record it is the wall clock's.

    Not for several threads: the one that polls observes and asks.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._at = int(wall() * 1e6)
        self._seen = monotonic()
        self._from_log = False

    def observe(self, append_time_ms: int) -> None:
        """Takes the append time of a record that was read."""
        at = append_time_ms * 1000
        if at > self.now() or not self._from_log:
            self._at = at
            self._seen = self._monotonic()
            self._from_log = True

    def now(self) -> int:
        """Microseconds since the epoch."""
        return self._at + int((self._monotonic() - self._seen) * 1e6)


def wall_us() -> int:
    """The wall clock of this machine: what records say of themselves (`at`), never what decides."""
    return time.time_ns() // 1000
