"""What lifecycle and assembler cost, and how long a trajectory takes, at a steady rate of synthetic rollouts.

    .venv/bin/python tests/bench/processors.py --bootstrap 127.0.0.1:9092 --rate 400 --seconds 15

Prints one JSON object: CPU microseconds a rollout of each process (`broker` too if --broker-pid is given), and the time
from the writing of a rollout's end to its trajectory in the hands of a read_committed consumer.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    AttemptEvent,
    Choice,
    ModelCall,
    Record,
    Reward,
    Span,
    Task,
    TaskFacts,
    Trajectory,
    VersionRange,
)
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.clients import make_consumer, make_producer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings, load_settings

COMMAND = str(Path(sys.executable).parent / "headrace")
SLOT_SECONDS = 0.005
FETCH_SECONDS = 0.05  # from the task to its start
CALL_SECONDS = 0.05
WARM_UP_SECONDS = 3.0
GROUP_SIZE = 16
INPUT = '{"digit": 3}'
ATTRIBUTES = json.dumps({f"gen_ai.attribute.{i}": "x" * 30 for i in range(12)})


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(settings: Settings, name: str) -> subprocess.Popen[str]:
    """A processor of its own process, once it is ready."""
    process = subprocess.Popen(
        [COMMAND, "processor", name, "--bootstrap", settings.bootstrap, "--prefix", settings.prefix],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline(), f"{name} did not start"
    return process


class Writer:
    """Writes rollouts at a steady rate: task and start, then the call's span, the reward, the end."""

    def __init__(self, settings: Settings) -> None:
        self._message = MessageMaker(settings)
        self._producer = make_producer(settings, "bench", linger_ms=1)
        self._number = 0
        self.ends: dict[str, float] = {}

    def _send(self, record: Record) -> None:
        message = self._message(record)
        headers: Any = message.headers or None
        self._producer.produce(message.topic, message.value, message.key, headers=headers)

    def run(self, rate: float, seconds: float) -> int:
        """Returns the number of rollouts."""
        begun = time.monotonic()
        starting: deque[tuple[float, int]] = deque()
        under_way: deque[tuple[float, int]] = deque()
        first = self._number
        while (now := time.monotonic()) < begun + seconds or starting or under_way:
            if now < begun + seconds:
                while self._number - first < (now - begun) * rate:
                    self._begin(self._number)
                    starting.append((now + FETCH_SECONDS, self._number))
                    self._number += 1
            while starting and starting[0][0] <= now:
                number = starting.popleft()[1]
                self._start(number)
                under_way.append((now + CALL_SECONDS, number))
            while under_way and under_way[0][0] <= now:
                self._finish(under_way.popleft()[1])
            self._producer.poll(0)
            time.sleep(SLOT_SECONDS)
        self._producer.flush()
        return self._number - first

    def _begin(self, n: int) -> None:
        self._send(
            Task(
                rollout_id=f"ro-{n:08d}",
                group_id=f"g{n // GROUP_SIZE}",
                group_size=GROUP_SIZE,
                sample_index=n % GROUP_SIZE,
                mode="train",
                input=INPUT,
                enqueued_at=wall_us(),
            )
        )

    def _start(self, n: int) -> None:
        facts = TaskFacts(
            group_id=f"g{n // GROUP_SIZE}",
            group_size=GROUP_SIZE,
            sample_index=n % GROUP_SIZE,
            mode="train",
            input=INPUT,
        )
        self._send(
            AttemptEvent(rollout_id=f"ro-{n:08d}", attempt_id=f"at-{n:08d}", type="started", task=facts, at=wall_us())
        )

    def _finish(self, n: int) -> None:
        rollout_id, attempt_id, now = f"ro-{n:08d}", f"at-{n:08d}", wall_us()
        call = ModelCall(
            model="policy",
            policy="policy",
            policy_version=VersionRange(min=3, max=3),
            response_id=f"chatcmpl-{n}",
            prompt_token_ids=pack_int32(list(range(60))),
            choices=[
                Choice(
                    index=0,
                    response_token_ids=pack_int32([5, 6, 7, 2]),
                    logprobs=pack_float32([-0.1, -0.2, -0.3, -0.4]),
                    finish_reason="stop",
                    text="7",
                )
            ],
            request=json.dumps({"messages": [{"role": "user", "content": "pick a digit"}]}),
        )
        self._send(
            Span(
                rollout_id=rollout_id,
                attempt_id=attempt_id,
                source="gateway",
                trace_id=f"{n:032x}",
                span_id=f"{n:016x}",
                name="chat policy",
                kind="CLIENT",
                start=now * 1000 - 5_000_000,
                end=now * 1000,
                attributes=ATTRIBUTES,
                llm=call,
            )
        )
        self._send(
            Reward(
                rollout_id=rollout_id,
                attempt_id=attempt_id,
                reward_id=f"rw-{n}",
                primary=True,
                value=1.0,
                source="agent",
                at=now,
            )
        )
        self._producer.flush()
        self._send(
            AttemptEvent(
                rollout_id=rollout_id,
                attempt_id=attempt_id,
                type="succeeded",
                final=True,
                complete=True,
                at=wall_us(),
            )
        )
        self.ends[rollout_id] = time.monotonic()


class Reader(threading.Thread):
    """Notes when each trajectory arrives."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self._topic = settings.topic("triplets")
        self._codec = Codec(settings)
        self._consumer: Consumer = make_consumer(settings, "bench", group="bench")
        self.arrived: dict[str, float] = {}
        self.repeated = 0
        self.empty = 0
        self.stopping = False

    def run(self) -> None:
        self._consumer.subscribe([self._topic])
        while not self.stopping:
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            now = time.monotonic()
            trajectory = self._codec.decode_as(Trajectory, message.value())
            self.repeated += trajectory.rollout_id in self.arrived
            self.empty += not trajectory.triplets
            self.arrived[trajectory.rollout_id] = now
        self._consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--rate", type=float, default=400.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--broker-pid", type=int)
    parser.add_argument("--only", choices=["lifecycle", "assembler"])
    options = parser.parse_args()
    settings = load_settings(
        bootstrap=options.bootstrap, prefix=f"bench{uuid.uuid4().hex[:6]}", partitions=options.partitions
    )
    create_topics(settings)
    names = [options.only] if options.only else ["lifecycle", "assembler"]
    processes = {name: start(settings, name) for name in names}
    reader = Reader(settings)
    reader.start()
    writer = Writer(settings)
    writer.run(50, WARM_UP_SECONDS)
    warm = len(writer.ends)
    pids = {name: p.pid for name, p in processes.items()} | (
        {"broker": options.broker_pid} if options.broker_pid else {}
    )
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    count = writer.run(options.rate, options.seconds)
    deadline = time.monotonic() + 10
    while "assembler" in processes and len(reader.arrived) < len(writer.ends) and time.monotonic() < deadline:
        time.sleep(0.05)
    used = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    reader.stopping = True
    reader.join()
    for process in processes.values():
        process.terminate()
    codes = {name: process.wait(20) for name, process in processes.items()}
    measured = list(writer.ends)[warm:]
    waits = sorted(1e3 * (reader.arrived[r] - writer.ends[r]) for r in measured if r in reader.arrived)
    result: dict[str, Any] = {
        "rollouts": count,
        "rate": options.rate,
        "cpu_us_a_rollout": {name: round(1e6 * seconds / count) for name, seconds in used.items()},
        "exit_codes": codes,
    }
    if "assembler" in processes:
        result |= {
            "trajectories": len(reader.arrived),
            "written": len(writer.ends),
            "repeated": reader.repeated,
            "without_triplets": reader.empty,
        }
    if waits:
        result["end_to_trajectory_ms"] = {
            "p50": round(statistics.median(waits), 1),
            "p99": round(waits[int(0.99 * (len(waits) - 1))], 1),
            "max": round(waits[-1], 1),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
