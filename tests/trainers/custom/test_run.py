"""Custom algorithms on a real broker."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.records import JournalEntry, Record, ResourcesUpdate, Task, Trajectory
from headrace.streams.codec import Codec
from headrace.streams.errors import FencedError, SettingsError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.custom import Context, algorithm
from headrace.trainers.custom.run import CustomRun, run_algorithm
from tests.trainers.custom.dying import RUN, find_best

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[3]


@contextmanager
def answering(settings: Settings) -> Iterator[None]:
    """Stands for runners, lifecycle and assembler: a trajectory a rollout, with reward 1 for prompts with a `?`."""
    make, producer = MessageMaker(settings), make_producer(settings, "answers", linger_ms=0)
    rewards: dict[str | None, float] = {}
    done: set[str] = set()
    news = threading.Condition()

    def published(record: Record, message: Message) -> None:
        if isinstance(record, ResourcesUpdate):
            with news:
                rewards[record.resources_id] = float("?" in str(record.resources))
                news.notify_all()

    def task(record: Record, message: Message) -> None:
        assert isinstance(record, Task)
        if record.rollout_id in done:
            return
        done.add(record.rollout_id)
        with news:
            assert news.wait_for(lambda: record.resources_id in rewards, 60)
        out = make(
            Trajectory(
                rollout_id=record.rollout_id,
                run_id=record.run_id,
                mode=record.mode,
                input=record.input,
                status="succeeded",
                final_reward=rewards[record.resources_id],
                resources_id=record.resources_id,
                assembled_at=0,
            )
        )
        producer.produce(out.topic, out.value, out.key)
        producer.flush()

    resources = TopicFollower(settings, "resources", published, client_id="test").start()
    partitions = partition_ids(settings, settings.topic("tasks"))
    tasks = TopicFollower(settings, "tasks", task, client_id="test", partitions=partitions).start()
    try:
        yield
    finally:
        tasks.close()
        resources.close()


def records(settings: Settings, topic: str) -> list[Any]:
    codec, full = Codec(settings), settings.topic(topic)
    return [codec.decode(m.value()) for m in read_topic(settings, full, partition_ids(settings, full), client_id="t")]


async def test_killed_before_in_and_after_its_transactions(settings: Settings) -> None:
    given = {"bootstrap": settings.bootstrap, "prefix": settings.prefix, "partitions": settings.partitions}
    with answering(settings):
        for point, nth in (("in", 3), ("after", 2), ("before", 2)):
            command = [sys.executable, "-m", "tests.trainers.custom.dying", json.dumps(given), point, str(nth)]
            dead = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, timeout=60, check=False)
            assert dead.returncode == -signal.SIGKILL
        facts: list[dict[str, Any]] = []
        result = await run_algorithm(settings, find_best, RUN, facts.append)
        assert facts[0]["replayed"] > 0
        # Of a run that has ended nothing is done again, and another process takes nothing from it.
        assert await run_algorithm(settings, find_best, RUN) == result
    assert result["scores"] == [0.0, 1.0]
    assert result["best"] == "{x}?"
    tasks, published = records(settings, "tasks"), records(settings, "resources")
    assert len(tasks) == len({t.rollout_id for t in tasks}) == 4
    assert Counter(u.name for u in published) == {"prompt.candidates": 2, "prompt": 1}
    entries = [r for r in records(settings, "training") if isinstance(r, JournalEntry)]
    assert max(Counter(e.place for e in entries).values()) == 1
    assert Counter(e.kind for e in entries) == {
        "publish": 3, "enqueue": 2, "trajectories": 2, "step": 1, "returned": 1
    }  # fmt: skip
    changed = CustomRun(run_id=RUN.run_id, inputs=replace(RUN.inputs, arguments={"prompts": []}))
    with pytest.raises(SettingsError, match=r"arguments\.prompts has changed"):
        await run_algorithm(settings, find_best, changed)


async def test_a_second_process_takes_the_run_over(settings: Settings) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    @algorithm(name="two")
    async def waiting(ctx: Context) -> int:
        await ctx.step("first", int)
        reached.set()
        await go_on.wait()
        return await ctx.step("second", int, "2")

    @algorithm(name="two")
    async def going(ctx: Context) -> int:
        return await ctx.step("first", int) + await ctx.step("second", int, "2")

    run = CustomRun(run_id="r")
    first = asyncio.create_task(run_algorithm(settings, waiting, run))
    await reached.wait()
    assert await run_algorithm(settings, going, run) == 2
    go_on.set()
    with pytest.raises(FencedError, match="taken over run r"):
        await first
