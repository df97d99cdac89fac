"""OTLP in: spans a second of one receiver, in batches of 100 and singly; and a trace of 1,000 spans assembled.

    python tests/bench/otlp.py [--bootstrap HOST:PORT] [--seconds 5]

The receiver is the public command, on real Kafka; the client sends requests that were made before, over connections
that stay open. CPU is the receiver's own: on two cores it shares them with the broker and the client.
"""

import argparse
import asyncio
import gzip
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import psutil
import uvloop
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from synthetic import add_bootstrap, begin, broker, fresh_settings

from headrace.connectors.otlp.decode import decode_protobuf
from headrace.schemas.records import AttemptEvent, TaskFacts
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble
from headrace.streams.http1.connections import Connections

START = 1_767_225_600_000_000_000
REQUESTS = 200  # different ones, sent over and over
BODY_LIMIT = 1024 * 1024
REPEATS = 7


def add_span(spans: Any, trace: int, number: int, parent: int | None, *, call: bool) -> None:
    """A span as instrumentation libraries write it: 12 attributes and an event; calls have messages and token ids."""
    span = spans.add(
        trace_id=trace.to_bytes(16, "big"),
        span_id=(number + 1).to_bytes(8, "big"),
        parent_span_id=(parent + 1).to_bytes(8, "big") if parent is not None else b"",
        name="chat policy" if call else "tool",
        kind=3,
        flags=0x100,
        start_time_unix_nano=START + 1000 * number,
        end_time_unix_nano=START + 1000 * number + 500,
    )
    text = {f"app.attribute.{i}": "x" * 30 for i in range(8)}
    if call:
        text |= {"gen_ai.operation.name": "chat", "gen_ai.request.model": "policy", "gen_ai.response.id": f"r{number}"}
        text["gen_ai.input.messages"] = '[{"role": "user", "parts": [{"type": "text", "content": "pick a digit"}]}]'
    for key, value in text.items():
        span.attributes.add(key=key).value.string_value = value
    span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 8
    if call:
        for key, ids in (("prompt_token_ids", range(30)), ("response_token_ids", range(8))):
            values = span.attributes.add(key=key).value.array_value.values
            for token in ids:
                values.add().int_value = token
        span.attributes.add(key="gen_ai.response.finish_reasons").value.array_value.values.add().string_value = "stop"
    span.events.add(name="log", time_unix_nano=START).attributes.add(key="level").value.string_value = "info"


def request_of(trace: int, count: int, first: int = 0) -> bytes:
    """A request of spans of one trace; every fourth is a model call."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    for key in ("service.name", "service.version", "telemetry.sdk.name", "host.name"):
        resource_spans.resource.attributes.add(key=key).value.string_value = "agent"
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "agent"
    for number in range(first, first + count):
        add_span(scope_spans.spans, trace, number, number // 4 * 4 if number else None, call=number % 4 == 1)
    return request.SerializeToString()


async def load(url: str, bodies: Sequence[bytes], connections: int, seconds: float, encoding: str = "identity") -> int:
    """Sends bodies from so many connections; the number of requests that were answered."""
    pool = Connections(url, BODY_LIMIT)
    if encoding == "gzip":
        bodies = [gzip.compress(body, 6) for body in bodies]
    head = f"POST /v1/traces HTTP/1.1\r\nhost: {pool.host}\r\ncontent-type: application/x-protobuf\r\n"
    head += f"content-encoding: {encoding}\r\ncontent-length: "
    requests = [head.encode() + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies]
    until = time.monotonic() + seconds
    answered = 0

    async def one(start: int) -> None:
        nonlocal answered
        connection = await pool.take(5)
        number = start
        while time.monotonic() < until:
            answer = await connection.ask(requests[number % len(requests)])
            assert (answer.status, answer.body) == (200, b""), answer
            answered += 1
            number += connections
        connection.close()

    await asyncio.gather(*(one(start) for start in range(connections)))
    return answered


def cpu(process: psutil.Process) -> float:
    """User and system seconds so far."""
    times = process.cpu_times()
    return times.user + times.system


def measure(url: str, receiver: psutil.Process, size: int, connections: int, seconds: float, encoding: str) -> None:
    """Prints the figures of one size of request."""
    bodies = [request_of(trace + 1, size) for trace in range(REQUESTS)]
    uvloop.run(load(url, bodies, connections, 1.0, encoding))
    began, used = time.monotonic(), cpu(receiver)
    answered = uvloop.run(load(url, bodies, connections, seconds, encoding))
    took, used = time.monotonic() - began, cpu(receiver) - used
    spans = answered * size
    print(
        f"{size:4} spans a request, {encoding}, {connections} connections: {spans / took:8,.0f} spans/s, "
        f"{used / spans * 1e6:6.1f} µs of CPU a span ({spans / used:,.0f} spans a second of CPU)"
    )


def assemble_long() -> None:
    """A trace of 1,000 spans with 250 calls, from its records to its trajectory."""
    decoded = decode_protobuf(request_of(1, 1000))
    rollout_id = decoded.spans[0].rollout_id
    times: list[float] = []
    for _ in range(REPEATS):
        records = RolloutRecords(rollout_id)
        start = AttemptEvent(
            rollout_id=rollout_id, attempt_id="at", type="started", task=TaskFacts(origin="external"), at=1
        )
        records.add_event(start, 0, 1)
        for offset, span in enumerate(decoded.spans):
            records.add_span(msgspec.structs.replace(span), offset, 2)
        end = AttemptEvent(rollout_id=rollout_id, attempt_id="at", type="succeeded", final=True, at=1)
        records.add_event(end, 1, 9)
        began = time.process_time()
        trajectory = assemble(records, AssemblySettings(), assembled_at=5)
        times.append(time.process_time() - began)
        assert len(trajectory.triplets) == 250
    print(f"a trace of {len(decoded.spans)} spans with 250 calls assembled: {min(times) * 1e3:.1f} ms of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bootstrap(parser)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    assemble_long()
    with broker(options.bootstrap) as (bootstrap, _):
        settings = fresh_settings(bootstrap, 12)
        process: subprocess.Popen[str] = begin(settings, "otlp", "--port", "0")
        try:
            assert process.stdout is not None
            url = msgspec.json.decode(process.stdout.readline())["url"]
            receiver = psutil.Process(process.pid)
            for size, connections, encoding in ((100, 8, "identity"), (100, 8, "gzip"), (1, 32, "identity")):
                measure(url, receiver, size, connections, options.seconds, encoding)
        finally:
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    main()
