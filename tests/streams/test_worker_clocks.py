"""Who is live does not hang on the clocks of brokers and machines agreeing."""

import time
from typing import Any

import pytest

from headrace.schemas.records import WorkerState
from headrace.streams.settings import Settings
from headrace.streams.workers import Workers

YEAR_MS = 365 * 24 * 3600 * 1000


class Stamped:
    """A message with an append time."""

    def __init__(self, at_ms: float) -> None:
        self._at = int(at_ms)

    def timestamp(self) -> tuple[int, int]:
        return 2, self._at


def state(worker_id: str) -> WorkerState:
    return WorkerState(
        worker_id=worker_id, kind="engine", host="h", pid=1, status="idle", started_at=0, last_heartbeat_at=0
    )


@pytest.mark.parametrize("skew", [0, -YEAR_MS, YEAR_MS])
def test_a_heartbeat_that_comes_now_is_from_now(skew: float, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(Settings(), client_id="test")
    follower: Any = workers._follower
    monkeypatch.setattr(follower, "start", lambda: follower)
    now_ms = time.time() * 1000 + skew
    handle: Any = workers._handle
    handle(state("long gone"), Stamped(now_ms - 3_600_000))
    workers.start()
    if skew <= 0:
        assert workers.live("engine") == []
    handle(state("here"), Stamped(now_ms))
    assert "here" in [s.worker_id for s in workers.live("engine")]
