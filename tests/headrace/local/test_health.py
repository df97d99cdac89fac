"""Who hangs, and who only cannot be heard."""

from headrace.local.health import HUNG_SECONDS, hung

HEARTBEAT = 10.0


def test_a_silent_worker_hangs_while_another_is_heard() -> None:
    now = 1000.0
    last = {"runner": now - HUNG_SECONDS - 1, "gateway": now - 5, "other": now - HUNG_SECONDS - 1}
    assert hung(last, ["runner", "gateway", "never-heard"], now, heartbeat=HEARTBEAT) == ["runner"]


def test_nobody_hangs_while_nobody_is_heard() -> None:
    last = {"runner": 0.0, "gateway": 0.0}
    assert hung(last, ["runner", "gateway"], 1000.0, heartbeat=HEARTBEAT) == []


def test_short_silence_is_none() -> None:
    last = {"runner": 970.0, "gateway": 999.0}
    assert hung(last, ["runner", "gateway"], 1000.0, heartbeat=HEARTBEAT) == []
