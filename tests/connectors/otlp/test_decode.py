"""OTLP requests, in protobuf and in JSON, as records."""

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace.connectors.otlp.decode import MALFORMED, OtlpError, decode_json, decode_protobuf
from headrace.connectors.otlp.envelope import RawSpan, join
from headrace.connectors.otlp.record import Caller
from headrace.schemas.records import Span

TRACE, SPAN, PARENT = "0123456789abcdef0123456789abcdef", "00000000000000a1", "00000000000000b2"
START = 1_767_225_600_000_000_000


def request() -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    resource_spans = message.resource_spans.add()
    owner = resource_spans.resource.attributes.add(key="agentlightning.rollout_id")
    owner.value.string_value = "ro"
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "library"
    span = scope_spans.spans.add(
        trace_id=bytes.fromhex(TRACE),
        span_id=bytes.fromhex(SPAN),
        parent_span_id=bytes.fromhex(PARENT),
        name="chat m",
        kind=3,
        start_time_unix_nano=START,
        end_time_unix_nano=START + 1_000,
    )
    span.status.code = 2
    span.status.message = "broke"
    span.attributes.add(key="text").value.string_value = "ü"
    span.attributes.add(key="number").value.double_value = float("nan")
    span.attributes.add(key="whole").value.double_value = 1.0
    span.attributes.add(key="large").value.int_value = 2**62
    span.attributes.add(key="empty")
    span.attributes.add(key="raw").value.bytes_value = b"\x00\x01"
    ids = span.attributes.add(key="ids").value.array_value
    for number in (1, 2):
        ids.values.add().int_value = number
    span.attributes.add(key="agentlightning.attempt_id").value.string_value = "at/1"
    span.attributes.add(key="agentlightning.span_sequence_id").value.string_value = "7"
    span.events.add(name="chunk", time_unix_nano=START + 500)
    span.links.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(PARENT))
    return message


def as_json() -> str:
    """The request as OTLP/JSON writes it: hexadecimal ids, numbers as text or numbers."""
    attributes = [
        {"key": "text", "value": {"stringValue": "ü"}},
        {"key": "number", "value": {"doubleValue": "NaN"}},
        {"key": "whole", "value": {"doubleValue": 1}},
        {"key": "large", "value": {"intValue": str(2**62)}},
        {"key": "empty", "value": {}},
        {"key": "raw", "value": {"bytesValue": "AAE="}},
        {"key": "ids", "value": {"arrayValue": {"values": [{"intValue": 1}, {"intValue": "2"}]}}},
        {"key": "agentlightning.attempt_id", "value": {"stringValue": "at/1"}},
        {"key": "agentlightning.span_sequence_id", "value": {"stringValue": "7"}},
    ]
    span = {
        "traceId": TRACE.upper(),
        "spanId": SPAN,
        "parentSpanId": PARENT,
        "name": "chat m",
        "kind": 3,
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": START + 1_000,
        "attributes": attributes,
        "status": {"code": 2, "message": "broke"},
        "events": [{"name": "chunk", "timeUnixNano": str(START + 500)}],
        "links": [{"traceId": TRACE, "spanId": PARENT}],
        "aFieldOfTomorrow": 1,
    }
    owner = [{"key": "agentlightning.rollout_id", "value": {"stringValue": "ro"}}]
    scope_spans = [{"scope": {"name": "library"}, "spans": [span]}]
    return json.dumps({"resourceSpans": [{"resource": {"attributes": owner}, "scopeSpans": scope_spans}]})


def test_both_encodings_give_the_same_record():
    decoded = decode_protobuf(request().SerializeToString())
    assert decoded == decode_json(as_json())
    [span] = decoded.spans
    assert (span.rollout_id, span.attempt_id, span.sequence) == ("ro", "at/1", 7)
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE, SPAN, PARENT)
    assert (span.kind, span.status.code, span.status.message, span.source) == ("CLIENT", "ERROR", "broke", "otlp")
    assert json.loads(span.attributes) == {
        "text": "ü",
        "number": {"doubleValue": "NaN"},
        "whole": 1.0,
        "large": 2**62,
        "empty": None,
        "raw": {"bytesValue": "AAE="},
        "ids": [1, 2],
        "agentlightning.attempt_id": "at/1",
        "agentlightning.span_sequence_id": "7",
    }
    assert json.loads(span.events)[0]["time"] == START + 500
    assert json.loads(span.links)[0]["span_id"] == PARENT


def test_a_span_without_a_rollout_belongs_to_its_trace():
    message = request()
    del message.resource_spans[0].resource.attributes[:]
    [span] = decode_protobuf(message.SerializeToString()).spans
    assert span.rollout_id == TRACE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trace_id", b"short"),
        ("trace_id", bytes(16)),
        ("span_id", b""),
        ("parent_span_id", b"1"),
        ("end_time_unix_nano", 0),
        ("end_time_unix_nano", START - 1),
        ("start_time_unix_nano", 1_767_225_600),
        ("start_time_unix_nano", 1_767_225_600_000_000),
        ("end_time_unix_nano", 2**63),
    ],
)
def test_a_malformed_span_is_refused_alone(field: str, value: object):
    message = request()
    spans = message.resource_spans[0].scope_spans[0].spans
    bad = spans.add()
    bad.CopyFrom(spans[0])
    setattr(bad, field, value)
    decoded = decode_protobuf(message.SerializeToString())
    assert [type(span) for span in decoded.spans] == [Span]
    assert [refused.code for refused in decoded.refused] == [MALFORMED]
    raw = decoded.refused[0].raw
    assert isinstance(raw, RawSpan)
    assert raw.span == bad.SerializeToString()
    assert len(ExportTraceServiceRequest.FromString(join([raw])).resource_spans[0].scope_spans[0].spans) == 1


@pytest.mark.parametrize(
    "span",
    [
        1,
        {"traceId": "zz" * 16, "spanId": SPAN},
        {"traceId": 5, "spanId": SPAN},
        {"traceId": TRACE, "spanId": SPAN, "startTimeUnixNano": "soon"},
        {"traceId": TRACE, "spanId": SPAN, "attributes": 5},
        {"traceId": TRACE, "spanId": SPAN, "links": [1]},
        {"traceId": TRACE, "spanId": SPAN, "attributes": [{"key": "k", "value": {"stringValue": "\ud800"}}]},
        {"traceId": TRACE, "spanId": SPAN, "a name that is no text \ud800": 1},
        {"traceId": TRACE, "spanId": SPAN, "attributes": [{"\udcff": "k"}]},
    ],
)
def test_a_malformed_json_span_is_refused_alone(span: object):
    body = json.loads(as_json())
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].insert(0, span)
    decoded = decode_json(json.dumps(body))
    assert len(decoded.spans) == 1
    assert [(refused.code, refused.rollout_id) for refused in decoded.refused] == [(MALFORMED, "ro")]


@pytest.mark.parametrize("body", ["", "[", "[]", '{"resourceSpans": 5}', '{"resourceSpans": [5]}'])
def test_what_is_no_request_is_an_error(body: str):
    with pytest.raises(OtlpError):
        decode_json(body)


def test_bytes_that_are_no_request_are_an_error():
    with pytest.raises(OtlpError):
        decode_protobuf(b"\xff\xff\xff")


@pytest.mark.parametrize("body", [b"\x1a\x02ok", b'{"resourceLogs": []}'])
def test_what_holds_no_traces_is_an_error(body: bytes):
    with pytest.raises(OtlpError, match="no logs and no metrics"):
        decode_json(body) if body.startswith(b"{") else decode_protobuf(body)


@pytest.mark.parametrize("place", ["attributes", "name", "resource", "scope"])
def test_text_that_is_no_utf8_costs_its_own_spans_only(place: str):
    message = request()
    other = message.resource_spans.add()
    other.CopyFrom(message.resource_spans[0])
    broken, marker = message.resource_spans[0], "break-me"
    match place:
        case "attributes":
            broken.scope_spans[0].spans[0].attributes.add(key="x").value.string_value = marker
        case "name":
            broken.scope_spans[0].spans[0].name = marker
        case "resource":
            broken.resource.attributes.add(key="x").value.string_value = marker
        case _:
            broken.scope_spans[0].scope.version = marker
    body = message.SerializeToString().replace(marker.encode(), b"\xff" * len(marker))
    decoded = decode_protobuf(body)
    assert len(decoded.spans) == 1
    [refused] = decoded.refused
    assert isinstance(refused.raw, RawSpan)
    assert b"\xff" * len(marker) in join([refused.raw])
    as_text = as_json().replace("chat m", marker)
    both = json.loads(as_text)
    both["resourceSpans"] += json.loads(as_json())["resourceSpans"]
    decoded = decode_json(json.dumps(both).encode().replace(marker.encode(), b"\xff" * len(marker)))
    assert (len(decoded.spans), len(decoded.refused)) == (1, 1)


def test_headers_say_what_spans_do_not():
    message = request()
    caller = Caller("from-header", "attempt-of-header", "session")
    [named] = decode_protobuf(message.SerializeToString(), caller).spans
    assert (named.rollout_id, named.attempt_id, named.session_id) == ("ro", "at/1", "session")
    del message.resource_spans[0].resource.attributes[:]
    del message.resource_spans[0].scope_spans[0].spans[0].attributes[-2:]
    [span] = decode_protobuf(message.SerializeToString(), caller).spans
    assert (span.rollout_id, span.attempt_id) == ("from-header", "attempt-of-header")


def test_an_attempt_of_the_headers_belongs_to_their_rollout():
    message = request()
    del message.resource_spans[0].scope_spans[0].spans[0].attributes[-2:]
    [span] = decode_protobuf(message.SerializeToString(), Caller("other", "attempt-of-other")).spans
    assert (span.rollout_id, span.attempt_id) == ("ro", None)


@pytest.mark.parametrize("rollout_id", ["a~2", "x" * 513, "a\nb"])
def test_a_rollout_id_that_cannot_be_is_refused(rollout_id: str):
    message = request()
    message.resource_spans[0].resource.attributes[0].value.string_value = rollout_id
    decoded = decode_protobuf(message.SerializeToString())
    assert (len(decoded.spans), len(decoded.refused)) == (0, 1)
