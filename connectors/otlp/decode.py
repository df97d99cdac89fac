"""Export requests of OTLP (protobuf or JSON) as Span and Reward records.

A malformed span is refused and the rest of its request taken. Source: opentelemetry-proto, "OTLP Specification",
whose JSON mapping writes ids in hexadecimal instead of protobuf's base64.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError as ProtobufDecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from headrace.connectors.otlp.values import plain_map
from headrace.schemas.records import Reward, Span, SpanStatus
from headrace.streams.assembly.reward_forms import read_rewards
from headrace.streams.errors import HeadraceError

MALFORMED = "malformed_span"
ROLLOUT_KEYS = ("agentlightning.rollout_id", "headrace.rollout_id")
ATTEMPT_KEYS = ("agentlightning.attempt_id", "headrace.attempt_id")
SEQUENCE_KEYS = ("agentlightning.span_sequence_id", "headrace.sequence")
SESSION_KEYS = ("session.id", "gen_ai.conversation.id")
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUSES = ("UNSET", "OK", "ERROR")
UNREADABLE = (ParseError, TypeError, AttributeError, ValueError)  # the parser trips over some wrong types
TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8


class OtlpError(HeadraceError):
    """The body is no export request at all; nothing of it can be taken."""


class Refused(msgspec.Struct, frozen=True):
    """A span that is not taken, or a reward value of one that is."""

    code: str  # malformed_span, null_reward, non_finite_reward or non_numeric_reward
    identity: str  # the same for a request that is sent again
    rollout_id: str | None = None
    message: str = ""
    raw: bytes = b""  # of a malformed span, for the dead letter


class Decoded(msgspec.Struct):
    """What an export request holds."""

    spans: list[Span]
    rewards: list[Reward]
    refused: list[Refused]


class _Malformed(ValueError):
    """A span that breaks the protocol."""


def decode_protobuf(body: bytes) -> Decoded:
    """Decode an ExportTraceServiceRequest.

    Raises:
        OtlpError: the body is no such message.
    """
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except ProtobufDecodeError as error:
        raise OtlpError("the body is no OTLP ExportTraceServiceRequest; check the exporter's protocol") from error
    decoded = Decoded([], [], [])
    for resource_spans in request.resource_spans:
        resource = plain_map(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = _scope(scope_spans.scope)
            for span in scope_spans.spans:
                try:
                    _take(span, resource, scope, decoded)
                except _Malformed as error:
                    raw = span.SerializeToString()
                    decoded.refused.append(_refused(raw, resource, str(error)))
    return decoded


def decode_json(body: bytes | str) -> Decoded:
    """Decode an ExportTraceServiceRequest in OTLP/JSON.

    Raises:
        OtlpError: the body is no such object.
    """
    try:
        # NaN and the infinities, bare, as Python's JSON writes them: protobuf's JSON has them as text.
        request = json.loads(body, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise OtlpError(f"the body is no JSON: {error}") from error
    decoded = Decoded([], [], [])
    for resource_spans in _objects(request, "resourceSpans"):
        resource = _json_resource(resource_spans.get("resource"))
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            scope = _json_scope(scope_spans.get("scope"))
            spans = scope_spans.get("spans")
            for fields in cast("list[Any]", spans) if isinstance(spans, list) else []:
                try:
                    if resource is None or scope is None:
                        raise _Malformed("its resource or scope is not readable")
                    _take(_json_span(fields), resource, scope, decoded)
                except _Malformed as error:
                    raw = json.dumps(fields, sort_keys=True).encode()
                    decoded.refused.append(_refused(raw, resource or {}, str(error)))
    return decoded


def _take(message: OtlpSpan, resource: dict[str, Any], scope: str, decoded: Decoded) -> None:
    attributes = plain_map(message.attributes)
    span = _record(message, attributes, resource, scope)
    decoded.spans.append(span)
    read = read_rewards(span, attributes)
    decoded.rewards += read.rewards
    for number, code in enumerate(read.rejected):
        identity = f"{span.rollout_id}/{span.attempt_id}/{span.trace_id}/{span.span_id}/{number}"
        decoded.refused.append(Refused(code, identity, span.rollout_id))


def _record(message: OtlpSpan, attributes: dict[str, Any], resource: dict[str, Any], scope: str) -> Span:
    if len(message.trace_id) != TRACE_ID_BYTES or not any(message.trace_id):
        raise _Malformed("trace_id must be 16 bytes that are not all zero")
    if len(message.span_id) != SPAN_ID_BYTES or not any(message.span_id):
        raise _Malformed("span_id must be 8 bytes that are not all zero")
    if len(message.parent_span_id) not in (0, SPAN_ID_BYTES):
        raise _Malformed("parent_span_id must be 8 bytes or none")
    if not message.start_time_unix_nano or not message.end_time_unix_nano:
        raise _Malformed("a finished span has a start and an end time")
    trace_id = message.trace_id.hex()
    return Span(
        rollout_id=_identity(ROLLOUT_KEYS, attributes, resource) or trace_id,
        attempt_id=_identity(ATTEMPT_KEYS, attributes, resource),
        session_id=_identity(SESSION_KEYS, attributes, resource),
        sequence=_sequence(attributes, resource),
        source="otlp",
        trace_id=trace_id,
        span_id=message.span_id.hex(),
        parent_id=message.parent_span_id.hex() if any(message.parent_span_id) else None,
        name=message.name,
        kind=KINDS[message.kind] if 0 <= message.kind < len(KINDS) else KINDS[0],
        status=SpanStatus(
            code=STATUSES[message.status.code] if 0 <= message.status.code < len(STATUSES) else STATUSES[0],
            message=message.status.message,
        ),
        start=message.start_time_unix_nano,
        end=message.end_time_unix_nano,
        attributes=_json(attributes),
        events=_json([_event(event) for event in message.events]) if message.events else "[]",
        links=_json([_link(link) for link in message.links]) if message.links else "[]",
        resource=_json(resource),
        scope=scope,
    )


def _event(event: OtlpSpan.Event) -> dict[str, Any]:
    return {"name": event.name, "time": event.time_unix_nano, "attributes": plain_map(event.attributes)}


def _link(link: OtlpSpan.Link) -> dict[str, Any]:
    return {
        "trace_id": link.trace_id.hex(),
        "span_id": link.span_id.hex(),
        "attributes": plain_map(link.attributes),
    }


def _scope(scope: InstrumentationScope) -> str:
    found: dict[str, Any] = {"name": scope.name, "version": scope.version, "attributes": plain_map(scope.attributes)}
    return _json({key: value for key, value in found.items() if value})


def _json_resource(fields: Any) -> dict[str, Any] | None:
    try:
        return plain_map(ParseDict(fields or {}, Resource(), ignore_unknown_fields=True).attributes)
    except UNREADABLE:
        return None


def _json_scope(fields: Any) -> str | None:
    try:
        return _scope(ParseDict(fields or {}, InstrumentationScope(), ignore_unknown_fields=True))
    except UNREADABLE:
        return None


def _json_span(fields: Any) -> OtlpSpan:
    if not isinstance(fields, dict):
        raise _Malformed("a span is a JSON object")
    span = dict(cast("dict[str, Any]", fields))
    for key in ("traceId", "spanId", "parentSpanId"):
        span[key] = _base64(span.get(key))
    links = span.get("links")
    if isinstance(links, list):
        span["links"] = [_json_link(link) for link in cast("list[Any]", links)]
    try:
        return ParseDict(span, OtlpSpan(), ignore_unknown_fields=True)
    except UNREADABLE as error:
        raise _Malformed(str(error)) from error


def _json_link(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    link = dict(cast("dict[str, Any]", fields))
    for key in ("traceId", "spanId"):
        link[key] = _base64(link.get(key))
    return link


def _base64(value: Any) -> str:
    """A hexadecimal id as protobuf's JSON wants bytes."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise _Malformed("ids are hexadecimal text")
    try:
        return base64.b64encode(binascii.unhexlify(value)).decode()
    except (binascii.Error, ValueError) as error:
        raise _Malformed(f"{value[:40]!r} is no hexadecimal id") from error


def _refused(raw: bytes, resource: dict[str, Any], message: str) -> Refused:
    rollout_id = _identity(ROLLOUT_KEYS, {}, resource)
    digest = hashlib.sha256(raw).hexdigest()
    return Refused(MALFORMED, f"{rollout_id}/{digest}", rollout_id, message, raw)


def _identity(keys: tuple[str, ...], attributes: dict[str, Any], resource: dict[str, Any]) -> str | None:
    """An id: the span's own before its resource's."""
    for place in (attributes, resource):
        for key in keys:
            value = place.get(key)
            if value is not None and value != "":
                return value if isinstance(value, str) else str(value)
    return None


def _sequence(attributes: dict[str, Any], resource: dict[str, Any]) -> int | None:
    text = _identity(SEQUENCE_KEYS, attributes, resource)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _objects(value: Any, key: str) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        raise OtlpError(f"expected an object with {key}")
    below = cast("dict[str, Any]", value).get(key)
    if below is not None and not isinstance(below, list):
        raise OtlpError(f"{key} must be a list")
    for item in cast("list[Any]", below or []):
        if not isinstance(item, dict):
            raise OtlpError(f"{key} must hold objects")
        yield cast("dict[str, Any]", item)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
