"""How many spans a second `headrace processor view` takes into SQLite and into PostgreSQL.

    .venv/bin/python tests/bench/view.py --bootstrap 127.0.0.1:9092 --database sqlite:///view.db --spans 200000

Spans are written first, 1.6 kB each, in rollouts of four calls; a bare loop reads and decodes them; then the view reads
them, from its assignment to its last row. Prints a JSON object each. `cpu_us_a_span` is user and system time of the
process that reads, which on a machine that does other things says more than spans a second. With --profile FILE the
view runs within this process, under cProfile.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from sqlalchemy import func, select

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import Choice, ModelCall, Span, Usage, VersionRange
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import create_topics, partition_ids
from headrace.streams.kafka.clients import make_consumer, make_producer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.reading import poll_batch
from headrace.streams.settings import Settings, load_settings
from headrace.streams.view import tables
from headrace.streams.view.database import open_database
from headrace.streams.view.loop import ViewLoop
from headrace.streams.view.migrate import upgrade
from headrace.streams.view.pruning import Pruner
from headrace.streams.view.writer import ViewWriter

COMMAND = str(Path(sys.executable).parent / "headrace")
CALLS = 4
ATTRIBUTES = json.dumps({f"gen_ai.attribute.{i}": "x" * 20 for i in range(12)})
REQUEST = json.dumps({"messages": [{"role": "user", "content": "Please pick the digit 7. " * 6}], "model": "policy"})


def span(n: int) -> Span:
    """The span of a call as the gateway writes it."""
    now = wall_us() * 1000
    return Span(
        rollout_id=f"ro-{uuid.uuid5(uuid.NAMESPACE_OID, str(n // CALLS)).hex[:12]}",
        attempt_id=f"at-{n // CALLS:08d}",
        source="gateway",
        trace_id=f"{n // CALLS:032x}",
        span_id=f"{n:016x}",
        name="chat policy",
        kind="CLIENT",
        start=now - 5_000_000,
        end=now,
        attributes=ATTRIBUTES,
        resource='{"service.name": "headrace-gateway", "service.instance.id": "gateway-0"}',
        scope='{"name": "headrace.connectors.gateway"}',
        llm=ModelCall(
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
            usage=Usage(input_tokens=60, output_tokens=4),
            request=REQUEST,
            response=REQUEST,
            http_status=200,
        ),
    )


def produce(settings: Settings, count: int) -> int:
    """Writes the spans; the bytes of one."""
    make = MessageMaker(settings)
    producer = make_producer(settings, "bench")
    size = 0
    for n in range(count):
        message = make(span(n))
        size = len(message.value or b"")
        producer.produce(message.topic, message.value, message.key)
        if n % 1000 == 0:
            producer.flush()
    producer.flush()
    return size


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_rows(database: str, count: int) -> float:
    """When the last row is there, on the monotonic clock."""
    engine = open_database(database, read_only=True)
    total = select(func.sum(tables.offsets.c.next)).where(tables.offsets.c.topic.like("%.spans.v1"))
    while True:
        with engine.connect() as connection:
            if (connection.execute(total).scalar_one() or 0) >= count:
                return time.monotonic()
        time.sleep(0.02)


def bare(settings: Settings, count: int) -> dict[str, Any]:
    """What reading and decoding alone cost: the floor of every reader."""
    codec = Codec(settings)
    consumer = make_consumer(settings, "bare")
    topic = settings.topic("spans")
    consumer.assign([TopicPartition(topic, p, 0) for p in partition_ids(settings, topic)])
    begun, cpu = time.monotonic(), time.process_time()
    left = count
    while left:
        messages = poll_batch(consumer, 0.2, 5000)
        for message in messages:
            codec.decode(message.value())
        left -= len(messages)
    seconds, used = time.monotonic() - begun, time.process_time() - cpu
    consumer.close()
    return {
        "database": "none: a loop that reads and decodes",
        "spans": count,
        "seconds": round(seconds, 2),
        "spans_per_second": round(count / seconds),
        "cpu_us_a_span": round(1e6 * used / count, 1),
    }


def in_process(settings: Settings, database: str, count: int, profile: str) -> None:
    """Runs the view here, under cProfile."""
    import cProfile

    engine = open_database(database)
    upgrade(engine, rebuild=True)
    loop = ViewLoop(settings, ViewWriter(engine), Pruner(engine, settings, None), "bench")
    threading.Thread(target=lambda: (wait_for_rows(database, count), loop.stop()), daemon=True).start()
    profiler = cProfile.Profile()
    profiler.enable()
    loop.run()
    profiler.disable()
    profiler.dump_stats(profile)


def measure(settings: Settings, database: str, count: int) -> dict[str, Any]:
    """Runs the command on what is written."""
    process = subprocess.Popen(
        [COMMAND, "processor", "view", "--database", database, "--rebuild"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "the view did not start"
        begun, cpu = time.monotonic(), cpu_seconds(process.pid)
        seconds = wait_for_rows(database, count) - begun
        used = cpu_seconds(process.pid) - cpu
    finally:
        process.terminate()
        process.wait(30)
    engine = open_database(database, read_only=True)
    with engine.connect() as connection:
        rows = connection.execute(select(func.count()).select_from(tables.spans)).scalar_one()
    assert rows == count, f"{rows} rows of {count} spans"
    return {
        "database": database.split(":")[0],
        "spans": count,
        "seconds": round(seconds, 2),
        "spans_per_second": round(count / seconds),
        "cpu_us_a_span": round(1e6 * used / count, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--database", action="append", required=True, help="May be given several times.")
    parser.add_argument("--spans", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--profile")
    options = parser.parse_args()
    settings = load_settings(
        bootstrap=options.bootstrap, prefix=f"bench{uuid.uuid4().hex[:6]}", partitions=options.partitions
    )
    create_topics(settings)
    size = produce(settings, options.spans)
    print(json.dumps(bare(settings, options.spans)), flush=True)
    for database in options.database:
        if options.profile:
            in_process(settings, database, options.spans, options.profile)
        else:
            print(json.dumps({**measure(settings, database, options.spans), "bytes_a_span": size}), flush=True)


if __name__ == "__main__":
    main()
