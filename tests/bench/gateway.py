"""The gateway against the engine called directly, interleaved in one run: milliseconds p50 and p99, and CPU a call.

    HEADRACE_BOOTSTRAP=127.0.0.1:9092 python tests/bench/gateway.py [--engine URL] [--calls 1000] [--litellm COMMAND]

Without --engine it starts a stub engine that answers a fixed completion of 16 tokens. The gateway is the public
command. Under load: the same calls, 64 at once. --litellm names LiteLLM's proxy, which is then measured beside it:

    uv venv .venv-litellm && uv pip install --python .venv-litellm/bin/python 'litellm[proxy]'
    ... tests/bench/gateway.py --litellm .venv-litellm/bin/litellm
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import aiohttp
import psutil
import uvloop
from gateway_stub import BODY, CHAT, COMMAND, IDS, cpu_ms, percentile, prepared, rollout_url, started, stub_engine

WARM_UP = 100
AT_ONCE = 64
START_SECONDS = 300
KEY = f"sk-{uuid.uuid4().hex}"  # LiteLLM's proxy does not start without one


def new_session() -> aiohttp.ClientSession:
    """With the key that LiteLLM's proxy asks for; the others do not look at it."""
    headers = {"authorization": f"Bearer {KEY}"}
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers)


class Way:
    """A way to the engine.

    Args:
        url: of a server; `process` is that server, None where it is not measured.
    """

    def __init__(self, name: str, url: str, process: psutil.Process | None, *, calls: int) -> None:
        self.name, self.url, self.process, self.calls = name, url, process, calls
        self.fields = BODY | {"max_tokens": 1} | (IDS if name == "direct" else {})
        self.times: list[float] = []
        self.used = 0.0

    def cpu(self) -> float:
        """Milliseconds of its process so far."""
        return cpu_ms(self.process) if self.process is not None else 0.0

    async def call(self, session: aiohttp.ClientSession) -> float:
        """Milliseconds of one call."""
        url = rollout_url(self.url) if self.name == "gateway" else self.url + CHAT
        began = time.perf_counter()
        async with session.post(url, json=self.fields) as response:
            await response.read()
            assert response.status == 200, response.status
        return 1e3 * (time.perf_counter() - began)

    async def measured(self, session: aiohttp.ClientSession) -> None:
        """One call of those at concurrency 1."""
        before = self.cpu()
        self.times.append(await self.call(session))
        self.used += self.cpu() - before

    async def rate(self) -> str:
        """Many at once, over new connections: a server may close idle ones."""
        async with new_session() as session:
            return await self._rate(session)

    async def _rate(self, session: aiohttp.ClientSession) -> str:

        async def several(count: int) -> None:
            for _ in range(count):
                await self.call(session)

        each = max(1, self.calls // AT_ONCE)
        before, began = self.cpu(), time.perf_counter()
        await asyncio.gather(*(several(each) for _ in range(AT_ONCE)))
        done, seconds = each * AT_ONCE, time.perf_counter() - began
        return f"{done / seconds:.0f} calls/s, its CPU a call {(self.cpu() - before) / done:.3f} ms"


async def measure(ways: list[Way], calls: int) -> None:
    """Prints the figures."""
    async with new_session() as session:
        for _ in range(WARM_UP):
            for way in ways:
                await way.call(session)
        for _ in range(calls):
            for way in ways:
                await way.measured(session)
        direct = statistics.median(ways[0].times)
        for way in ways:
            p50 = statistics.median(way.times)
            print(
                f"one at a time, {way.name:8}: p50 {p50:.2f} ms, p99 {percentile(way.times, 0.99):.2f} ms; "
                f"overhead p50 {p50 - direct:.2f} ms, its CPU a call {way.used / calls:.3f} ms"
            )
        for way in ways[1:]:
            print(f"{AT_ONCE} at once, {way.name}: {await way.rate()}")


@contextmanager
def litellm_proxy(command: str, engine: str) -> Generator[tuple[psutil.Process, str]]:
    """LiteLLM's proxy before the engine, with one worker and its defaults."""
    model = {"model_name": "policy", "litellm_params": {"model": "hosted_vllm/policy", "api_base": engine + "/v1"}}
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps({"model_list": [model]}))  # YAML takes JSON
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        log = (Path(folder) / "log").open("wb")
        arguments = [command, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
        # It would fetch a table of prices from the network, three times where there is none.
        local = {"LITELLM_LOCAL_MODEL_COST_MAP": "true", "LITELLM_MASTER_KEY": KEY}
        process = subprocess.Popen(arguments, stdout=log, stderr=log, env=os.environ | local)
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"LiteLLM's proxy did not start:\n{(Path(folder) / 'log').read_text()[-2000:]}")
                time.sleep(0.2)
            yield psutil.Process(process.pid), f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)
            log.close()


def main() -> None:
    """Starts what is needed and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", help="URL of an engine")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--litellm", help="the proxy's command")
    given = parser.parse_args()
    settings = prepared()
    os.environ |= {"HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
    with (
        nullcontext(given.engine) if given.engine else stub_engine() as engine,
        started(COMMAND, "gateway", "--engine", engine) as (process, ready),
        litellm_proxy(given.litellm, engine) if given.litellm else nullcontext(None) as proxy,
    ):
        ways = [
            Way("direct", engine, None, calls=0),
            Way("gateway", ready["url"], process, calls=4 * given.calls),
        ]
        if proxy is not None:
            ways.append(Way("litellm", proxy[1], proxy[0], calls=given.calls))
        uvloop.run(measure(ways, given.calls))


if __name__ == "__main__":
    main()
