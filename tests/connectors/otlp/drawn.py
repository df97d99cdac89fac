"""Export requests for tests: random ones that hypothesis draws, and the same as OTLP/JSON."""

import base64
import json
from typing import Any

from google.protobuf.json_format import MessageToDict
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    EntityRef,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

START = 1_767_225_600_000_000_000
IDS = ("traceId", "spanId", "parentSpanId")

texts = st.text(max_size=12)
counts = st.integers(0, 2**32 - 1)
doubles = st.floats(allow_nan=False) | st.just(float("nan"))
keys = st.sampled_from(["bytesValue", "doubleValue", "kvlistValue", "gen_ai.operation.name", "llm.x"]) | texts
leaves = (
    st.builds(AnyValue, string_value=texts)
    | st.builds(AnyValue, bool_value=st.booleans())
    | st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1))
    | st.builds(AnyValue, double_value=doubles)
    | st.builds(AnyValue, bytes_value=st.binary(max_size=12))
    | st.builds(AnyValue)
)


def pairs_of(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    """Attributes whose keys differ, as OTLP demands."""
    drawn = st.dictionaries(keys, values, max_size=4)
    return drawn.map(lambda found: [KeyValue(key=key, value=value) for key, value in found.items()])


def nested(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[AnyValue]:
    lists = st.lists(values, max_size=3).map(lambda found: AnyValue(array_value=ArrayValue(values=found)))
    return lists | pairs_of(values).map(lambda found: AnyValue(kvlist_value=KeyValueList(values=found)))


attributes = pairs_of(st.recursive(leaves, nested, max_leaves=6))
trace_ids = st.binary(min_size=16, max_size=16).filter(any)
span_ids = st.binary(min_size=8, max_size=8).filter(any)
events = st.builds(
    Span.Event,
    name=texts,
    time_unix_nano=st.integers(0, 2**64 - 1),
    attributes=attributes,
    dropped_attributes_count=counts,
)
links = st.builds(
    Span.Link,
    trace_id=st.binary(max_size=16),
    span_id=st.binary(max_size=8),
    trace_state=texts,
    attributes=attributes,
    dropped_attributes_count=counts,
    flags=counts,
)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """A well-formed span with anything in it."""
    start = draw(st.integers(START, 2**63 - 1))
    return Span(
        trace_id=draw(trace_ids),
        span_id=draw(span_ids),
        parent_span_id=draw(st.just(b"") | span_ids),
        trace_state=draw(texts),
        flags=draw(counts),
        name=draw(texts),
        kind=draw(st.sampled_from([*range(6), 17])),  # type: ignore[arg-type]
        start_time_unix_nano=start,
        end_time_unix_nano=draw(st.integers(start, 2**63 - 1)),
        attributes=draw(attributes),
        events=draw(st.lists(events, max_size=2)),
        links=draw(st.lists(links, max_size=2)),
        dropped_attributes_count=draw(counts),
        dropped_events_count=draw(counts),
        dropped_links_count=draw(counts),
        status=Status(code=draw(st.sampled_from([0, 1, 2])), message=draw(texts)),  # type: ignore[arg-type]
    )


resources = st.builds(
    Resource,
    attributes=attributes,
    dropped_attributes_count=counts,
    entity_refs=st.lists(
        st.builds(EntityRef, schema_url=texts, type=texts, id_keys=st.lists(texts, max_size=2)), max_size=1
    ),
)
scopes = st.builds(
    InstrumentationScope, name=texts, version=texts, attributes=attributes, dropped_attributes_count=counts
)
scope_spans = st.builds(ScopeSpans, scope=scopes, schema_url=texts, spans=st.lists(spans(), max_size=2))
requests = st.builds(
    ExportTraceServiceRequest,
    resource_spans=st.lists(
        st.builds(ResourceSpans, resource=resources, schema_url=texts, scope_spans=st.lists(scope_spans, max_size=2)),
        max_size=2,
    ),
)


def flat(request: ExportTraceServiceRequest) -> list[bytes]:
    """The spans of a request, each with what it stands in, in an order of their own; an empty status is none."""
    return sorted(
        ExportTraceServiceRequest(
            resource_spans=[
                ResourceSpans(
                    resource=of_resource.resource,
                    schema_url=of_resource.schema_url,
                    scope_spans=[
                        ScopeSpans(scope=of_scope.scope, schema_url=of_scope.schema_url, spans=[_plain(span)])
                    ],
                )
            ]
        ).SerializeToString(deterministic=True)
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    )


def _plain(span: Span) -> Span:
    if not span.status.ByteSize():
        span.ClearField("status")
    return span


def otlp_json(request: ExportTraceServiceRequest) -> str:
    """A request as OTLP/JSON."""
    return json.dumps(_hexadecimal(MessageToDict(request, use_integers_for_enums=True)))


def _hexadecimal(value: Any) -> Any:
    if isinstance(value, list):
        return [_hexadecimal(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(inner).hex() if key in IDS and isinstance(inner, str) else _hexadecimal(inner)
        for key, inner in value.items()
    }
