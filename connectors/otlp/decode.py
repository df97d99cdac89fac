"""Export requests of OTLP (protobuf or JSON) as Span and Reward records.

A malformed span is refused and the rest of its request taken. Source: opentelemetry-proto, "OTLP Specification".
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any, cast

import msgspec
from google.protobuf.message import DecodeError as ProtobufDecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from headrace.connectors.otlp.envelope import RawSpan, split
from headrace.connectors.otlp.from_json import objects, parsed, parsed_span
from headrace.connectors.otlp.record import (
    NOBODY,
    Caller,
    Malformed,
    Source,
    read_scope,
    read_source,
    read_span,
)
from headrace.connectors.otlp.values import plain_map
from headrace.schemas.records import Reward, Span
from headrace.streams.assembly.reward_forms import read_rewards, tells_rewards
from headrace.streams.errors import HeadraceError

MALFORMED = "malformed_span"
REWARD_BYTES = 200  # of a record, beside its name and metadata
MOST_REWARD_BYTES = 1024 * 1024
"""Of one span: each of its rewards repeats its links, so that a span of some megabytes could make gigabytes."""


class OtlpError(HeadraceError):
    """The body is no export request at all; nothing of it can be taken."""


class JsonSpan(msgspec.Struct, frozen=True):
    """A span of an OTLP/JSON request, with what it stands in."""

    resource: Any
    resource_schema: Any
    scope: Any
    scope_schema: Any
    span: Any


class Refused(msgspec.Struct, frozen=True):
    """A span that is not taken, or a reward value of one that is.

    Attributes:
        code: malformed_span, null_reward, non_finite_reward or non_numeric_reward.
        identity: the same for a request that is sent again.
        raw: of a malformed span.
    """

    code: str
    identity: str
    rollout_id: str | None = None
    message: str = ""
    raw: RawSpan | JsonSpan | None = None


class Decoded(msgspec.Struct):
    """What an export request holds."""

    spans: list[Span]
    rewards: list[Reward]
    refused: list[Refused]

    @property
    def malformed(self) -> list[Refused]:
        """The spans that are not taken."""
        return [refused for refused in self.refused if refused.code == MALFORMED]


Decode = Callable[[bytes, Caller], Decoded]


def decode_protobuf(body: bytes, caller: Caller = NOBODY) -> Decoded:
    """Decode an ExportTraceServiceRequest.

    Raises:
        OtlpError: the body is no such message.
    """
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except ProtobufDecodeError:
        return _decode_each(body, caller)
    if body and not request.resource_spans:
        raise OtlpError("the body holds no resource_spans; traces are taken here, no logs and no metrics")
    decoded = Decoded([], [], [])
    bad: dict[int, Malformed] = {}
    number = 0
    for resource_spans in request.resource_spans:
        source = read_source(resource_spans.resource, resource_spans.schema_url)
        for scope_spans in resource_spans.scope_spans:
            scope = read_scope(scope_spans.scope, scope_spans.schema_url)
            for span in scope_spans.spans:
                try:
                    _take(span, source, scope, caller, decoded)
                except Malformed as error:
                    bad[number] = error
                number += 1
    if bad:
        around = _Surroundings()
        for number, raw in enumerate(split(body)):
            if number in bad:
                _refuse(raw, bad[number], decoded, around.source(raw))
    return decoded


def _decode_each(body: bytes, caller: Caller) -> Decoded:
    """Each span by itself, since something in the request cannot be read."""
    decoded = Decoded([], [], [])
    around = _Surroundings()
    try:
        for raw in split(body):
            try:
                source, scope = around.source(raw), around.scope(raw)
                if source is None or scope is None or not raw.readable:
                    raise Malformed("it, its resource or its scope is not readable: no protobuf, or no UTF-8")
                _take(OtlpSpan.FromString(raw.span), source, scope, caller, decoded)
            except ProtobufDecodeError:
                _refuse(raw, Malformed("it is not readable: no protobuf, or text that is no UTF-8"), decoded)
            except Malformed as error:
                _refuse(raw, error, decoded, around.source(raw))
    except ProtobufDecodeError as error:
        raise OtlpError("the body is no OTLP ExportTraceServiceRequest; check the exporter's protocol") from error
    return decoded


class _Surroundings:
    """Reads the resource and the scope of raw spans, each once for all the spans that share it."""

    def __init__(self) -> None:
        self._resource: tuple[tuple[bytes, bytes], Source | None] | None = None
        self._scope: tuple[tuple[bytes, bytes], str | None] | None = None

    def source(self, raw: RawSpan) -> Source | None:
        key = raw.resource, raw.resource_schema
        if self._resource is None or self._resource[0] != key:
            try:
                found = read_source(Resource.FromString(raw.resource), raw.resource_schema.decode())
            except (ProtobufDecodeError, UnicodeDecodeError):
                found = None
            self._resource = (key, found)
        return self._resource[1]

    def scope(self, raw: RawSpan) -> str | None:
        key = raw.scope, raw.scope_schema
        if self._scope is None or self._scope[0] != key:
            try:
                found = read_scope(InstrumentationScope.FromString(raw.scope), raw.scope_schema.decode())
            except (ProtobufDecodeError, UnicodeDecodeError):
                found = None
            self._scope = (key, found)
        return self._scope[1]


def decode_json(body: bytes | str, caller: Caller = NOBODY) -> Decoded:
    """Decode an ExportTraceServiceRequest in OTLP/JSON.

    Raises:
        OtlpError: the body is no such object.
    """
    try:
        # NaN and the infinities, bare, as Python's JSON writes them: protobuf's JSON has them as text.
        request = json.loads(_json_text(body), parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise OtlpError(f"the body is no JSON: {error}") from error
    decoded = Decoded([], [], [])
    try:
        if isinstance(request, dict) and request and "resourceSpans" not in request:
            raise Malformed("the body holds no resourceSpans; traces are taken here, no logs and no metrics")
        for resource_spans in objects(request, "resourceSpans"):
            _decode_json_resource(resource_spans, caller, decoded)
    except Malformed as error:
        raise OtlpError(str(error)) from error
    return decoded


def _decode_json_resource(resource_spans: dict[str, Any], caller: Caller, decoded: Decoded) -> None:
    fields, schema = resource_spans.get("resource"), resource_spans.get("schemaUrl")
    source = _json_source(fields, schema)
    for scope_spans in objects(resource_spans, "scopeSpans"):
        scope_fields, scope_schema = scope_spans.get("scope"), scope_spans.get("schemaUrl")
        scope = _json_scope(scope_fields, scope_schema)
        spans = scope_spans.get("spans")
        if spans is not None and not isinstance(spans, list):
            raise Malformed("spans must be a list")
        for span in cast("list[Any]", spans or []):
            try:
                if source is None or scope is None:
                    raise Malformed("its resource or scope is not readable")
                _take(parsed_span(span), source, scope, caller, decoded)
            except Malformed as error:
                raw = JsonSpan(fields, schema, scope_fields, scope_schema, span)
                _refuse(raw, error, decoded, source)


def _take(message: OtlpSpan, source: Source, scope: str, caller: Caller, decoded: Decoded) -> None:
    attributes = plain_map(message.attributes)
    span = read_span(message, attributes, source, scope, caller)
    if not tells_rewards(span):
        decoded.spans.append(span)
        return
    read = read_rewards(span, attributes)
    if (size := sum(map(_size, read.rewards))) > MOST_REWARD_BYTES:
        raise Malformed(f"its {len(read.rewards)} rewards take {size} bytes; {MOST_REWARD_BYTES} at most are taken")
    decoded.spans.append(span)
    decoded.rewards += read.rewards
    for number, code in enumerate(read.rejected):
        identity = f"{span.rollout_id}/{span.attempt_id}/{span.trace_id}/{span.span_id}/{number}"
        decoded.refused.append(Refused(code, identity, span.rollout_id))


def _size(reward: Reward) -> int:
    return REWARD_BYTES + len(reward.name) + sum(map(len, reward.metadata.values()))


def _refuse(raw: RawSpan | JsonSpan, error: Malformed, decoded: Decoded, source: Source | None = None) -> None:
    content = raw.span if isinstance(raw, RawSpan) else json_bytes(raw.span)
    rollout_id = source.ids.rollout_id if source is not None else None
    identity = f"{rollout_id}/{hashlib.sha256(content).hexdigest()}"
    decoded.refused.append(Refused(MALFORMED, identity, rollout_id, str(error), raw))


def json_bytes(value: Any) -> bytes:
    """JSON text, in one form for equal values; text that is no UTF-8 stays escaped."""
    try:
        return json.dumps(value, sort_keys=True).encode()
    except RecursionError:  # nested so deeply that it could just be read
        return b"null"


def _json_source(fields: Any, schema: Any) -> Source | None:
    try:
        return read_source(parsed(fields, Resource()), _text(schema))
    except Malformed:
        return None


def _json_scope(fields: Any, schema: Any) -> str | None:
    try:
        return read_scope(parsed(fields, InstrumentationScope()), _text(schema))
    except Malformed:
        return None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed("schemaUrl is a URL")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Malformed("schemaUrl is no UTF-8") from error
    return value


def _json_text(body: bytes | str) -> str:
    """A body as text. Bytes that are no UTF-8 become lone surrogates, which make the span alone unreadable."""
    return body if isinstance(body, str) else body.decode("utf-8-sig", "surrogateescape")
