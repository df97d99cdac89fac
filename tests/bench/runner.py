"""What a runner costs without an agent: tasks in to ends acknowledged, CPU a rollout, and delays inside one.

    python tests/bench/runner.py --bootstrap 127.0.0.1:9092 [--tasks 20000] [--concurrency 256]

Starts a real `headrace runner` on an agent that returns 1.0 at once, on tasks that are in the log already.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
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
COMMAND = str(Path(sys.executable).parent / "headrace")


def produce(settings: Settings, count: int) -> None:
    producer, message = make_producer(settings, "bench"), MessageMaker(settings)
    for i in range(count):
        text = json.dumps({"prompt": f"Please pick the digit {i % 10}.", "answer": str(i % 10)})
        out = message(
            Task(rollout_id=f"bench-{i:08d}", group_id=f"g{i // 16}", group_size=16, input=text, enqueued_at=wall_us())
        )
        producer.produce(out.topic, out.value, out.key)
        producer.poll(0)
    producer.flush()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(settings: Settings, count: int, deadline: float) -> tuple[list[float], dict[str, list[int]]]:
    """Append times (seconds) of the ends, and of all events by type of each rollout."""
    consumer = make_consumer(settings, "bench-watch", group=f"watch-{uuid.uuid4().hex[:6]}")
    consumer.subscribe([settings.topic("attempts")])
    codec = Codec(settings)
    ends: list[float] = []
    starts: dict[str, int] = {}
    within: list[int] = []
    while len(ends) < count and time.monotonic() < deadline:
        messages: Any = [m for m in [consumer.poll(0.2)] if m] + consumer.consume(5000, 0)
        for m in messages:
            if m.error():
                continue
            event = codec.decode_as(AttemptEvent, m.value())
            at = m.timestamp()[1]
            if event.type == "started":
                starts[event.rollout_id] = at
            elif event.type == "succeeded":
                ends.append(at / 1000)
                within.append(at - starts[event.rollout_id])
    consumer.close()
    return ends, {"start_to_end_ms": within}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=256)
    args = parser.parse_args()
    settings = load_settings(bootstrap=args.bootstrap, prefix=f"bench{uuid.uuid4().hex[:8]}", partitions=4)
    create_topics(settings)
    produce(settings, args.tasks)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.py"
        file.write_text(AGENT)
        command = [COMMAND, "runner", f"{file}:agent", "--concurrency", str(args.concurrency)]
        env = {**os.environ, "HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
        env["HEADRACE_PARTITIONS"] = "4"
        began = time.monotonic()
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        ready = time.monotonic() - began
        before = cpu_seconds(process.pid)
        ends, more = watch(settings, args.tasks, time.monotonic() + 120)
        cpu = cpu_seconds(process.pid) - before
        rss = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        process.terminate()
        process.wait(20)
    ends.sort()
    middle = ends[len(ends) // 10 : -len(ends) // 10 or None]
    print(
        json.dumps(
            {
                "rollouts": len(ends),
                "ready_s": round(ready, 2),
                "rollouts_per_s": round((len(middle) - 1) / (middle[-1] - middle[0] + 1e-3)),
                "cpu_ms_per_rollout": round(1e3 * cpu / max(1, len(ends)), 3),
                "start_to_end_ms_p50": statistics.median(more["start_to_end_ms"]),
                "rss_mb": round(rss / 1e6),
                "exit": process.returncode,
            }
        )
    )


if __name__ == "__main__":
    main()
