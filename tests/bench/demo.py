"""The demo over many seeds: seconds, rewards, cost. `python tests/bench/demo.py [--seeds 20] [--task pick-digit] ...`

Prints a Markdown table, a row a seed and the summary at the end, as docs/benchmarks.md has it. The column "bare call"
is the CPU of one call of the plain `openai` client against a stub server, measured just before the run: machines
drift, and that call, which every rollout makes, is the largest part of a rollout's cost.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import openai

STUB_ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "5"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
CALLS = 400
COMMAND = str(Path(sys.executable).parent / "headrace")


class Stub(asyncio.Protocol):
    """Answers whatever comes with one chat completion."""

    body = json.dumps(STUB_ANSWER).encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.answer)


async def bare_call_ms() -> float:
    """CPU of a call of the plain client over aiohttp, in ms; the stub's part is included."""
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    messages: Any = [{"role": "user", "content": "Please pick the digit 5."}]
    async with openai.AsyncOpenAI(base_url=url, api_key="none", http_client=openai.DefaultAioHttpClient()) as client:
        await client.chat.completions.create(model="m", messages=messages, max_tokens=4)
        started = time.process_time()
        for _ in range(CALLS):
            await client.chat.completions.create(model="m", messages=messages, max_tokens=4)
        used = time.process_time() - started
    server.close()
    return used / CALLS * 1e3


def run(seed: int, options: list[str], out: Path) -> dict[str, Any]:
    """The summary of one demo, with its exit code."""
    demo = subprocess.run(
        [COMMAND, "demo", "--seed", str(seed), "--json", "--out", str(out), *options], capture_output=True, text=True
    )
    if not (out / "summary.json").exists():
        print(demo.stderr[-2000:], file=sys.stderr)
        return {"seed": seed, "exit_code": demo.returncode}
    return {**json.loads((out / "summary.json").read_text()), "exit_code": demo.returncode}


def main() -> None:
    """Runs the seeds one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--task", default="pick-digit")
    parser.add_argument("--engine", default="builtin")
    args = parser.parse_args()
    options = ["--task", args.task, "--engine", args.engine]
    print(
        "| seed | seconds | steps | samples | reward first → last | CPU ms a rollout | bare call ms | PSS MiB | lost "
        "| trained twice |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    done: list[dict[str, Any]] = []
    for seed in range(args.first, args.first + args.seeds):
        bare = asyncio.run(bare_call_ms())
        with tempfile.TemporaryDirectory() as folder:
            s = run(seed, options, Path(folder))
        if "seconds" not in s:
            print(f"| {seed} | failed with exit code {s['exit_code']} |", flush=True)
            continue
        done.append(s)
        print(
            f"| {seed} | {s['seconds']} | {s['steps']} | {s['samples']} "
            f"| {s['reward_first']:.2f} → {s['reward_last']:.2f} | {s['cpu_ms_per_rollout']:.1f} "
            f"| {bare:.2f} | {s['pss_mib_all']} | {s['lost']} | {s['trained_twice']} |",
            flush=True,
        )
    reached = sum(s["exit_code"] == 0 for s in done)
    if not done:
        raise SystemExit("no run ended")
    seconds = [s["seconds"] for s in done]
    cpu_ms = statistics.median(s["cpu_ms_per_rollout"] for s in done)
    print(
        f"\n{reached} of {args.seeds} reached the goal. Seconds: median {statistics.median(seconds)}, "
        f"longest {max(seconds)}. CPU: median {cpu_ms:.1f} ms a rollout."
    )
    parts = sorted({name for s in done for name in s["cpu_seconds"]})
    print("\n| part | CPU ms a rollout (median) | ready after (median, s) | PSS MiB (median) |\n|---|---|---|---|")
    for part in parts:
        cpu = [1000 * s["cpu_seconds"].get(part, 0) / s["produced"] for s in done]
        ready = [s["ready_seconds"][part] for s in done if part in s["ready_seconds"]]
        pss = [s["pss_mib"][part] for s in done if part in s["pss_mib"]]
        print(
            f"| {part} | {statistics.median(cpu):.2f} | {statistics.median(ready):.1f} | {statistics.median(pss):.0f} |"
            if ready and pss
            else f"| {part} | {statistics.median(cpu):.2f} | | |"
        )


if __name__ == "__main__":
    main()
