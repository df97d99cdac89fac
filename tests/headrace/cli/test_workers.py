"""`headrace workers` on a real broker."""

from typing import Any

import pytest

from headrace.schemas.records import WorkerState
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def state(worker_id: str, kind: str, status: str = "idle", **values: Any) -> WorkerState:
    return WorkerState(
        worker_id=worker_id, kind=kind, host="h", pid=1, status=status, started_at=0, last_heartbeat_at=0, **values
    )


async def test_who_lives_is_listed_by_the_newest_of_what_it_has_said(asking: Any, settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    for record in (
        state("r1", "runner", counters={"started": 1}),
        state("e1", "engine", policy="p", loaded_version=3),
        state("r1", "runner", counters={"started": 2, "blocked_seconds": 0}),
        state("r2", "runner", "gone"),
    ):
        await producer.send(record)
    await producer.close()
    rows = asking.json("workers", "list", "--json")
    assert [(r["worker_id"], r["alive"]) for r in rows] == [("e1", True), ("r1", True)]
    assert set(rows[0]) == {*WorkerState.__struct_fields__, "alive", "silent_seconds"}
    assert rows[1]["counters"] == {"started": 2, "blocked_seconds": 0}
    every = asking.json("workers", "list", "--json", "--all", "--kind", "runner")
    assert [(r["worker_id"], r["alive"]) for r in every] == [("r1", True), ("r2", False)]
    assert [r["worker_id"] for r in asking.json("workers", "list", "--json", "--id-contains", "e")] == ["e1"]
    said = asking("workers", "list", "--all").stdout
    assert "p v3" in said
    assert "gone" in said
