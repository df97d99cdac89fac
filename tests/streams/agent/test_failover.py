"""Calls of a rollout whose gateway has died: real HTTP, a gateway that answers and one that is no more."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from headrace.streams.agent import failover
from headrace.streams.agent.resources import LLM

PATH = "/rollout/r/attempt/r-1/v1"
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "7"}}],
}


@pytest.fixture
async def gateway() -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A gateway that answers: its URL, and the requests that came."""
    requests: list[web.Request] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        requests.append(request)  # type: ignore[arg-type]
        return web.Response(text=json.dumps(ANSWER), content_type="application/json")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}", requests
    await runner.cleanup()
    failover.use_gateways(None)


def call(client: Any) -> Any:
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])


@pytest.mark.parametrize("sync", [False, True])
async def test_a_call_in_flight_goes_to_another_gateway(gateway, sync: bool, unused_port: int) -> None:
    url, requests = gateway
    dead = f"http://127.0.0.1:{unused_port}"
    tries = 0

    def gateways() -> tuple[list[str], list[str]]:
        """The dead one has died after the first try was sent to it."""
        nonlocal tries
        tries += 1
        return [dead] if tries == 1 else [url], [dead, url]

    failover.use_gateways(gateways)
    llm = LLM(dead + PATH, "m")
    calling = asyncio.to_thread(call, llm.client(sync=True)) if sync else call(llm.client(sync=False))
    answer = await asyncio.wait_for(calling, 60)
    assert answer.choices[0].message.content == "7"
    (request,) = requests
    assert request.path == f"{PATH}/chat/completions"
    assert request.headers["host"] == url.removeprefix("http://")
    assert int(request.headers["x-stainless-retry-count"]) >= 1


async def test_a_first_try_goes_to_a_gateway_that_answers(gateway, unused_port: int) -> None:
    url, requests = gateway
    dead = f"http://127.0.0.1:{unused_port}"
    failover.use_gateways(lambda: ([url], [dead, url]))
    await call(LLM(dead + PATH, "m").client(sync=False))
    assert requests[0].headers["x-stainless-retry-count"] == "0"


@pytest.mark.parametrize(
    ("live", "known", "target"),
    [
        (["http://a:1"], ["http://a:1", "http://b:2"], None),
        (["http://b:2"], ["http://a:1", "http://b:2"], "b:2"),
        ([], ["http://a:1"], None),
        (["http://b:2"], ["http://b:2"], None),  # a's URL is none of ours
    ],
)
def test_only_calls_to_a_gateway_that_was_there_are_redirected(live, known, target) -> None:
    failover.use_gateways(lambda: (live, known))
    found = failover.redirected("http://a:1/rollout/r/attempt/x/v1/chat/completions")
    failover.use_gateways(None)
    assert (found.netloc if found else None) == target


@pytest.fixture
def unused_port() -> int:
    """A port on which nobody listens."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
