"""How long the demo's rollouts wait for their trajectories, measured from outside while it trains.

    .venv/bin/python tests/bench/demo_latency.py [--seed 1]

Runs the demo and follows its topics: from the append time of a rollout's final end (the broker's clock is this
machine's) to the moment at which a read_committed consumer has the trajectory in hand. The first 1,000 rollouts are
left out: Java and the processes warm up on them. Prints one JSON object.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from headrace.demo.display import Display
from headrace.demo.plan import Plan, task_named
from headrace.demo.run import Demo
from headrace.local.ports import free_port
from headrace.schemas.records import AttemptEvent, Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.clients import make_consumer
from headrace.streams.settings import Settings, load_settings

WARM_UP = 1_000
PAUSE_MS = 2


class Follower(threading.Thread):
    """Notes when each rollout's end was appended, and when its first trajectory could be read."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self.ended: dict[str, float] = {}
        self.arrived: dict[str, float] = {}
        self.stopping = False

    def run(self) -> None:
        codec = Codec(self._settings)
        attempts = self._settings.topic("attempts")
        consumer = make_consumer(
            self._settings, "bench", group="bench", several_topics=True, fetch_wait_ms=100, fetch_pause_ms=PAUSE_MS
        )
        consumer.subscribe([attempts, self._settings.topic("triplets")])
        while not self.stopping:
            for message in consumer.consume(100, 0.002):
                if message.error():
                    continue
                now, value = 1e3 * time.time(), message.value()
                if message.topic() == attempts:
                    event = codec.decode_as(AttemptEvent, value)
                    if event.final:
                        self.ended.setdefault(event.rollout_id, message.timestamp()[1])
                else:
                    self.arrived.setdefault(codec.decode_as(Trajectory, value).rollout_id, now)
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    task = task_named("pick-digit")
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(Path(folder), free_port(), args.seed, task, "builtin", "latency")
        follower = Follower(load_settings(bootstrap=plan.bootstrap, prefix=plan.prefix))
        demo = Demo(plan, Display("demo", task.goal), 300.0)
        # A group coordinator answers only once the broker is up: the client waits for it.
        follower.start()
        try:
            outcome = demo.run()
            follower.stopping = True
            follower.join(10)
        finally:
            demo.stop()
    order = [r for r in follower.ended if r in follower.arrived][WARM_UP:]
    waits = sorted(follower.arrived[r] - follower.ended[r] for r in order)
    result: dict[str, Any] = {
        "rollouts": len(waits),
        "end_to_trajectory_ms": {
            "p50": round(statistics.median(waits), 1),
            "p90": round(waits[int(0.9 * (len(waits) - 1))], 1),
            "p99": round(waits[int(0.99 * (len(waits) - 1))], 1),
        },
        **outcome.line(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
