"""What is fuzzed: functions of any bytes, each with inputs to begin with. An exception is a finding.

`python -m tests.fuzz TARGET` runs one with coverage to guide it (atheris), `test_targets.py` all of them for a moment.
"""

import asyncio
import gzip
import json
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError as ProtobufDecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from headrace.connectors.otlp.answer import JSON, PROTOBUF
from headrace.connectors.otlp.envelope import split
from headrace.schemas import catalogue, claim_check
from headrace.schemas.claim_check import ClaimCheck
from headrace.schemas.records import AttemptEvent, Record, Reward, Span, SpanStatus, Task, TaskConfig
from headrace.schemas.varint import WireError
from headrace.schemas.wire import READERS
from headrace.streams.assembly.offline import OfflineAssembler
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.claims import ClaimStores
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.settings import Settings
from tests.connectors.otlp.memory import MemoryReceiver
from tests.streams.assembly.odd import KEYS, TEXTS

SCHEMAS = [*catalogue.by_fingerprint().values()]
NAMES = sorted(catalogue.current())
for name in NAMES:
    READERS[name]  # imports it, so that it is instrumented


class Target(NamedTuple):
    """A function to fuzz."""

    run: Callable[[bytes], None]
    seeds: list[bytes]


@cache
def stores() -> tuple[ClaimStores, Codec]:
    """A claim-check store with one value, and a codec that reads it."""
    settings = Settings(claim_check=tempfile.mkdtemp(prefix="headrace-fuzz-"))
    found = ClaimStores(settings)
    found.put("cluster/headrace.spans.v1", b"value")
    return found, Codec(settings)


def decoder(data: bytes) -> None:
    """The first byte chooses the header of a schema, current or released, or none."""
    if data and data[0] < len(SCHEMAS):
        data = SCHEMAS[data[0]].header + data[1:]
    _, codec = stores()
    try:
        record = codec.decode(data)
    except DecodeError:
        return
    assert isinstance(record, Record)
    assert isinstance(codec.decode(codec.encode(record)), type(record))


def claims(data: bytes) -> None:
    """What a claim check says after its header: it is read or refused, and names nothing outside the store."""
    value = claim_check.HEADER + data
    known, codec = stores()
    try:
        claim = claim_check.decode(value)
    except (WireError, IndexError, UnicodeDecodeError):
        claim = None
    if claim is not None:
        assert claim_check.decode(claim_check.encode(claim)) == claim
        found = known.place_of(claim)
        if found is not None:
            parts = found[1].split("/")
            assert len(parts) == 4
            assert not {"", ".", ".."} & set(parts)
    try:
        codec.decode(value)
    except DecodeError:
        return


@cache
def receiver() -> tuple[MemoryReceiver, asyncio.Runner]:
    """The OTLP endpoint without its server and without brokers."""
    return MemoryReceiver(otlp_max_body_bytes=100_000), asyncio.Runner()


ENCODINGS: list[tuple[str, str, Callable[[bytes], bytes]]] = [
    (PROTOBUF, "identity", bytes),
    (JSON, "identity", bytes),
    (PROTOBUF, "gzip", lambda body: gzip.compress(body, 1)),
    (JSON, "deflate", lambda body: zlib.compress(body, 1)),
    (PROTOBUF, "gzip", bytes),
    (JSON, "deflate", bytes),
]


def otlp(data: bytes) -> None:
    """The first byte chooses content type and encoding: every span is taken or refused, every body is answered."""
    memory, runner = receiver()
    memory.producer.sent.clear()
    content_type, encoding, encode = ENCODINGS[data[0] % len(ENCODINGS)] if data else ENCODINGS[0]
    body = data[1:]
    headers = {"content-type": content_type, "content-encoding": encoding}
    answer = runner.run(memory.receiver.handle(headers, encode(body)))
    assert answer.status in (200, 400, 413, 415), answer.status
    if answer.status == 200 and content_type == PROTOBUF and encode is not ENCODINGS[4][2]:
        told = memory.of_topic(memory.settings.topic("spans"))
        rejected = ExportTraceServiceResponse.FromString(answer.body).partial_success.rejected_spans
        assert _spans_of(body) == len(told) + rejected, (_spans_of(body), len(told), rejected)


def _spans_of(body: bytes) -> int:
    """How many spans a request has that is taken; a part that cannot be taken apart counts as one."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except ProtobufDecodeError:  # something in it is broken, and only that is refused
        return len([*split(body)])
    return sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)


class Bytes:
    """Choices drawn from bytes; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def below(self, most: int) -> int:
        value = self._data[self._at] if self.left else 0
        self._at += 1
        return value % most

    def of(self, values: Any) -> Any:
        return values[self.below(len(values))]

    def text(self) -> str:
        """A text that breaks naive readers, or the next bytes as they are."""
        if self.below(2):
            return self.of(TEXTS)
        length = self.below(32)
        start, self._at = self._at, self._at + length
        return self._data[start : start + length].decode("utf-8", "replace")


MOST_RECORDS = 40
ROLLOUTS = ("a", "b", "b~2", "00000000000000000000000000000001")
ENDS = ("started", "succeeded", "failed", "lost", "timeout", "unresponsive", "heartbeat", "activity", "cancelled")
POLICIES = ("first_occurrence", "first_sibling", "final_only", "explicit")


def _span(draw: Bytes, number: int) -> Span:
    rollout_id = draw.of(ROLLOUTS)
    start = draw.below(50)
    attributes = {draw.of(KEYS): draw.text() for _ in range(draw.below(6))}
    return Span(
        rollout_id=rollout_id,
        attempt_id=draw.of((None, f"{rollout_id}-1", "x")),
        sequence=draw.of((None, None, number)),
        source=draw.of(("otlp", "gateway", "runner")),
        trace_id=draw.of((f"{1:032x}", f"{2:032x}")),
        span_id=f"{draw.below(12):016x}",
        parent_id=draw.of((None, f"{draw.below(12):016x}")),
        name=draw.of(("chat", "litellm_request", "openai.chat.completion", "agentlightning.reward", "x")),
        status=SpanStatus(code=draw.of(("UNSET", "OK", "ERROR"))),
        start=start,
        end=start + draw.below(20) - 2,
        attributes=json.dumps(attributes) if draw.below(8) else draw.text(),
        events=draw.of(("[]", "5", '[{"name": "gen_ai.choice", "attributes": {"message": 5}}]')),
    )


def assembly(data: bytes) -> None:
    """Records and time in any order: what closes has one trajectory that accounts for its calls."""
    draw = Bytes(data)
    settings = AssemblySettings(
        reward_policy=draw.of(POLICIES), keep_incomplete=bool(draw.below(2)), conversations=bool(draw.below(2))
    )
    assembler = OfflineAssembler(settings)
    for number in range(MOST_RECORDS):
        if not draw.left:
            break
        rollout_id = draw.of(ROLLOUTS)
        match draw.below(7):
            case 0:
                config = TaskConfig(max_attempts=1 + draw.below(2), retry_condition=["failed"])
                assembler.add_task(Task(rollout_id=rollout_id, input=draw.text(), config=config, enqueued_at=0))
            case 1 | 2:
                attempt = 1 + draw.below(2)
                event = AttemptEvent(
                    rollout_id=rollout_id,
                    attempt_id=draw.of((f"{rollout_id}-{attempt}", None)),
                    attempt=attempt,
                    type=draw.of(ENDS),
                    complete=bool(draw.below(2)),
                    at=0,
                )
                assembler.add_event(event, judged=False)
            case 3:
                reward = Reward(
                    rollout_id=rollout_id,
                    attempt_id=draw.of((None, f"{rollout_id}-1")),
                    reward_id=str(draw.below(6)),
                    name=draw.of(("", "style")),
                    primary=bool(draw.below(2)),
                    value=draw.below(5) / 2,
                    source=draw.of(("agent", "grader", "feedback")),
                    at=0,
                )
                assembler.add_reward(reward)
            case 4:
                assembler.advance(draw.below(200) * 10)
            case _:
                assembler.add_span(_span(draw, number))
    assembler.finish()
    for rollout in assembler.rollouts.values():
        if rollout.trajectory is not None:
            diagnostics = rollout.trajectory.diagnostics
            dropped = sum(n for reason, n in diagnostics.dropped.items() if reason != "no_model_call")
            assert diagnostics.calls == diagnostics.kept + dropped
            assert all(triplet.response_token_ids for triplet in rollout.trajectory.triplets)


def _otlp_seeds() -> list[bytes]:
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=bytes(range(16)),
            span_id=bytes(range(8)),
            name="chat",
            start_time_unix_nano=1,
            end_time_unix_nano=2,
        )
    )
    for key, value in (("gen_ai.operation.name", "chat"), ("headrace.rollout_id", "a"), ("agent.name", "x")):
        span.attributes.add(key=key).value.string_value = value
    span.events.add(name="gen_ai.choice", time_unix_nano=1)
    span.links.add(trace_id=bytes(16), span_id=bytes(8))
    body = request.SerializeToString()
    text = {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]},
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "0" * 31 + "1",
                                "spanId": "0" * 15 + "1",
                                "name": "chat",
                                "kind": 3,
                                "startTimeUnixNano": "1",
                                "endTimeUnixNano": "2",
                                "attributes": [{"key": "a", "value": {"arrayValue": {"values": [{"intValue": "5"}]}}}],
                            }
                        ]
                    }
                ],
            }
        ]
    }
    return [bytes([0]) + body, bytes([2]) + body, bytes([1]) + json.dumps(text).encode()]


CLAIM = ClaimCheck(5, "ab" * 32, "file:///store/cluster/headrace.spans.v1/ab/" + "ab" * 32)
TARGETS: dict[str, Target] = {
    "decoder": Target(decoder, [bytes([number]) + bytes(200) for number in range(len(SCHEMAS))]),
    "claims": Target(claims, [claim_check.encode(CLAIM)[len(claim_check.HEADER) :]]),
    "otlp": Target(otlp, _otlp_seeds()),
    "assembly": Target(assembly, [bytes(range(n, n + 120)) for n in (0, 40, 90)]),
}
