"""The assembler's memory of a million closed rollouts: how long a restart takes to restore it, and how much it keeps.

Writes Assembled records to a topic of their own (which is not measured), then restores them in a new process,
which prints one JSON line:

    python tests/bench/assembled.py --bootstrap 127.0.0.1:9092 --rollouts 1000000
"""

import argparse
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from headrace.schemas.packing import pack_offsets
from headrace.schemas.records import Assembled, LogPosition, Source
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.settings import Settings, load_settings


def rss_mb(field: str = "VmRSS") -> float:
    """Memory of this process: resident now (VmRSS), or at its highest (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024, 1)


def write(settings: Settings, count: int) -> None:
    """Closed rollouts of one call and one reward each, as the assembler writes them."""
    message_of = MessageMaker(settings)
    producer = make_producer(settings, "bench", linger_ms=50)
    for n in range(count):
        rollout_id = f"ro-{n:032x}"
        partition = partition_of(rollout_id, settings.partitions)
        at = 3 * n // settings.partitions
        source = Source(
            partition=partition,
            attempts=pack_offsets([at, at + 2]),
            spans=pack_offsets([at // 3]),
            rewards=pack_offsets([at // 3]),
        )
        message = message_of(
            Assembled(
                rollout_id=rollout_id,
                state="closed",
                attempt_id=f"{rollout_id}-1",
                trajectory=LogPosition(partition=partition, offset=at // 3),
                revision=0,
                reward_ids=[f"rw-{n:016x}"],
                source=source,
                at=1_700_000_000_000_000 + n,
            )
        )
        headers: Any = message.headers or None
        while True:
            try:
                producer.produce(message.topic, message.value, message.key, partition, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def restore(settings: Settings) -> dict[str, Any]:
    """Restores all partitions as an assignment does."""
    processor = AssemblyProcessor(settings, "bench")
    before = rss_mb()
    began, cpu = time.monotonic(), time.process_time()
    processor.restore(range(settings.partitions))
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    known = sum(len(memory.closed) for memory in processor.memories.values())
    return {
        "rollouts": known,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "rss_mb_before": before,
        "rss_mb": rss_mb(),
        "rss_mb_highest": rss_mb("VmHWM"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--rollouts", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--prefix", help="restore only, what an earlier run has written")
    options = parser.parse_args()
    prefix = options.prefix or f"bench{uuid.uuid4().hex[:6]}"
    settings = load_settings(bootstrap=options.bootstrap, prefix=prefix, partitions=options.partitions)
    if options.prefix:
        print(json.dumps(restore(settings)))
        return
    create_topics(settings)
    write(settings, options.rollouts)
    again = [sys.executable, __file__, "--bootstrap", options.bootstrap, "--prefix", prefix]
    again += ["--partitions", str(options.partitions)]
    subprocess.run(again, check=True, env=os.environ)


if __name__ == "__main__":
    main()
