"""What lifecycle and assembler cost, and how long a trajectory takes, at a steady rate of synthetic rollouts.

    .venv/bin/python tests/bench/processors.py [--rate 200] [--seconds 15]

Prints one JSON object: CPU microseconds a rollout of each process (the broker too if it is its own), and the time
from the writing of a rollout's end to its trajectory in the hands of a read_committed consumer.
"""

import argparse
import json
import os
import statistics
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from synthetic import (
    Sender,
    add_bootstrap,
    broker,
    ended,
    fresh_settings,
    reward,
    rollout_id,
    span,
    start,
    started,
    task,
)

from headrace.schemas.records import Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.settings import Settings

SLOT_SECONDS = 0.005
FETCH_SECONDS = 0.05  # from the task to its start
CALL_SECONDS = 0.05
WARM_UP_SECONDS = 3.0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Writer:
    """Writes rollouts at a steady rate: task and start, then the call's span, the reward, the end."""

    def __init__(self, settings: Settings) -> None:
        self._sender = Sender(settings, linger_ms=1)
        self._number = 0
        self.ends: dict[str, float] = {}

    def run(self, rate: float, seconds: float) -> int:
        """Returns the number of rollouts."""
        begun = time.monotonic()
        starting: deque[tuple[float, int]] = deque()
        under_way: deque[tuple[float, int]] = deque()
        first = self._number
        while (now := time.monotonic()) < begun + seconds or starting or under_way:
            if now < begun + seconds:
                while self._number - first < (now - begun) * rate:
                    self._sender.send(task(self._number))
                    starting.append((now + FETCH_SECONDS, self._number))
                    self._number += 1
            while starting and starting[0][0] <= now:
                number = starting.popleft()[1]
                self._sender.send(started(number))
                under_way.append((now + CALL_SECONDS, number))
            due: list[int] = []
            while under_way and under_way[0][0] <= now:
                due.append(under_way.popleft()[1])
            if due:
                self._finish(due)
            self._sender.send()
            time.sleep(SLOT_SECONDS)
        self._sender.flush()
        return self._number - first

    def _finish(self, numbers: list[int]) -> None:
        for n in numbers:
            self._sender.send(span(n), reward(n))
        self._sender.flush()
        for n in numbers:
            self._sender.send(ended(n))
            self.ends[rollout_id(n)] = time.monotonic()


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


def measure(
    settings: Settings, names: list[str], rate: float, seconds: float, broker_pid: int | None
) -> dict[str, Any]:
    """Runs the load; what is printed."""
    processes = {name: start(settings, "processor", name) for name in names}
    reader = Reader(settings)
    reader.start()
    writer = Writer(settings)
    writer.run(50, WARM_UP_SECONDS)
    warm = len(writer.ends)
    pids = {name: p.pid for name, p in processes.items()} | ({"broker": broker_pid} if broker_pid else {})
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    count = writer.run(rate, seconds)
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
        "rate": rate,
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
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_bootstrap(parser)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--only", choices=["lifecycle", "assembler"])
    options = parser.parse_args()
    with broker(options.bootstrap) as (bootstrap, broker_pid):
        settings = fresh_settings(bootstrap, options.partitions)
        names = [options.only] if options.only else ["lifecycle", "assembler"]
        print(json.dumps(measure(settings, names, options.rate, options.seconds, broker_pid)))


if __name__ == "__main__":
    main()
