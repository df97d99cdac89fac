"""What the builtin engine costs: requests a second, CPU a request, latency, at the demo's load or another.

Flags that are not known here go to the engine.
Example: python tests/bench/engine.py MODEL --concurrency 160 --requests 4000 --wait-ms 10
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

from headrace.demo.tasks import TASKS


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(endpoint: str, task: str, requests: int, concurrency: int, fixed: dict[str, Any]) -> list[float]:
    """Latencies in seconds of a closed loop of `concurrency` clients."""
    samples = TASKS[task].samples(0)
    left, latencies = requests, list[float]()

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            body = {"messages": [{"role": "user", "content": next(samples)["prompt"]}], "seed": left, **fixed}
            began = time.perf_counter()
            async with session.post(f"{endpoint}/v1/chat/completions", json=body) as answer:
                await answer.read()
                assert answer.status == 200, await answer.text()
            latencies.append(time.perf_counter() - began)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(client(session) for _ in range(concurrency)))
    return latencies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--task", default="pick-digit")
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 160])
    parser.add_argument("--max-tokens", type=int, default=4)
    arguments, flags = parser.parse_known_args()
    command = [
        str(Path(sys.prefix) / "bin" / "headrace"),
        "engine",
        "builtin",
        arguments.model,
        "--no-announce",
        *flags,
    ]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        endpoint = json.loads(engine.stdout.readline())["endpoint"]
        print(json.dumps({"ready_seconds": round(time.perf_counter() - began, 2), "cpu": cpu_seconds(engine.pid)}))
        fixed = {"max_tokens": arguments.max_tokens, "logprobs": True, "return_token_ids": True, "temperature": 1.0}
        for concurrency in arguments.concurrency:
            count = max(200, arguments.requests // (4 if concurrency == 1 else 1))
            cpu, began = cpu_seconds(engine.pid), time.perf_counter()
            latencies = sorted(asyncio.run(load(endpoint, arguments.task, count, concurrency, fixed)))
            wall, cpu = time.perf_counter() - began, cpu_seconds(engine.pid) - cpu
            facts = {
                "concurrency": concurrency,
                "requests": count,
                "per_second": round(count / wall),
                "cpu_ms_per_request": round(1e3 * cpu / count, 3),
                "p50_ms": round(1e3 * latencies[count // 2], 2),
                "p99_ms": round(1e3 * latencies[int(count * 0.99)], 2),
            }
            print(json.dumps(facts), flush=True)
        engine.terminate()


if __name__ == "__main__":
    main()
