"""Streams through the gateway against the engine called directly, interleaved in one run; requests/s; memory.

    HEADRACE_BOOTSTRAP=127.0.0.1:9092 python tests/bench/gateway_stream.py [--calls 300] [--open 1000]

The engine is a stub that streams 16 tokens at once with ids and log-probabilities, as vLLM shapes them. Printed:
milliseconds to the first event and to the last (p50, p99), what the gateway adds; requests/s streamed and whole, 64 at
once, with the gateway's CPU a call; the gateway's memory with all streams open, each with a prompt of 1,000 ids and 200
tokens received.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import uvloop

from headrace.streams.kafka.admin import create_topics
from headrace.streams.settings import Settings, load_settings

COMMAND = str(Path(sys.executable).parent / "headrace")
MESSAGES = [{"role": "user", "content": "Please pick the digit 7."}]
BODY: dict[str, Any] = {"model": "policy", "messages": MESSAGES, "temperature": 1.0, "stub_tokens": 16}
ENTRY = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
WARM_UP = 50
FILES = 8192


def chunk(ids: list[int], **more: Any) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": {"content": "a" * len(ids)}, "finish_reason": None, "token_ids": ids}
    choice |= {"logprobs": {"content": [ENTRY] * len(ids)}} | more.pop("choice", {})
    value = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "policy", "choices": [choice]}
    return b"data: " + json.dumps(value | more).encode() + b"\n\n"


def whole(count: int) -> bytes:
    """An answer that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "a" * count}, "finish_reason": "stop"}
    choice |= {"logprobs": {"content": [ENTRY] * count}, "token_ids": list(range(count))}
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "policy", "choices": [choice]}
    usage = {"prompt_tokens": 30, "completion_tokens": count, "total_tokens": 30 + count}
    return json.dumps(answer | {"usage": usage, "prompt_token_ids": list(range(30))}).encode()


def serve_stub() -> None:
    """Streams `stub_tokens` tokens, `stub_step` an event, after `stub_prompt` ids; holds the last `stub_hold` s."""
    from aiohttp import web

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if request.path != "/v1/chat/completions":
            return web.Response(body=json.dumps({"data": [{"id": "policy"}], "policy": "policy"}).encode())
        fields = json.loads(body)
        count = fields["stub_tokens"]
        if not fields.get("stream"):
            return web.Response(body=whole(count), content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(chunk([0], prompt_token_ids=list(range(fields.get("stub_prompt", 30)))))
        step = fields.get("stub_step", 1)
        for i in range(1, count - 1, step):
            await response.write(chunk(list(range(i, i + step))))
        await asyncio.sleep(fields.get("stub_hold", 0))
        await response.write(chunk([count], choice={"finish_reason": "stop"}))
        await response.write_eof(b"data: [DONE]\n\n")
        return response

    async def main() -> None:
        runner = web.ServerRunner(web.Server(handle, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
        await site.start()
        print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
        await asyncio.Event().wait()

    uvloop.run(main())


@contextmanager
def started(*command: str) -> Generator[tuple[psutil.Process, dict[str, Any]]]:
    """A process and its ready line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield psutil.Process(process.pid), json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


def cpu_ms(process: psutil.Process) -> float:
    """User and system time so far."""
    times = process.cpu_times()
    return 1e3 * (times.user + times.system)


def percentile(values: list[float], share: float) -> float:
    """Of values in any order."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class Bench:
    """The client of one run."""

    def __init__(self, session: aiohttp.ClientSession, engine: str, gateway: str, process: psutil.Process) -> None:
        self.session, self.engine, self.gateway, self.process = session, engine, gateway, process

    def url(self, name: str) -> str:
        """Where to ask; each call through the gateway is one of another rollout."""
        if name == "direct":
            return self.engine + "/v1/chat/completions"
        rollout = uuid.uuid4().hex
        return f"{self.gateway}/rollout/{rollout}/attempt/{rollout}-1/v1/chat/completions"

    async def stream(self, name: str) -> tuple[float, float]:
        """Milliseconds to the first and last event."""
        body = BODY | {"stream": True} | ({"logprobs": True, "return_token_ids": True} if name == "direct" else {})
        began = time.perf_counter()
        async with self.session.post(self.url(name), json=body) as response:
            assert response.status == 200, response.status
            await response.content.readuntil(b"\n\n")
            first = time.perf_counter()
            rest = await response.content.read()
            assert rest.endswith(b"data: [DONE]\n\n"), rest[-200:]
        return 1e3 * (first - began), 1e3 * (time.perf_counter() - began)

    async def first_token(self, calls: int) -> None:
        """One at a time, the two in turns."""
        times: dict[str, list[tuple[float, float]]] = {"direct": [], "gateway": []}
        for i in range(calls + WARM_UP):
            for name, found in times.items():
                took = await self.stream(name)
                if i >= WARM_UP:
                    found.append(took)
        medians: dict[str, list[float]] = {}
        for name, found in times.items():
            columns = [list(column) for column in zip(*found, strict=True)]
            medians[name] = [statistics.median(column) for column in columns]
            tails = [percentile(column, 0.99) for column in columns]
            print(
                f"{name:8}: first event p50 {medians[name][0]:.2f} ms, p99 {tails[0]:.2f} ms; "
                f"last p50 {medians[name][1]:.2f} ms, p99 {tails[1]:.2f} ms"
            )
        added = [through - straight for through, straight in zip(medians["gateway"], medians["direct"], strict=True)]
        print(f"the gateway adds to the first event {added[0]:.2f} ms, to the last {added[1]:.2f} ms (p50)")

    async def whole(self) -> None:
        """One call that is not streamed."""
        async with self.session.post(self.url("gateway"), json=BODY) as response:
            await response.read()
            assert response.status == 200, response.status

    async def rate(self, calls: int) -> None:
        """64 at once."""

        async def several(streamed: bool, count: int) -> None:
            for _ in range(count):
                await (self.stream("gateway") if streamed else self.whole())

        each = max(1, calls * 8 // 64)
        for streamed in (False, True):
            before, began = cpu_ms(self.process), time.perf_counter()
            await asyncio.gather(*(several(streamed, each) for _ in range(64)))
            done, seconds = each * 64, time.perf_counter() - began
            cpu = (cpu_ms(self.process) - before) / done
            print(
                f"64 at once, {'streamed' if streamed else 'whole':8}: {done / seconds:.0f} calls/s, "
                f"gateway CPU a call {cpu:.3f} ms ({1e3 / cpu:.0f} calls/s of one core)"
            )

    async def memory(self, count: int) -> None:
        """All streams opened at once, then all left by their clients."""
        body = BODY | {"stream": True, "stub_hold": 600}
        body |= {"stub_tokens": 202, "stub_step": 20, "stub_prompt": 1000}
        left = asyncio.Event()
        opened, all_open = 0, asyncio.Event()

        async def hold() -> None:
            nonlocal opened
            response = await self.session.post(self.url("gateway"), json=body)
            assert response.status == 200, response.status
            for _ in range(11):  # the first token, then 200 in steps of 20
                await response.content.readuntil(b"\n\n")
            opened += 1
            if opened == count:
                all_open.set()
            await left.wait()
            response.close()

        before = self.process.memory_info().rss / 2**20
        clients = [asyncio.create_task(hold()) for _ in range(count)]
        async with asyncio.timeout(120):
            await all_open.wait()
        during = self.process.memory_info().rss / 2**20
        files = self.process.num_fds()
        left.set()
        await asyncio.gather(*clients)
        print(f"{count} streams open: {during:.0f} MiB (before: {before:.0f} MiB), {files} files open")


async def measure(engine: str, gateway: str, process: psutil.Process, calls: int, count: int) -> None:
    """Prints the figures."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        bench = Bench(session, engine, gateway, process)
        await bench.first_token(calls)
        await bench.rate(calls)
        await bench.memory(count)


def prepared() -> Settings:
    """Topics of their own."""
    settings = load_settings(prefix=f"bench{uuid.uuid4().hex[:6]}")
    create_topics(settings)
    return settings


def main() -> None:
    """Starts what is needed and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--open", type=int, default=1000)
    parser.add_argument("--stub", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))  # the processes started here inherit it
    if given.stub:
        serve_stub()
        return
    settings = prepared()
    os.environ |= {"HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
    with (
        started(sys.executable, __file__, "--stub") as (_, stub),
        started(COMMAND, "gateway", "--engine", stub["url"]) as (process, ready),
    ):
        uvloop.run(measure(stub["url"], ready["url"], process, given.calls, given.open))


if __name__ == "__main__":
    main()
