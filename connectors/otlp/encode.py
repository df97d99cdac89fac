"""Span records as an export request of OTLP: the inverse of `decode`, and what gateway and runners have written."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import EntityRef, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from headrace.connectors.otlp.record import ATTEMPT_KEYS, KINDS, ROLLOUT_KEYS, STATUSES
from headrace.connectors.otlp.values import key_values
from headrace.schemas.records import Span

OWN_SOURCE = "otlp"
_decode: Any = msgspec.json.Decoder().decode
Rest = dict[str, Any]


def encode_spans(spans: Iterable[Span]) -> ExportTraceServiceRequest:
    """An export request of spans, grouped by resource and scope.

    Spans that came by OTLP go out as they came. Others also say their rollout and attempt, as `headrace.rollout_id`
    and `headrace.attempt_id`; the bodies and token ids of model calls stay in the log.
    """
    request = ExportTraceServiceRequest()
    by_resource: dict[tuple[str, str], ResourceSpans] = {}
    by_scope: dict[tuple[str, str, str], ScopeSpans] = {}
    for span in spans:
        rest: Rest = _decode(span.rest) if span.rest != "{}" else {}
        of_resource = _canonical(rest.get("resource"))
        resource_key = (span.resource, of_resource)
        resource_spans = by_resource.get(resource_key)
        if resource_spans is None:
            resource_spans = by_resource[resource_key] = request.resource_spans.add()
            _fill_resource(resource_spans, _mapping(span.resource), rest.get("resource") or {})
        scope_key = (*resource_key, span.scope)
        scope_spans = by_scope.get(scope_key)
        if scope_spans is None:
            scope_spans = by_scope[scope_key] = resource_spans.scope_spans.add()
            _fill_scope(scope_spans, _mapping(span.scope))
        scope_spans.spans.append(_span(span, rest))
    return request


def _fill_resource(target: ResourceSpans, attributes: dict[str, Any], rest: Rest) -> None:
    target.resource.CopyFrom(
        Resource(
            attributes=key_values(attributes),
            dropped_attributes_count=rest.get("dropped_attributes_count", 0),
            entity_refs=[EntityRef(**entity) for entity in rest.get("entity_refs", [])],
        )
    )
    target.schema_url = rest.get("schema_url", "")


def _fill_scope(target: ScopeSpans, scope: dict[str, Any]) -> None:
    target.scope.CopyFrom(
        InstrumentationScope(
            name=scope.get("name", ""),
            version=scope.get("version", ""),
            attributes=key_values(scope.get("attributes") or {}),
            dropped_attributes_count=scope.get("dropped_attributes_count", 0),
        )
    )
    target.schema_url = scope.get("schema_url", "")


def _span(span: Span, rest: Rest) -> OtlpSpan:
    attributes = _mapping(span.attributes)
    if span.source != OWN_SOURCE:
        attributes = _with_ids(span, attributes)
    return OtlpSpan(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id) if span.parent_id else b"",
        trace_state=rest.get("trace_state", ""),
        flags=rest.get("flags", 0),
        name=span.name,
        kind=rest.get("kind", _index(KINDS, span.kind)),
        start_time_unix_nano=span.start,
        end_time_unix_nano=span.end,
        attributes=key_values(attributes),
        dropped_attributes_count=rest.get("dropped_attributes_count", 0),
        events=[_event(event) for event in _list(span.events)],
        dropped_events_count=rest.get("dropped_events_count", 0),
        links=[_link(link) for link in _list(span.links)],
        dropped_links_count=rest.get("dropped_links_count", 0),
        status=_status(span, rest),
    )


def _status(span: Span, rest: Rest) -> Status | None:
    code = rest.get("status_code", _index(STATUSES, span.status.code))
    return Status(code=code, message=span.status.message) if code or span.status.message else None


def _with_ids(span: Span, attributes: dict[str, Any]) -> dict[str, Any]:
    found = {ROLLOUT_KEYS[-1]: span.rollout_id, **attributes}
    if span.attempt_id is not None:
        found.setdefault(ATTEMPT_KEYS[-1], span.attempt_id)
    return found


def _event(event: Rest) -> OtlpSpan.Event:
    return OtlpSpan.Event(
        name=event.get("name", ""),
        time_unix_nano=event.get("time", 0),
        attributes=key_values(event.get("attributes") or {}),
        dropped_attributes_count=event.get("dropped_attributes_count", 0),
    )


def _link(link: Rest) -> OtlpSpan.Link:
    return OtlpSpan.Link(
        trace_id=bytes.fromhex(link.get("trace_id", "")),
        span_id=bytes.fromhex(link.get("span_id", "")),
        trace_state=link.get("trace_state", ""),
        flags=link.get("flags", 0),
        attributes=key_values(link.get("attributes") or {}),
        dropped_attributes_count=link.get("dropped_attributes_count", 0),
    )


def _canonical(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value else ""


def _index(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else 0


def _mapping(text: str) -> dict[str, Any]:
    value = _decode(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(text: str) -> list[Rest]:
    value: Any = _decode(text) if text != "[]" else []
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Rest", item) for item in items if isinstance(item, dict)]
