"""Export requests taken apart without reading what stands in them, so that one broken span costs no other.

protobuf refuses a whole message for one string that is no UTF-8. The messages here have the field numbers of
opentelemetry-proto's trace service, but bytes where resources, scopes and spans stand, so that each is read by itself.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "headrace.otlp"
MESSAGES: dict[str, tuple[tuple[str, int, bool], ...]] = {
    # message: its fields with their numbers, and whether they are repeated
    "Request": (("resource_spans", 1, True),),
    "ResourceSpans": (("resource", 1, False), ("scope_spans", 2, True), ("schema_url", 3, False)),
    "ScopeSpans": (("scope", 1, False), ("spans", 2, True), ("schema_url", 3, False)),
}


class RawSpan(NamedTuple):
    """A span with what it stands in, each as the bytes that came. Spans of one resource share the same objects.

    Attributes:
        readable: else `span` is a part of the request that cannot even be taken apart.
    """

    resource: bytes
    resource_schema: bytes
    scope: bytes
    scope_schema: bytes
    span: bytes
    readable: bool = True


@cache
def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="headrace/otlp/envelope.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, repeated in fields:
            label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=FieldDescriptorProto.TYPE_BYTES, label=label)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


def split(body: bytes) -> Iterator[RawSpan]:
    """The spans of an ExportTraceServiceRequest.

    Raises:
        DecodeError: the body is no protobuf message with these fields.
    """
    classes = _classes()
    for raw_resource_spans in classes["Request"].FromString(body).resource_spans:
        try:
            resource_spans = classes["ResourceSpans"].FromString(raw_resource_spans)
        except DecodeError:
            yield RawSpan(b"", b"", b"", b"", raw_resource_spans, readable=False)
            continue
        resource, resource_schema = resource_spans.resource, resource_spans.schema_url
        for raw_scope_spans in resource_spans.scope_spans:
            try:
                scope_spans = classes["ScopeSpans"].FromString(raw_scope_spans)
            except DecodeError:
                yield RawSpan(resource, resource_schema, b"", b"", raw_scope_spans, readable=False)
                continue
            scope, scope_schema = scope_spans.scope, scope_spans.schema_url
            for span in scope_spans.spans:
                yield RawSpan(resource, resource_schema, scope, scope_schema, span)


def join(spans: Sequence[RawSpan]) -> bytes:
    """An export request of some spans, with their bytes as they are; neighbours share what they stand in."""
    classes = _classes()
    request = classes["Request"]()
    for (resource, resource_schema), of_resource in groupby(spans, lambda s: (s.resource, s.resource_schema)):
        resource_spans = classes["ResourceSpans"](resource=resource, schema_url=resource_schema)
        for (scope, scope_schema), of_scope in groupby(of_resource, lambda s: (s.scope, s.scope_schema)):
            scope_spans = classes["ScopeSpans"](
                scope=scope, spans=[raw.span for raw in of_scope], schema_url=scope_schema
            )
            resource_spans.scope_spans.append(scope_spans.SerializeToString())
        request.resource_spans.append(resource_spans.SerializeToString())
    return request.SerializeToString()
