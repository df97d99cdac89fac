"""A gateway on real Kafka, and an engine whose answers a test decides."""

import asyncio
import contextlib
import json
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from headrace.connectors.gateway.run import run_gateway
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.schemas.records import Span
from headrace.streams.codec import Codec
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.reading import read_to_end
from headrace.streams.settings import Settings, load_settings, load_settings_as
from headrace.streams.workers import ENGINE, WorkerAnnouncer
from tests.waiting import PATIENCE_SECONDS

PROMPT_IDS = [1, 5, 9]
RESPONSE_IDS = [7, 8]
LOGPROBS = [-0.25, -1.5]
MESSAGES = [{"role": "user", "content": "Please pick the digit 7."}]
Handler = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]
Streamer = Callable[["EventWriter", dict[str, Any]], Awaitable[None]]


def completion(request: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """An answer as vLLM shapes it."""
    content = [{"token": "x", "logprob": p, "bytes": [120], "top_logprobs": []} for p in LOGPROBS]
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": f"answer {i}"},
            "logprobs": {"content": content} if request.get("logprobs") else None,
            "finish_reason": "stop",
            "token_ids": RESPONSE_IDS if request.get("return_token_ids") else None,
        }
        for i in range(request.get("n") or 1)
    ]
    answer: dict[str, Any] = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": choices,
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        "prompt_token_ids": PROMPT_IDS if request.get("return_token_ids") else None,
    }
    return answer | changes


class EventWriter:
    """Writes a stream's events as vLLM shapes them."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    async def raw(self, data: str) -> None:
        await self.response.write(data.encode())

    async def event(self, value: dict[str, Any]) -> None:
        await self.raw(f"data: {json.dumps(value)}\n\n")

    async def chunk(self, content: str, ids: list[int], finish_reason: str | None = None, **more: Any) -> None:
        """One chunk of a chat completion; the first word of it brings the prompt's ids."""
        entries = [{"token": "x", "logprob": -0.5 * i, "bytes": [120], "top_logprobs": []} for i in ids]
        choice = {"index": 0, "delta": {"content": content}, "logprobs": {"content": entries}, "token_ids": ids}
        choice["finish_reason"] = finish_reason
        value = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        await self.event(value | more)

    async def done(self) -> None:
        await self.raw("data: [DONE]\n\n")


@dataclass
class StubEngine:
    """An HTTP server in the place of an engine; `handler` answers, or `streamer` where a stream is asked for.

    It has a `/tokenize` where `tokenizer` answers there.

    Attributes:
        hung_up: streams whose client left before their end.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    handler: Handler | None = None
    tokenizer: Handler | None = None
    streamer: Streamer | None = None
    hung_up: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        fields = await request.json()
        self.requests.append(fields)
        if fields.get("stream") and self.streamer is not None:
            return await self._stream(request, fields, self.streamer)
        if self.handler is not None:
            return await self.handler(fields)
        return web.json_response(completion(fields))

    async def _stream(self, request: web.Request, fields: dict[str, Any], streamer: Streamer) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            await streamer(EventWriter(response), fields)
        except ConnectionError:
            self.hung_up += 1
        return response

    async def tokenize(self, request: web.Request) -> web.StreamResponse:
        if self.tokenizer is None:
            raise web.HTTPNotFound
        return await self.tokenizer(await request.json())

    async def models(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.json_response({"object": "list", "data": [{"id": "served", "object": "model"}]})


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextlib.asynccontextmanager
async def serve_stub(port: int = 0) -> AsyncIterator[StubEngine]:
    stub = StubEngine("")
    app = web.Application()
    app.router.add_post("/v1/chat/completions", stub.answer)
    app.router.add_post("/v1/completions", stub.answer)
    app.router.add_post("/tokenize", stub.tokenize)
    app.router.add_get("/v1/models", stub.models)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    stub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield stub
    finally:
        await runner.cleanup()


@pytest.fixture
def make_completion() -> Callable[..., dict[str, Any]]:
    return completion


@pytest.fixture
async def stub() -> AsyncIterator[StubEngine]:
    async with serve_stub() as engine:
        yield engine


@dataclass
class GatewayClient:
    """A running gateway and what it has written."""

    url: str
    settings: Settings
    session: aiohttp.ClientSession
    producer: AckedProducer
    starts: dict[tuple[str, int], int]
    announced: list[WorkerAnnouncer] = field(default_factory=list)

    def rollout_url(self, rollout_id: str = "r1", attempt_id: str = "r1-1") -> str:
        return f"{self.url}/rollout/{rollout_id}/attempt/{attempt_id}/v1/chat/completions"

    async def chat(
        self, path: str | None = None, headers: dict[str, str] | None = None, **fields: Any
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        url = self.rollout_url() if path is None else self.url + path
        body = {"model": "policy", "messages": MESSAGES} | fields
        async with self.session.post(url, json=body, headers=headers) as response:
            return response.status, await response.json(), dict(response.headers)

    def streaming(self, headers: dict[str, str] | None = None, **fields: Any) -> Any:
        """A streamed call; use it as a context manager."""
        body = {"model": "policy", "messages": MESSAGES, "stream": True} | fields
        return self.session.post(self.rollout_url(), json=body, headers=headers)

    async def wait_for_spans(self, count: int) -> list[Span]:
        """Those written, once there are so many."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found := await self.spans()) < count:
            assert time.monotonic() < deadline, f"{len(found)} spans, not {count}"
            await asyncio.sleep(0.05)
        return found

    async def spans(self) -> list[Span]:
        """Those written since the gateway was started."""

        def read() -> list[Span]:
            codec = Codec(self.settings)
            messages = read_to_end(self.settings, self.starts, client_id="test")
            return sorted((codec.decode_as(Span, m.value()) for m in messages), key=lambda span: span.start)

        return await asyncio.to_thread(read)

    async def span(self) -> Span:
        (span,) = await self.spans()
        return span

    async def announce(self, endpoint: str, **more: Any) -> WorkerAnnouncer:
        """An engine announces itself."""
        loaded = more.pop("loaded_version", 0)
        worker = more.pop("worker_id", f"engine-{uuid.uuid4().hex[:6]}")
        policy = more.pop("policy", "policy")
        announcer = WorkerAnnouncer(
            self.settings, self.producer, more.pop("kind", ENGINE), worker_id=worker, endpoint=endpoint, policy=policy
        )
        await announcer.announce(loaded_version=loaded, **more)
        self.announced.append(announcer)
        return announcer

    async def close(self) -> None:
        for announcer in self.announced:
            await announcer.stop()
        await self.producer.close()


@pytest.fixture(scope="session")
def shared(kafka: Any) -> Settings:
    """Topics for all gateways of the session that need none of their own."""
    settings = load_settings(bootstrap=kafka.bootstrap, prefix=f"gateway{uuid.uuid4().hex[:6]}", partitions=3)
    create_topics(settings)
    return settings


@pytest.fixture
async def start_gateway(
    shared: Settings, make_settings: Callable[..., Settings]
) -> AsyncIterator[Callable[..., Awaitable[GatewayClient]]]:
    """Starts a gateway with settings changed; `engine_urls`, `policy` go to it."""
    stack = contextlib.AsyncExitStack()

    async def start(engine_urls: tuple[str, ...] = (), policy: str | None = None, **changes: Any) -> GatewayClient:
        limit = changes.get("max_message_bytes")
        plain = await asyncio.to_thread(make_settings, max_message_bytes=limit) if limit else shared
        settings = load_settings_as(GatewaySettings, **{"gateway_engine_wait": 5, **plain.model_dump(), **changes})
        partitions = [(settings.topic("spans"), p) for p in range(settings.partitions)]
        starts = await asyncio.to_thread(end_offsets, make_admin(settings), partitions)
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(
            run_gateway(settings, policy=policy, engine_urls=engine_urls, ready=lambda url, _: ready.set_result(url))
        )
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        stack.push_async_callback(stop)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        client = GatewayClient(ready.result(), settings, session, AckedProducer(settings, "test", linger_ms=0), starts)
        stack.push_async_callback(client.close)
        return client

    yield start
    await stack.aclose()


@pytest.fixture
async def gateway(start_gateway: Callable[..., Awaitable[GatewayClient]], stub: StubEngine) -> GatewayClient:
    """A gateway, and the stub announced as an engine."""
    client = await start_gateway()
    await client.announce(stub.url)
    return client
