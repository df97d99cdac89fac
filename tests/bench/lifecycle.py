"""Lifecycle: rollouts a second of one process through all their states.

    .venv/bin/python tests/bench/lifecycle.py [--rollouts 20000] [--repeats 3]

A backlog of whole rollouts: task, start, heartbeat, end; every tenth fails once, is enqueued again and succeeds then.
The processor runs in this process; counted are CPU time of all its threads and wall time.
"""

import argparse
import gc
import json
import statistics
import threading
import time

from synthetic import Sender, add_bootstrap, broker, ended, fresh_settings, sign, started, task

from headrace.schemas.records import RolloutState
from headrace.streams.codec import Codec
from headrace.streams.kafka.reading import read_topic
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.settings import Settings

BLOCK = 1000
RETRIED = 10
GC_YOUNG_OBJECTS = 20_000  # as the command has it
PARTITIONS = 4


def fill(settings: Settings, rollouts: int) -> int:
    """Writes the backlog; the number of its events."""
    sender = Sender(settings)
    events = 0
    for first in range(0, rollouts, BLOCK):
        numbers = range(first, min(first + BLOCK, rollouts))
        for n in numbers:
            sender.send(task(n, max_attempts=2))
        for n in numbers:
            sender.send(started(n), sign(n))
        for n in numbers:
            again = n % RETRIED == 0
            sender.send(ended(n, failed=again, final=not again))
            if again:
                sender.send(started(n, 2), sign(n, attempt=2), ended(n, 2))
                events += 3
            events += 3
    sender.flush()
    return events


def run(settings: Settings, events: int) -> tuple[float, float]:
    """CPU and wall seconds from the first record to the last state written."""
    processor = LifecycleProcessor(settings, "bench")
    loop = TransactionalLoop(settings, processor, "bench")
    thread = threading.Thread(target=loop.run)
    thread.start()
    while not (processor.counters.get("tasks") or processor.counters.get("events")):
        time.sleep(0.001)
    cpu, wall = time.process_time(), time.monotonic()
    while processor.counters.get("events", 0) < events or processor.ready or processor.waiting:
        time.sleep(0.005)
    taken = time.process_time() - cpu, time.monotonic() - wall
    loop.stop()
    thread.join()
    return taken


def succeeded(settings: Settings) -> int:
    """How many rollouts stand as succeeded."""
    codec = Codec(settings)
    states: dict[str, str] = {}
    for message in read_topic(settings, settings.topic("rollouts"), range(PARTITIONS), client_id="bench"):
        state = codec.decode_as(RolloutState, message.value())
        states[state.rollout_id] = state.status
    return sum(status == "succeeded" for status in states.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bootstrap(parser)
    parser.add_argument("--rollouts", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(GC_YOUNG_OBJECTS)
    taken: list[tuple[float, float]] = []
    done: list[int] = []
    with broker(options.bootstrap) as (bootstrap, _):
        for _ in range(options.repeats):
            settings = fresh_settings(bootstrap, PARTITIONS)
            taken.append(run(settings, fill(settings, options.rollouts)))
            done.append(succeeded(settings))
    cpu, wall = (statistics.median(values) for values in zip(*taken, strict=True))
    print(
        json.dumps(
            {
                "rollouts": options.rollouts,
                "succeeded": done,
                "cpu_us_a_rollout": round(1e6 * cpu / options.rollouts, 1),
                "rollouts_a_cpu_second": round(options.rollouts / cpu),
                "rollouts_a_second": round(options.rollouts / wall),
            }
        )
    )


if __name__ == "__main__":
    main()
