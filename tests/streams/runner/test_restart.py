"""The real command: killed in the middle, stopped politely, and with a broker that goes away."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import rollout
from headrace.streams.kafka.clients import make_consumer

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

COMMAND = str(Path(sys.executable).parent / "headrace")
AGENT = """
import asyncio
from headrace import rollout

@rollout
async def agent(task):
    await asyncio.sleep(0.2 + (task % 7) / 20)
    return 1.0
"""


class Process:
    """A `headrace runner`."""

    def __init__(self, pipeline: Any, file: Path, *more: str) -> None:
        settings = pipeline.settings
        env = {
            **os.environ,
            "HEADRACE_BOOTSTRAP": settings.bootstrap,
            "HEADRACE_PREFIX": settings.prefix,
            "HEADRACE_PARTITIONS": str(settings.partitions),
            "HEADRACE_HEARTBEAT": "PT1S",
            "HEADRACE_LEASE": "PT3S",
        }
        self.popen = subprocess.Popen(
            [COMMAND, "runner", f"{file}:agent", "--concurrency", "50", *more],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> dict[str, Any]:
        assert self.popen.stdout is not None
        return json.loads(self.popen.stdout.readline())

    def end(self, number: int) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(60)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(AGENT)
    return path


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.wait()


def counting_ends(pipeline: Any) -> Counter[str]:
    """How many counting ends other than `lost` each rollout has."""
    return Counter(
        r
        for r, judge in pipeline.judges().items()
        for a in judge.attempts.values()
        if a.end is not None and a.end.type != "lost"
    )


def committed(pipeline: Any) -> int:
    """What the group has committed, over all partitions."""
    from confluent_kafka import TopicPartition

    settings = pipeline.settings
    consumer = make_consumer(settings, "test", group="runner")
    topic = settings.topic("tasks")
    found = consumer.committed([TopicPartition(topic, p) for p in range(settings.partitions)], 30)
    consumer.close()
    return sum(max(0, tp.offset) for tp in found)


async def test_a_killed_runner_loses_nothing_and_repeats_nothing(pipeline, file, processes) -> None:
    ids = pipeline.tasks(*range(600))
    processes.append(Process(pipeline, file))
    assert (await asyncio.to_thread(processes[0].ready))["ready"] == "runner"
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 100)
    processes[0].end(signal.SIGKILL)
    before = set(counting_ends(pipeline))
    assert len(before) < 600
    processes.append(Process(pipeline, file))
    judges = await pipeline.closed(ids)
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)
    assert all(j.ignored_ends == 0 for j in judges.values())
    again = [r for r in before if len(judges[r].attempts) > 1]
    assert again == []
    assert await asyncio.to_thread(processes[1].end, signal.SIGTERM) == 0
    assert committed(pipeline) == 600


async def test_a_second_runner_takes_its_share_and_nothing_runs_twice(pipeline, file, processes) -> None:
    ids = pipeline.tasks(*range(400))
    processes.append(Process(pipeline, file, "--concurrency", "20"))
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 50)
    processes.append(Process(pipeline, file, "--concurrency", "20"))
    await asyncio.to_thread(processes[1].ready)
    await asyncio.sleep(2)  # it joins the group in the middle of the work
    ids = pipeline.tasks(*range(800))
    judges = await pipeline.closed(ids)
    workers = Counter(a.started.worker_id for j in judges.values() for a in j.attempts.values())
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)
    assert all(len(j.attempts) == 1 for j in judges.values())
    assert len(workers) == 2
    assert [await asyncio.to_thread(p.end, signal.SIGTERM) for p in processes] == [0, 0]


async def test_sigterm_finishes_what_runs_and_commits(pipeline, file, processes) -> None:
    pipeline.tasks(*range(400))
    processes.append(Process(pipeline, file))
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 20)
    assert await asyncio.to_thread(processes[0].end, signal.SIGTERM) == 0
    judges = pipeline.judges()
    assert all(j.closed and j.closing.type == "succeeded" for j in judges.values())
    assert committed(pipeline) == len(judges)


async def test_a_broker_away_for_ten_seconds_loses_nothing(pipeline, kafka) -> None:
    if not kafka.pid:
        pytest.skip("the broker is not this suite's to stop")

    @rollout
    async def agent(task: Any) -> float:
        await asyncio.sleep(0.05)
        return 1.0

    ids = pipeline.tasks(*range(300))
    async with pipeline.runner(agent, concurrency=20):
        await pipeline.until(lambda: len(counting_ends(pipeline)) > 20)
        os.kill(kafka.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(10)
        finally:
            os.kill(kafka.pid, signal.SIGCONT)
        await pipeline.closed(ids)
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)
