"""`headrace rollouts` on a real broker."""

import json
import signal
from typing import Any

import pytest

from headrace.schemas.records import AttemptState, ErrorInfo, RolloutState, Task
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import OutMessage
from headrace.streams.producing.cancelling import UnknownRolloutError
from headrace.streams.settings import Settings
from tests.processes import put_away
from tests.waiting import until

pytestmark = pytest.mark.kafka
HOUR = 3_600_000_000  # microseconds


def state(n: int, status: str, **values: Any) -> RolloutState:
    return RolloutState(rollout_id=f"ro-{n}", status=status, enqueued_at=n, **values)


async def test_list_and_show_give_the_newest_state(headrace: Any, asking: Any, settings: Settings) -> None:
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
    good = producer.message(state(2, "failed"))
    for key, value in ((b"ro-2", b"garbage"), (b"ro-3", good.value)):  # nobody takes those, whoever reads them
        await producer.send_message(OutMessage(good.topic, key, value))
    await producer.close()

    rows = asking.json("rollouts", "list", "--json")
    assert [(r["rollout_id"], r["status"]) for r in rows] == [
        ("ro-1", "succeeded"),
        ("ro-2", "queuing"),
        ("ro-3", "failed"),
    ]
    assert set(rows[0]) == set(RolloutState.__struct_fields__)
    assert [r["rollout_id"] for r in asking.json("rollouts", "list", "--json", "--limit", "1")] == ["ro-3"]
    queuing = asking.json("rollouts", "list", "--json", "--status", "queuing", "--status", "failed")
    assert [r["rollout_id"] for r in queuing] == ["ro-2", "ro-3"]
    (shown,) = asking.json("rollouts", "show", "ro-3", "--json")
    assert shown["attempts"][0]["error"] == {"type": "ValueError", "message": "no", "stacktrace": None}
    assert "ValueError" in asking("rollouts", "list").stdout
    missing = headrace("rollouts", "show", "ro-9", "--json")
    assert missing.returncode == 1
    assert "ro-9" in missing.stderr
    assert asking("rollouts", "list", "--status", "done").exit_code == 2


async def test_watch_prints_every_state(headrace: Any, settings: Settings) -> None:
    producer = AckedProducer(settings, "test", linger_ms=0)
    await producer.send(state(1, "queuing"))
    process = headrace.start("rollouts", "watch", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["status"] == "queuing"
    await producer.send(state(1, "running"))
    assert json.loads(process.stdout.readline())["status"] == "running"
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0
    await producer.close()


def test_filters_order_and_pages(asking: Any) -> None:
    now = wall_us()
    asking.write(
        *(
            RolloutState(
                rollout_id=f"ro-{n}",
                status="failed" if n % 2 else "running",
                run_id=f"run-{n // 3}",
                mode="train",
                enqueued_at=now - (6 - n) * HOUR,
            )
            for n in range(6)
        )
    )

    def ids(*options: str) -> list[str]:
        return [r["rollout_id"] for r in asking.json("rollouts", "list", "--json", *options)]

    assert ids("--limit", "2") == ["ro-4", "ro-5"]
    assert ids("--limit", "2", "--offset", "2") == ["ro-2", "ro-3"]
    assert ids("--since", "150m", "--status", "failed") == ["ro-5"]
    newest_of_run = ids("--run", "run-0", "--mode", "train", "--sort-by", "rollout_id", "--order", "desc")
    assert newest_of_run == ["ro-2", "ro-1", "ro-0"]
    assert ids("--id", "ro-1", "--id", "ro-9", "--id-contains", "-4", "--any") == ["ro-1", "ro-4"]
    wrong = asking("rollouts", "list", "--sort-by", "size")
    assert (wrong.exit_code, "enqueued_at" in wrong.output) == (2, True)
    assert asking("rollouts", "list", "--since", "soon").exit_code == 2


def test_cancel_says_what_it_did(asking: Any, headrace: Any) -> None:
    asking.write(
        Task(rollout_id="ro-queued", input="1", enqueued_at=1),
        RolloutState(rollout_id="ro-done", status="succeeded", enqueued_at=1, ended_at=2),
    )
    unknown = asking("rollouts", "cancel", "ro-queued", "ro-x", "ro-y")
    assert isinstance(unknown.exception, UnknownRolloutError)
    assert "ro-x, ro-y" in str(unknown.exception)
    assert asking.json("rollouts", "cancel", "ro-queued", "ro-done", "--json") == [
        {"rollout_id": "ro-queued", "status": None, "requested": True},
        {"rollout_id": "ro-done", "status": "succeeded", "requested": False},
    ]
    lifecycle = headrace.start("processor", "lifecycle")
    try:
        assert lifecycle.stdout.readline()
        asked = ("rollouts", "list", "--id", "ro-queued", "--json")
        until(lambda: [r["status"] for r in asking.json(*asked)] == ["cancelled"])
    finally:
        put_away(lifecycle)
    assert "it has ended" in asking("rollouts", "cancel", "ro-queued").stdout
