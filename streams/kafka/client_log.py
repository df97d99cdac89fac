"""Log lines of one kind once in a while: else a broker that is away, or an agent that fails, would fill the disk."""

import logging
import time
from collections.abc import Callable

QUIET_SECONDS = 20.0


class Seldom(logging.Filter):
    """Lets a line pass if none with the same first two words passed in the last twenty seconds.

    librdkafka's lines begin with their kind and the client: `REQTMOUT [name#producer-1] [thrd:...]: ...`.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is to be written."""
        kind = " ".join(record.getMessage().split(" ", 2)[:2])
        now = self._monotonic()
        if now - self._passed.get(kind, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._passed[kind] = now
        return True
