"""What comes in by OTLP goes out by OTLP as it came, through the Avro record."""

from hypothesis import given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace.connectors.otlp.decode import decode_json, decode_protobuf
from headrace.connectors.otlp.encode import encode_spans
from headrace.connectors.otlp.values import any_value
from headrace.schemas.records import Span, SpanStatus
from headrace.streams.codec import Codec
from headrace.streams.settings import Settings
from tests.connectors.otlp.drawn import flat, otlp_json, requests

CODEC = Codec(Settings())


def through_avro(span: Span) -> Span:
    record = CODEC.decode(CODEC.encode(span))
    assert isinstance(record, Span)
    return record


@settings(max_examples=30)
@given(requests)
def test_a_request_survives(request: ExportTraceServiceRequest):
    decoded = decode_protobuf(request.SerializeToString())
    assert decoded.malformed == []
    assert flat(encode_spans(map(through_avro, decoded.spans))) == flat(request)


@settings(max_examples=15)
@given(requests)
def test_json_says_the_same_as_protobuf(request: ExportTraceServiceRequest):
    assert decode_json(otlp_json(request)).spans == decode_protobuf(request.SerializeToString()).spans


def test_a_map_that_only_looks_like_a_form_stays_a_map():
    assert any_value({"bytesValue": "no base64!"}).kvlist_value.values[0].key == "bytesValue"


def test_spans_of_the_gateway_say_their_rollout():
    span = Span(
        rollout_id="ro",
        attempt_id="ro-1",
        source="gateway",
        trace_id="01" * 16,
        span_id="02" * 8,
        name="chat m",
        kind="CLIENT",
        status=SpanStatus(code="ERROR", message="broke"),
        start=1,
        end=2,
        attributes='{"gen_ai.operation.name":"chat"}',
        resource='{"service.name":"headrace-gateway"}',
        scope='{"name":"headrace"}',
    )
    [resource_spans] = encode_spans([span]).resource_spans
    [found] = resource_spans.scope_spans[0].spans
    assert {pair.key: pair.value.string_value for pair in found.attributes} == {
        "headrace.rollout_id": "ro",
        "headrace.attempt_id": "ro-1",
        "gen_ai.operation.name": "chat",
    }
    assert resource_spans.resource.attributes[0].value.string_value == "headrace-gateway"
    assert (found.kind, found.status.code, found.status.message) == (3, 2, "broke")
