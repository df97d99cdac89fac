"""Workers announce themselves and are found, on a real broker."""

import pytest

from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.settings import Settings
from headrace.streams.workers import WorkerAnnouncer, Workers
from tests.waiting import eventually

pytestmark = pytest.mark.kafka


async def test_a_worker_is_found_until_it_leaves(settings: Settings) -> None:
    producer = AckedProducer(settings, "test", linger_ms=0)
    first = WorkerAnnouncer(settings, producer, "engine", worker_id="e1", endpoint="http://a", policy="p")
    await first.start()
    workers = Workers(settings, client_id="test-workers").start()
    assert [w.worker_id for w in workers.live("engine")] == ["e1"]
    counters = {"n": 0}
    second = WorkerAnnouncer(settings, producer, "engine", worker_id="e2", policy="other", counters=counters.copy)
    counters["n"] = 1
    await second.start()
    await eventually(lambda: len(workers.live("engine")) == 2)
    assert [w.worker_id for w in workers.live("engine", policy="other")] == ["e2"]
    assert workers.live("engine", policy="other")[0].counters == {"n": 1}
    assert workers.live("gateway") == []
    await first.announce(loaded_version=3)
    await eventually(lambda: workers.live("engine", policy="p")[0].loaded_version == 3)
    await first.stop()
    await eventually(lambda: [w.worker_id for w in workers.live("engine")] == ["e2"])
    await second.stop()
    workers.close()
    await producer.close()


async def test_a_worker_is_busy_while_its_counters_change_or_rollouts_run(settings: Settings) -> None:
    producer = AckedProducer(settings, "test", linger_ms=0)
    counters = {"started": 0, "running": 0}
    worker = WorkerAnnouncer(settings, producer, "runner", worker_id="r1", counters=counters.copy)
    seen: list[str] = []
    for started, running in ((0, 0), (1, 1), (1, 1), (1, 0), (1, 0)):
        counters |= {"started": started, "running": running}
        await worker.announce()
        seen.append(worker.state.status)
    await worker.stop()
    worker.beat()
    await producer.close()
    assert [*seen, worker.state.status] == ["busy", "busy", "busy", "busy", "idle", "gone"]
