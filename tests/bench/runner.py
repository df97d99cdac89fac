"""What a runner costs without an agent: tasks in to ends acknowledged, CPU a rollout, delays, and memory in hand.

    python tests/bench/runner.py --bootstrap 127.0.0.1:9092 [--tasks 20000] [--concurrency 256] [--in-hand 5000]

Starts a real `headrace runner` on an agent that returns 1.0 at once, on tasks that are in the log already; then one
whose agent waits, with 100 and with `--in-hand` rollouts at once: what the difference costs.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.schemas.records import AttemptEvent, Task
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.clients import make_consumer, make_producer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings, load_settings

AGENT = "from headrace import rollout\n\n@rollout\nasync def agent(task):\n    return 1.0\n"
WAITING = "import asyncio\n" + AGENT.replace("    return", "    await asyncio.sleep(3600)\n    return")
COMMAND = str(Path(sys.executable).parent / "headrace")
PATIENCE_SECONDS = 120.0
PARTITIONS = 4
FEW = 100


def make(bootstrap: str, count: int) -> Settings:
    """Topics of their own, with tasks in them."""
    settings = load_settings(bootstrap=bootstrap, prefix=f"bench{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    create_topics(settings)
    producer, message = make_producer(settings, "bench"), MessageMaker(settings)
    for i in range(count):
        text = json.dumps({"prompt": f"Please pick the digit {i % 10}.", "answer": str(i % 10)})
        out = message(
            Task(rollout_id=f"bench-{i:08d}", group_id=f"g{i // 16}", group_size=16, input=text, enqueued_at=wall_us())
        )
        producer.produce(out.topic, out.value, out.key)
        producer.poll(0)
    producer.flush()
    return settings


@contextmanager
def running(settings: Settings, agent: str, concurrency: int) -> Iterator["subprocess.Popen[str]"]:
    """A runner that is ready."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.py"
        file.write_text(agent)
        command = [COMMAND, "runner", f"{file}:agent", "--concurrency", str(concurrency), "--drain", "0"]
        env = {**os.environ, "HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
        env["HEADRACE_PARTITIONS"] = str(PARTITIONS)
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def watch(settings: Settings, count: int, wanted: str) -> tuple[list[float], list[int]]:
    """Append times (seconds) of `count` events of a type, and the milliseconds of each since its start."""
    consumer = make_consumer(settings, "bench-watch", group=f"watch-{uuid.uuid4().hex[:6]}")
    consumer.subscribe([settings.topic("attempts")])
    codec = Codec(settings)
    found: list[float] = []
    starts: dict[str, int] = {}
    within: list[int] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        messages: Any = [m for m in [consumer.poll(0.2)] if m] + consumer.consume(5000, 0)
        for m in messages:
            if m.error():
                continue
            event = codec.decode_as(AttemptEvent, m.value())
            at = m.timestamp()[1]
            if event.type == "started":
                starts[event.rollout_id] = at
            if event.type == wanted:
                found.append(at / 1000)
                within.append(at - starts[event.rollout_id])
    consumer.close()
    return found, within


def throughput(bootstrap: str, tasks: int, concurrency: int) -> dict[str, Any]:
    """Tasks in to ends acknowledged."""
    settings = make(bootstrap, tasks)
    began = time.monotonic()
    with running(settings, AGENT, concurrency) as process:
        ready = time.monotonic() - began
        before = cpu_seconds(process.pid)
        ends, within = watch(settings, tasks, "succeeded")
        cpu = cpu_seconds(process.pid) - before
    ends.sort()
    middle = ends[len(ends) // 10 : -len(ends) // 10 or None]
    return {
        "rollouts": len(ends),
        "ready_s": round(ready, 2),
        "rollouts_per_s": round((len(middle) - 1) / (middle[-1] - middle[0] + 1e-3)),
        "cpu_ms_per_rollout": round(1e3 * cpu / max(1, len(ends)), 3),
        "start_to_end_ms_p50": statistics.median(within),
    }


def memory(bootstrap: str, in_hand: int) -> dict[str, Any]:
    """Resident bytes a rollout in hand, as the difference between few and many."""
    sizes: dict[int, int] = {}
    for count in (FEW, in_hand):
        settings = make(bootstrap, count)
        with running(settings, WAITING, count) as process:
            watch(settings, count, "started")
            sizes[count] = rss(process.pid)
    return {"in_hand": in_hand, "bytes_in_hand": round((sizes[in_hand] - sizes[FEW]) / (in_hand - FEW))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--in-hand", type=int, default=5000)
    args = parser.parse_args()
    print(json.dumps(throughput(args.bootstrap, args.tasks, args.concurrency) | memory(args.bootstrap, args.in_hand)))


if __name__ == "__main__":
    main()
