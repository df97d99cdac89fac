"""`headrace rollouts` on a real broker."""

import json
import signal
from typing import Any

import pytest

from headrace.schemas.records import AttemptState, ErrorInfo, RolloutState
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def state(n: int, status: str, **values: Any) -> RolloutState:
    return RolloutState(rollout_id=f"ro-{n}", status=status, enqueued_at=n, **values)


async def test_list_and_show_give_the_newest_state(headrace: Any, settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    failed = AttemptState(attempt_id="a", attempt=1, status="failed", error=ErrorInfo(type="ValueError", message="no"))
    for record in (
        state(1, "queuing"),
        state(2, "queuing"),
        state(1, "running"),
        state(3, "failed", attempts=[failed]),
        state(1, "succeeded", ended_at=5),
        state(4, "queuing"),
    ):
        await producer.send(record)
    await producer.send_message(producer.message.tombstone("RolloutState", "ro-4"))
    await producer.close()

    rows = headrace.json("rollouts", "list", "--json")
    assert [(r["rollout_id"], r["status"]) for r in rows] == [
        ("ro-1", "succeeded"),
        ("ro-2", "queuing"),
        ("ro-3", "failed"),
    ]
    assert set(rows[0]) == set(RolloutState.__struct_fields__)
    assert [r["rollout_id"] for r in headrace.json("rollouts", "list", "--json", "--limit", "1")] == ["ro-3"]
    queuing = headrace.json("rollouts", "list", "--json", "--status", "queuing", "--status", "failed")
    assert [r["rollout_id"] for r in queuing] == ["ro-2", "ro-3"]
    (shown,) = headrace.json("rollouts", "show", "ro-3", "--json")
    assert shown["attempts"][0]["error"] == {"type": "ValueError", "message": "no", "stacktrace": None}
    assert "ValueError" in headrace("rollouts", "list").stdout
    missing = headrace("rollouts", "show", "ro-9", "--json")
    assert missing.returncode == 1
    assert "ro-9" in missing.stderr
    assert headrace("rollouts", "list", "--status", "done").returncode == 2


async def test_watch_prints_every_state(headrace: Any, settings: Settings) -> None:
    producer = AckedProducer(settings, "test", linger_ms=0)
    await producer.send(state(1, "queuing"))
    process = headrace.start("rollouts", "watch", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["status"] == "queuing"
    await producer.send(state(1, "running"))
    assert json.loads(process.stdout.readline())["status"] == "running"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    await producer.close()
