"""Which workers say that they are alive: what the workers topic tells of a machine's parts."""

import threading
import time
from collections.abc import Iterable, Mapping

from headrace.schemas.records import WorkerState
from headrace.streams.settings import Settings
from headrace.streams.workers import GONE, Workers

HUNG_SECONDS = 60.0


def hung(
    last: Mapping[str, float], ours: Iterable[str], now: float, *, heartbeat: float, seconds: float = HUNG_SECONDS
) -> list[str]:
    """The workers of ours that are silent while others are heard: the brokers are there, and the process hangs. Pure.

    Args:
        last: when each was heard.
        heartbeat: seconds between two signs of life.
    """
    mine = set(ours)
    if not any(now - heard < 2 * heartbeat for heard in last.values()):
        return []  # nobody is heard: it is the brokers, or this follower
    return sorted(w for w in mine if w in last and now - last[w] > seconds)


class Health:
    """Follows the workers topic. May be asked from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._heartbeat = settings.heartbeat.total_seconds()
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()
        self._workers = Workers(settings, client_id="up-workers", changed=self._heard)

    def start(self) -> None:
        """Starts following."""
        self._workers.start()

    def close(self) -> None:
        """Stops following."""
        self._workers.close()

    def forget(self, worker_id: str) -> None:
        """It ended, and whoever comes next is to be heard anew."""
        with self._lock:
            self._last.pop(worker_id, None)

    def hung(self, ours: Iterable[str]) -> list[str]:
        """See the function of that name."""
        with self._lock:
            return hung(self._last, ours, time.monotonic(), heartbeat=self._heartbeat)

    def _heard(self, state: WorkerState) -> None:
        with self._lock:
            if state.status == GONE:
                self._last.pop(state.worker_id, None)
            else:
                self._last[state.worker_id] = time.monotonic()
