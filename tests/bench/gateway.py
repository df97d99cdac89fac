"""The gateway against the engine called directly, interleaved in one run: milliseconds p50 and p99, and CPU a call.

    HEADRACE_BOOTSTRAP=127.0.0.1:9092 python tests/bench/gateway.py [--engine URL] [--calls 1000]

Without --engine it starts a stub engine that answers a fixed completion of 16 tokens. The gateway is the public
command. Under load: the same calls, 64 at once.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import uvloop

from headrace.streams.kafka.admin import create_topics
from headrace.streams.settings import Settings, load_settings

COMMAND = str(Path(sys.executable).parent / "headrace")
BODY: dict[str, Any] = {
    "model": "policy",
    "messages": [{"role": "user", "content": "Please pick the digit 7."}],
    "max_tokens": 1,
    "temperature": 1.0,
}
WARM_UP = 100


def serve_stub() -> None:
    """A server that answers the same completion at once, in vLLM's shape."""
    from aiohttp import web

    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "a" * 16},
        "logprobs": {"content": [entry] * 16},
        "finish_reason": "stop",
        "token_ids": list(range(16)),
    }
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "policy",
        "choices": [choice],
        "usage": {"prompt_tokens": 30, "completion_tokens": 16, "total_tokens": 46},
        "policy_version": {"min": 1, "max": 1},
        "prompt_token_ids": list(range(30)),
    }
    body = json.dumps(answer).encode()

    async def handle(request: web.BaseRequest) -> web.Response:
        await request.read()
        if request.path != "/v1/chat/completions":
            return web.Response(body=json.dumps({"data": [{"id": "policy"}], "policy": "policy"}).encode())
        return web.Response(body=body, content_type="application/json")

    async def main() -> None:
        runner = web.ServerRunner(web.Server(handle, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        print(json.dumps({"url": f"http://127.0.0.1:{port}"}), flush=True)
        await asyncio.Event().wait()

    uvloop.run(main())


@contextmanager
def started(*command: str) -> Iterator[tuple[psutil.Process, dict[str, Any]]]:
    """A process and its ready line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield psutil.Process(process.pid), json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(20)


def cpu_ms(process: psutil.Process) -> float:
    """User and system time so far."""
    times = process.cpu_times()
    return 1e3 * (times.user + times.system)


async def call(session: aiohttp.ClientSession, url: str, fields: dict[str, Any]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    async with session.post(url, json=fields) as response:
        await response.read()
        assert response.status == 200, response.status
    return 1e3 * (time.perf_counter() - began)


def percentile(values: list[float], share: float) -> float:
    """Of sorted values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def measure(engine: str, gateway: str, process: psutil.Process, calls: int) -> None:
    """Prints the figures."""
    direct = engine + "/v1/chat/completions"
    asked = BODY | {"logprobs": True, "return_token_ids": True}

    def through() -> str:
        rollout = uuid.uuid4().hex
        return f"{gateway}/rollout/{rollout}/attempt/{rollout}-1/v1/chat/completions"

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for _ in range(WARM_UP):
            await call(session, through(), BODY)
            await call(session, direct, asked)
        times: dict[str, list[float]] = {"direct": [], "gateway": []}
        used = 0.0
        for _ in range(calls):
            times["direct"].append(await call(session, direct, asked))
            before = cpu_ms(process)
            times["gateway"].append(await call(session, through(), BODY))
            used += cpu_ms(process) - before
        figures = {name: (statistics.median(v), percentile(v, 0.99)) for name, v in times.items()}
        for name, (p50, p99) in figures.items():
            print(f"one at a time, {name:8}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        print(f"overhead p50: {figures['gateway'][0] - figures['direct'][0]:.2f} ms")
        print(f"gateway CPU a call, one at a time: {used / calls:.3f} ms")

        async def stream(n: int) -> None:
            for _ in range(n):
                await call(session, through(), BODY)

        before, began = cpu_ms(process), time.perf_counter()
        each = max(1, calls * 4 // 64)
        await asyncio.gather(*(stream(each) for _ in range(64)))
        done, seconds = each * 64, time.perf_counter() - began
        print(
            f"64 at once: {done / seconds:.0f} calls/s, gateway CPU a call {(cpu_ms(process) - before) / done:.3f} ms"
        )


def prepared() -> Settings:
    """Topics of their own."""
    settings = load_settings(prefix=f"bench{uuid.uuid4().hex[:6]}")
    create_topics(settings)
    return settings


def main() -> None:
    """Starts what is needed and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", help="URL of an engine")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--stub", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stub:
        serve_stub()
        return
    settings = prepared()
    os.environ |= {"HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
    with started(sys.executable, __file__, "--stub") as (_, stub):
        engine = given.engine or stub["url"]
        with started(COMMAND, "gateway", "--engine", engine) as (process, ready):
            uvloop.run(measure(engine, ready["url"], process, given.calls))


if __name__ == "__main__":
    main()
