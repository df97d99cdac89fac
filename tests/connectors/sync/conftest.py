"""Sync on real Kafka, and engines whose loads a test decides."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from headrace.connectors.sync.run import run_sync
from headrace.schemas.records import ResourcesUpdate, Weights
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, WorkerAnnouncer


class LoadingEngine:
    """An HTTP server with the two routes of an engine; refuses versions in `broken`, loads while not `held`."""

    def __init__(self, port: int = 0) -> None:
        self.version = 0
        self.asked: list[int] = []
        self.broken: set[int] = set()
        self.held = False
        self.port = port
        self.reached = asyncio.Event()
        self.news = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def weights(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"policy": "policy", "version": self.version, "weights_id": None})

    async def load(self, request: web.Request) -> web.Response:
        asked = await request.json()
        async with self.news:
            self.asked.append(asked["version"])
            self.reached.set()
            self.news.notify_all()
        while self.held:  # noqa: ASYNC110  # no news tells of it
            await asyncio.sleep(0.01)
        if asked["version"] in self.broken:
            error = {"message": "sha256 differs", "type": "weights_refused", "reason": "sha256", "code": 422}
            return web.json_response({"error": error}, status=422)
        async with self.news:
            self.version = asked["version"]
            self.news.notify_all()
        return web.json_response({"policy": "policy", "version": self.version, "weights_id": asked["weights_id"]})

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds), self.news:
            await self.news.wait_for(condition)

    async def becomes(self, version: int) -> None:
        await self.until(lambda: self.version == version)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["LoadingEngine"]:
        app = web.Application()
        app.router.add_get("/headrace/weights", self.weights)
        app.router.add_post("/headrace/load_weights", self.load)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()


class Publications:
    """Writes to the resources topic and announces engines."""

    def __init__(self, settings: Settings, producer: AckedProducer) -> None:
        self._settings, self._producer = settings, producer

    async def publish(self, version: int, policy: str = "policy") -> None:
        weights = Weights(policy=policy, version=version, weights_id=f"w{version}", uri=f"/nowhere/{version}")
        await self._producer.send(
            ResourcesUpdate(
                resources_id=uuid.uuid4().hex, name=policy, version=version, resources={policy: weights}, created_at=1
            )
        )

    async def announce(self, engine: LoadingEngine, policy: str = "policy") -> WorkerAnnouncer:
        announcer = WorkerAnnouncer(
            self._settings, self._producer, ENGINE, worker_id=uuid.uuid4().hex, endpoint=engine.url, policy=policy
        )
        await announcer.announce()
        return announcer


@pytest.fixture
async def publications(settings: Settings) -> AsyncIterator[Publications]:
    producer = AckedProducer(settings, "test", linger_ms=0)
    yield Publications(settings, producer)
    await producer.close()


@pytest.fixture
async def start_sync(settings: Settings) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """Starts sync; returns when it follows."""
    tasks: list[asyncio.Task[None]] = []

    async def start(**options: Any) -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(run_sync(settings, ready=lambda _: ready.set(), **options))
        tasks.append(task)
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def make_engine() -> Callable[..., LoadingEngine]:
    return LoadingEngine
