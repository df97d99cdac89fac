"""Codec: CPU microseconds to write and read a 2 KB span and a triplet of 700 + 200 tokens, beside fastavro.

    .venv/bin/python tests/bench/codec.py

Both sides start from and end at values ready for use: typed records here, dicts there, ten header bytes included.
Repeats of the two sides alternate, and medians are printed. `arrays` is fastavro with token ids as Avro arrays.
"""

import io
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import fastavro
import msgspec

from headrace.schemas import catalogue
from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    Choice,
    ModelCall,
    Record,
    Sampling,
    Span,
    Trajectory,
    Triplet,
    Usage,
    VersionRange,
)
from headrace.streams.codec import Codec
from headrace.streams.settings import Settings

CALLS = 3000
REPEATS = 15
PROMPT, RESPONSE = list(range(700)), list(range(200))
LOGPROBS = [-0.5] * 200


def span() -> Span:
    """A gateway span of about 2 KB."""
    call = ModelCall(
        model="policy",
        policy="policy",
        policy_version=VersionRange(min=1, max=1),
        weights_id="f" * 64,
        response_id="chatcmpl-1",
        prompt_token_ids=pack_int32(range(60)),
        choices=[
            Choice(
                index=0,
                response_token_ids=pack_int32([1, 2]),
                logprobs=pack_float32([-0.1, -0.2]),
                finish_reason="stop",
                text="5",
            )
        ],
        sampling=Sampling(),
        logprobs_mode="processed",
        request="r" * 500,
        response="s" * 500,
        usage=Usage(input_tokens=60, output_tokens=2),
        http_status=200,
    )
    return Span(
        rollout_id="ro-123456789012",
        attempt_id="ro-123456789012-1",
        source="gateway",
        trace_id="a" * 32,
        span_id="b" * 16,
        name="chat policy",
        kind="SERVER",
        start=1_700_000_000_000_000_000,
        end=1_700_000_000_100_000_000,
        attributes=json.dumps({f"gen_ai.key_{i}": "v" * 20 for i in range(10)}),
        llm=call,
    )


def trajectory() -> Trajectory:
    """A trajectory of one triplet."""
    triplet = Triplet(
        prompt_token_ids=pack_int32(PROMPT),
        response_token_ids=pack_int32(RESPONSE),
        logprobs=pack_float32(LOGPROBS),
        span_id="b" * 16,
    )
    return Trajectory(rollout_id="r", attempt_id="a", status="succeeded", assembled_at=1, triplets=[triplet])


def as_arrays(schema: Any) -> Any:
    """A schema with token ids and log-probabilities as Avro arrays."""
    if isinstance(schema, dict):
        packed = {"packed-int32": "int", "packed-float32": "float"}.get(schema.get("logicalType", ""))
        if packed:
            return {"type": "array", "items": packed}
        return {key: as_arrays(value) for key, value in schema.items()}
    return [as_arrays(s) for s in schema] if isinstance(schema, list) else schema


def side(schema: Any, value: Any) -> tuple[Callable[[], bytes], Callable[[], Any]]:
    """fastavro's writer and reader of a value."""
    parsed = fastavro.parse_schema(schema)

    def write() -> bytes:
        out = io.BytesIO()
        out.write(b"0123456789")
        fastavro.schemaless_writer(out, parsed, value)
        return out.getvalue()

    data = write()

    def read() -> Any:
        source = io.BytesIO(data)
        source.seek(10)
        return fastavro.schemaless_reader(source, parsed, None)

    return write, read


def medians(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median CPU microseconds a call of each, their repeats interleaved."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(REPEATS):
        for name, function in functions.items():
            start = time.thread_time()
            for _ in range(CALLS):
                function()
            taken[name].append((time.thread_time() - start) / CALLS * 1e6)
    return {name: statistics.median(values) for name, values in taken.items()}


def functions_of(codec: Codec, record: Record, arrays: Any = None) -> dict[str, Callable[[], object]]:
    """What is measured of a record."""
    schema = catalogue.current()[record.SCHEMA].json
    data = codec.encode(record)
    write, read = side(schema, msgspec.to_builtins(record, builtin_types=(bytes,)))
    found: dict[str, Callable[[], object]] = {
        "headrace write": lambda: codec.encode(record),
        "fastavro write": write,
        "headrace read": lambda: codec.decode(data),
        "fastavro read": read,
    }
    if arrays is not None:
        found["arrays write"], found["arrays read"] = side(as_arrays(schema), arrays)
    print(f"{record.SCHEMA}: {len(data)} bytes")
    return found


def main() -> None:
    """Prints the table, and one JSON line."""
    codec = Codec(Settings())
    triplets = msgspec.to_builtins(trajectory(), builtin_types=(bytes,))
    triplets["triplets"][0] |= {"prompt_token_ids": PROMPT, "response_token_ids": RESPONSE, "logprobs": LOGPROBS}
    results: dict[str, dict[str, float]] = {}
    for record, arrays in ((span(), None), (trajectory(), triplets)):
        results[record.SCHEMA] = medians(functions_of(codec, record, arrays))
        for name, microseconds in results[record.SCHEMA].items():
            print(f"  {name:16} {microseconds:7.1f} µs")
    print(json.dumps({r: {n: round(v, 2) for n, v in m.items()} for r, m in results.items()}))


if __name__ == "__main__":
    main()
