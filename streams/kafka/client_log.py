"""librdkafka's own log lines, each kind of a client once in a while: a broker that is away would fill the disk else."""

import logging
import time
from collections.abc import Callable

QUIET_SECONDS = 20.0


class Seldom(logging.Filter):
    """Lets a line pass if none of its kind and client passed in the last twenty seconds.

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
