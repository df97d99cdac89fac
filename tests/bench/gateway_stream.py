"""Streams through the gateway against the engine called directly, interleaved in one run; requests/s; memory.

    HEADRACE_BOOTSTRAP=127.0.0.1:9092 python tests/bench/gateway_stream.py [--calls 300] [--open 1000]

The engine is a stub that streams 16 tokens at once with ids and log-probabilities, as vLLM shapes them. Printed:
milliseconds to the first event and to the last (p50, p99), what the gateway adds; requests/s streamed and whole, 64 at
once, with the gateway's CPU a call; the gateway's memory with all streams open, each with a prompt of 1,000 ids and 200
tokens received.
"""

import argparse
import asyncio
import os
import resource
import statistics
import time

import aiohttp
import psutil
import uvloop
from gateway_stub import BODY, CHAT, COMMAND, IDS, cpu_ms, percentile, prepared, rollout_url, started, stub_engine

WARM_UP = 50
FILES = 8192


class Bench:
    """The client of one run."""

    def __init__(self, session: aiohttp.ClientSession, engine: str, gateway: str, process: psutil.Process) -> None:
        self.session, self.engine, self.gateway, self.process = session, engine, gateway, process

    def url(self, name: str) -> str:
        """Where to ask; each call through the gateway is one of another rollout."""
        return self.engine + CHAT if name == "direct" else rollout_url(self.gateway)

    async def stream(self, name: str) -> tuple[float, float]:
        """Milliseconds to the first and last event."""
        body = BODY | {"stream": True} | (IDS if name == "direct" else {})
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


def main() -> None:
    """Starts what is needed and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--open", type=int, default=1000)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))  # the processes started here inherit it
    settings = prepared()
    os.environ |= {"HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
    with (
        stub_engine() as stub,
        started(COMMAND, "gateway", "--engine", stub) as (process, ready),
    ):
        uvloop.run(measure(stub, ready["url"], process, given.calls, given.open))


if __name__ == "__main__":
    main()
