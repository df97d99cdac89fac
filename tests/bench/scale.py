"""Runners whose agents only wait: what 2 and 4 processes do beside one.

    .venv/bin/python tests/bench/scale.py [--processes 1 2 4] [--concurrency 16] [--sleep 0.5] [--seconds 15]

Tasks lie ready; the rate is that of the ends in the log, by append time, from the moment when every process has ended
rollouts on. `of_sleep` is the rate beside that of slots which sleep all the time.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from synthetic import Sender, add_bootstrap, begin, broker, fresh_settings, task

from headrace.schemas.records import AttemptEvent
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.settings import Settings

AGENT = """import asyncio

from headrace import rollout


@rollout
async def agent(task):
    await asyncio.sleep({sleep})
    return 1.0
"""
PARTITIONS = 12
SETTLE_SECONDS = 3.0


class Ends:
    """Who ended a rollout, and when by the log."""

    def __init__(self, settings: Settings) -> None:
        self.all: list[tuple[float, str]] = []
        self._follower = TopicFollower(
            settings, "attempts", self._add, client_id="bench", partitions=range(PARTITIONS)
        ).start()

    def _add(self, record: Any, message: Any) -> None:
        if isinstance(record, AttemptEvent) and record.type == "succeeded":
            self.all.append((message.timestamp()[1] / 1000, record.worker_id or ""))

    def close(self) -> None:
        self._follower.close()


def measure(settings: Settings, agent: Path, processes: int, concurrency: int, seconds: float) -> dict[str, Any]:
    """The rate of so many processes."""
    runners = [
        begin(settings, "runner", f"{agent}:agent", "--concurrency", str(concurrency), "--worker-id", f"bench-{n}")
        for n in range(processes)
    ]
    ends = Ends(settings)
    deadline = time.monotonic() + 60
    while len({worker for _, worker in ends.all}) < processes and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(SETTLE_SECONDS)
    cpu = [sum(psutil.Process(r.pid).cpu_times()[:2]) for r in runners]
    begun = ends.all[-1][0]
    time.sleep(seconds)
    last = ends.all[-1][0]
    used = sum(sum(psutil.Process(r.pid).cpu_times()[:2]) for r in runners) - sum(cpu)
    counted = [worker for at, worker in list(ends.all) if begun < at <= last]
    ends.close()
    for runner in runners:
        runner.terminate()
    for runner in runners:
        runner.wait(60)
    return {
        "processes": processes,
        "rollouts_a_second": round(len(counted) / (last - begun), 1),
        "cpu_ms_a_rollout": round(1000 * used / max(1, len(counted)), 2),
        "workers": len(set(counted)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bootstrap(parser)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--sleep", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    single = 0.0
    with tempfile.TemporaryDirectory() as folder, broker(options.bootstrap) as (bootstrap, _):
        agent = Path(folder) / "agent.py"
        agent.write_text(AGENT.format(sleep=options.sleep))
        for processes in options.processes:
            settings = fresh_settings(bootstrap, PARTITIONS)
            ceiling = processes * options.concurrency / options.sleep
            sender = Sender(settings)
            for n in range(int(ceiling * (options.seconds + 20))):
                sender.send(task(n))
            sender.flush()
            result = measure(settings, agent, processes, options.concurrency, options.seconds)
            single = single or result["rollouts_a_second"] / processes
            result["of_n_times_one"] = round(result["rollouts_a_second"] / (processes * single), 3)
            result["of_sleep"] = round(result["rollouts_a_second"] / ceiling, 3)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
