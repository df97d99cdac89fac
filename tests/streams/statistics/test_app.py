"""The Faust app as a process, on a real broker."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from headrace.schemas.records import Reward, TrainingStep, Trajectory, VersionRange, Window, WorkerState
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings
from headrace.streams.workers import Workers
from tests.processes import Process, put_away, ready, start, variables

pytestmark = pytest.mark.kafka
DEADLINE_SECONDS = 60.0


@pytest.fixture
def statistics(settings: Settings, tmp_path: Path) -> Iterator[Process]:
    process = start("processor", "statistics", env=variables(settings), cwd=tmp_path)
    assert ready(process)["ready"] == "statistics"
    yield process
    put_away(process)
    assert not list(tmp_path.iterdir())  # Faust keeps its folder elsewhere


def trajectory(n: int) -> Trajectory:
    return Trajectory(
        rollout_id=f"ro-{n}",
        run_id="run",
        status="succeeded",
        final_reward=0.25,
        policy_version=VersionRange(min=1, max=1),
        assembled_at=0,
    )


def test_figures_reach_the_workers_topic(settings: Settings, statistics: Process) -> None:
    seen: Queue[WorkerState] = Queue()
    workers = Workers(settings, client_id="test", changed=seen.put).start()
    make = MessageMaker(settings)
    plain = make_producer(settings, "test")
    transactional = make_producer(settings, "test-tx", transactional_id=f"{settings.prefix}.test")
    transactional.init_transactions()

    def step(version: int) -> TrainingStep:
        return TrainingStep(
            run_id="run",
            step=version,
            policy="p",
            policy_version=version,
            window=Window(),
            started_at=0,
            ended_at=0,
        )

    numbers = iter(range(10_000))
    deadline = time.monotonic() + DEADLINE_SECONDS
    counters: dict[str, int] = {}
    # The app reads from the end on, from a moment after it is assigned its partitions: keep producing until it has.
    while counters.get("rollouts_succeeded", 0) < 30 or not counters.get("rewards_per_second"):
        assert time.monotonic() < deadline, counters
        for record in [step(3), *(trajectory(next(numbers)) for _ in range(10)), _reward(next(numbers))]:
            message = make(record)
            plain.produce(message.topic, message.value, message.key)
        plain.flush()
        transactional.begin_transaction()
        for _ in range(10):
            aborted = trajectory(next(numbers))
            aborted.status = "aborted"
            message = make(aborted)
            transactional.produce(message.topic, message.value, message.key)
        transactional.flush()
        transactional.abort_transaction()
        try:
            state = seen.get(timeout=1)
        except Empty:
            continue
        if state.kind == "statistics":
            counters = state.counters
    workers.close()
    assert counters["policy_version"] == 3
    assert counters["reward_mean_x1000"] == 250
    assert counters["staleness_mean_x1000"] == 2000
    assert counters["unreadable"] == 0
    assert "rollouts_aborted" not in counters
    statistics.send_signal(signal.SIGTERM)
    assert statistics.wait(90) == 0


def _reward(n: int) -> Reward:
    return Reward(rollout_id=f"ro-{n}", reward_id="r", primary=True, value=1.0, source="agent", at=0)
