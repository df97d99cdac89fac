"""The assembler beside a bare loop over the same records: CPU a span.

    .venv/bin/python tests/bench/assembler.py [--rollouts 10000] [--spans 3] [--repeats 3]
    .venv/bin/python tests/bench/assembler.py --processes 1 2

The bare loop consumes and decodes the same attempts, spans and rewards, and encodes and produces the same trajectories
and Assembled records: no rollouts, no barrier, no transactions, no offsets. Both run in this process, one after the
other, on the same broker; what is compared is CPU time (all threads of the process, the client's too).
"""

import argparse
import gc
import json
import statistics
import threading
import time
from typing import Any

import psutil
from synthetic import Sender, add_bootstrap, begin, broker, fresh_settings, write_rollouts

from headrace.schemas.records import Assembled, AttemptEvent, Trajectory
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.clients import make_consumer, make_producer
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.settings import Settings, load_settings

BLOCK = 1000
GC_YOUNG_OBJECTS = 20_000  # as the command has it
PARTITIONS = 4


def fill(settings: Settings, rollouts: int, spans: int) -> None:
    """A backlog."""
    sender = Sender(settings)
    for first in range(0, rollouts, BLOCK):
        write_rollouts(sender, range(first, min(first + BLOCK, rollouts)), spans)


def assemble(settings: Settings, rollouts: int) -> tuple[float, float]:
    """CPU and wall seconds of the assembler, from its first record on."""
    processor = AssemblyProcessor(settings, "bench")
    loop = TransactionalLoop(settings, processor, "bench")
    thread = threading.Thread(target=loop.run)
    thread.start()
    while not processor.counters.get("spans"):
        time.sleep(0.001)
    cpu, wall = time.process_time(), time.monotonic()
    while processor.counters.get("trajectories", 0) < rollouts:
        time.sleep(0.01)
    taken = time.process_time() - cpu, time.monotonic() - wall
    loop.stop()
    thread.join()
    return taken


def written(settings: Settings) -> tuple[dict[str, Trajectory], dict[str, Assembled]]:
    """What the assembler has written."""
    codec = Codec(settings)
    trajectories: dict[str, Trajectory] = {}
    for message in read_topic(settings, settings.topic("triplets"), range(PARTITIONS), client_id="bench"):
        trajectory = codec.decode_as(Trajectory, message.value())
        trajectories[trajectory.rollout_id] = trajectory
    found: dict[str, Assembled] = {}
    for message in read_topic(settings, settings.topic("assembled"), range(PARTITIONS), client_id="bench"):
        assembled = codec.decode_as(Assembled, message.value())
        found[assembled.rollout_id] = assembled
    return trajectories, found


def bare(settings: Settings, rollouts: int) -> tuple[float, float]:
    """CPU and wall seconds of the bare loop, from its first record on."""
    trajectories, assembled = written(settings)
    other = load_settings(bootstrap=settings.bootstrap, prefix=f"{settings.prefix}bare", partitions=PARTITIONS)
    create_topics(other)
    codec, message_of = Codec(settings), MessageMaker(other)
    producer = make_producer(other, "bench-bare")
    consumer = make_consumer(settings, "bench-bare", group="bare", several_topics=True)
    consumer.subscribe([settings.topic(t) for t in ("attempts", "spans", "rewards")])
    done = 0
    cpu = wall = 0.0
    while done < rollouts:
        messages: Any = consumer.consume(5000, 0.05)
        if messages and not cpu:
            cpu, wall = time.process_time(), time.monotonic()
        for message in messages:
            record = codec.decode(message.value())
            if isinstance(record, AttemptEvent) and record.final:
                done += 1
                for made in (trajectories[record.rollout_id], assembled[record.rollout_id]):
                    out = message_of(made)
                    producer.produce(out.topic, out.value, out.key)
        producer.poll(0)
    producer.flush()
    taken = time.process_time() - cpu, time.monotonic() - wall
    consumer.close()
    return taken


def compare(bootstrap: str, rollouts: int, spans: int, repeats: int) -> None:
    """Prints both, and the ratio."""
    sides: dict[str, list[tuple[float, float]]] = {"assembler": [], "bare": []}
    for _ in range(repeats):
        settings = fresh_settings(bootstrap, PARTITIONS)
        fill(settings, rollouts, spans)
        sides["assembler"].append(assemble(settings, rollouts))
        sides["bare"].append(bare(settings, rollouts))
    ratios = [b[0] / a[0] for a, b in zip(sides["assembler"], sides["bare"], strict=True)]
    result: dict[str, Any] = {
        "rollouts": rollouts,
        "spans_a_rollout": spans,
        "of_bare": round(statistics.median(ratios), 3),
    }
    for name, taken in sides.items():
        cpu = statistics.median(c for c, _ in taken)
        result[name] = {
            "cpu_us_a_rollout": round(1e6 * cpu / rollouts, 1),
            "spans_a_cpu_second": round(rollouts * spans / cpu),
            "spans_a_second": round(rollouts * spans / statistics.median(w for _, w in taken)),
        }
    result["ratios"] = [round(ratio, 3) for ratio in ratios]
    print(json.dumps(result))


class Counted:
    """When each trajectory has come."""

    def __init__(self, settings: Settings) -> None:
        self.times: list[float] = []
        self._follower = TopicFollower(
            settings, "triplets", self._add, client_id="bench", partitions=range(PARTITIONS)
        ).start()

    def _add(self, record: Any, message: Any) -> None:
        self.times.append(time.monotonic())

    def wait(self, count: int) -> None:
        """Returns once so many have come."""
        while len(self.times) < count:
            time.sleep(0.01)

    def close(self) -> None:
        self._follower.close()


def scale(bootstrap: str, counts: list[int], rollouts: int, spans: int) -> None:
    """Prints what 1, 2, ... processes do with a backlog: the rate of the middle half, when all are at work."""
    for count in counts:
        settings = fresh_settings(bootstrap, PARTITIONS)
        fill(settings, rollouts, spans)
        argvs = [("processor", "assembler", "--worker-id", f"bench-{n}") for n in range(count)]
        processes = [begin(settings, *argv) for argv in argvs]
        counted = Counted(settings)
        counted.wait(rollouts)
        cpu = [sum(psutil.Process(process.pid).cpu_times()[:2]) for process in processes]
        first, last = rollouts // 4, 3 * rollouts // 4
        seconds = counted.times[last] - counted.times[first]
        print(
            json.dumps(
                {
                    "processes": count,
                    "rollouts_a_second": round((last - first) / seconds),
                    "spans_a_second": round((last - first) * spans / seconds),
                    "spans_a_cpu_second": round(rollouts * spans / sum(cpu)),
                    "cpu_seconds": [round(c, 2) for c in cpu],
                }
            )
        )
        counted.close()
        for process in processes:
            process.terminate()
            process.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bootstrap(parser)
    parser.add_argument("--rollouts", type=int)
    parser.add_argument("--spans", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+")
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(GC_YOUNG_OBJECTS)
    with broker(options.bootstrap) as (bootstrap, _):
        if options.processes:
            scale(bootstrap, options.processes, options.rollouts or 20_000, options.spans or 3)
        else:
            compare(bootstrap, options.rollouts or 10_000, options.spans or 3, options.repeats)


if __name__ == "__main__":
    main()
