"""A runner in this process on real topics, and what the log says afterwards."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from headrace.schemas.records import AttemptEvent, Record, Reward, Span, Task, TaskConfig
from headrace.streams.agent.base import Agent
from headrace.streams.codec import Codec
from headrace.streams.ends import EndJudge
from headrace.streams.kafka.clients import make_consumer, make_producer
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.runner.options import RunnerOptions
from headrace.streams.runner.runner import Runner
from headrace.streams.settings import Settings
from tests.processes import Process, put_away, ready, start, variables
from tests.waiting import eventually

PATIENCE_SECONDS = 90.0


class Pipeline:
    """The topics of one test."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.message = MessageMaker(settings)
        self.codec = Codec(settings)
        self.producer = make_producer(settings, "test", linger_ms=0)

    def produce(self, records: Iterable[Record]) -> None:
        for record in records:
            out = self.message(record)
            self.producer.produce(out.topic, out.value, out.key, out.partition, headers=out.headers or None)
        self.producer.flush()

    def tasks(self, *inputs: Any, first: int = 0, **fields: Any) -> list[str]:
        """Produces a task for each input; their rollout ids, `r<first>` and so on."""
        config = TaskConfig(**fields.pop("config", {}))
        made = [
            Task(rollout_id=f"r{i}", input=json.dumps(value), config=config, enqueued_at=0, **fields)
            for i, value in enumerate(inputs, first)
        ]
        self.produce(made)
        return [one.rollout_id for one in made]

    def records(self, topic: str) -> list[Any]:
        full = self.settings.topic(topic)
        partitions = range(self.settings.partitions)
        return [self.codec.decode(m.value()) for m in read_topic(self.settings, full, partitions, client_id="test")]

    def raw(self, full_topic: str, partitions: int = 1) -> list[Any]:
        return list(read_topic(self.settings, full_topic, range(partitions), client_id="test"))

    def judges(self) -> dict[str, EndJudge]:
        """What the attempts say, by rollout."""
        judges: dict[str, EndJudge] = {}
        full = self.settings.topic("attempts")
        for m in read_topic(self.settings, full, range(self.settings.partitions), client_id="test"):
            event = self.codec.decode_as(AttemptEvent, m.value())
            judges.setdefault(event.rollout_id, EndJudge()).read(event, m.offset() or 0)
        return judges

    def committed(self) -> int:
        """What the group has committed, over all partitions."""
        consumer = make_consumer(self.settings, "test", group="runner")
        topic = self.settings.topic("tasks")
        found = consumer.committed([TopicPartition(topic, p) for p in range(self.settings.partitions)], 30)
        consumer.close()
        return sum(max(0, tp.offset) for tp in found)

    def events(self, rollout_id: str) -> list[AttemptEvent]:
        return [e for e in self.records("attempts") if e.rollout_id == rollout_id]

    def rewards(self) -> list[Reward]:
        return self.records("rewards")

    def spans(self) -> list[Span]:
        return self.records("spans")

    async def until(self, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Waits for a condition of this process."""
        await eventually(condition, seconds)

    async def closed(self, rollout_ids: Iterable[str], seconds: float = PATIENCE_SECONDS) -> dict[str, EndJudge]:
        """Waits until every rollout is closed."""
        wanted = set(rollout_ids)
        deadline = time.monotonic() + seconds
        while True:
            judges = await asyncio.to_thread(self.judges)
            left = {r for r in wanted if r not in judges or not judges[r].closed}
            if not left:
                return judges
            assert time.monotonic() < deadline, f"not closed: {sorted(left)[:10]} ({len(left)})"
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def runner(self, agent: Agent, **options: Any) -> AsyncIterator[Runner]:
        """A runner that works for the block, then drains."""
        runner = Runner(self.settings, agent, RunnerOptions(**options))
        await runner.start()
        work = asyncio.create_task(runner.run())
        try:
            yield runner
            assert not work.done(), work.exception()
            await runner.drain()
        finally:
            work.cancel()
            await runner.close()


RunnerMaker = Callable[..., AbstractAsyncContextManager[Runner]]


@pytest.fixture
def pipeline(settings: Settings) -> Pipeline:
    """Topics of one test."""
    return Pipeline(settings)


Commands = Callable[..., Process]


@pytest.fixture
def commands(pipeline: Pipeline) -> Iterator[Commands]:
    """Starts `headrace` commands on the test's topics, with short leases; each has said that it is ready."""
    started: list[Process] = []
    settings = pipeline.settings
    short = {
        "HEADRACE_PARTITIONS": str(settings.partitions),
        "HEADRACE_HEARTBEAT": "PT1S",
        "HEADRACE_LEASE": "PT5S",
    }

    def run(*arguments: str, **env: str) -> Process:
        process = start(*arguments, env=variables(settings, **{**short, **env}))
        started.append(process)
        assert "ready" in ready(process)
        return process

    yield run
    for process in started:
        put_away(process)
