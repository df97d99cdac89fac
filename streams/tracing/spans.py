"""A span of OpenTelemetry's SDK as a Span record. Pure."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from headrace.schemas.records import Span, SpanStatus
from headrace.streams.agent.emit import json_text
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.session_ids import SESSION_KEYS

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

SOURCE = "runner"


def span_record(span: "ReadableSpan", rollout: Rollout, sequence: int | None) -> Span:
    """The record of a finished span.

    Args:
        sequence: its place in the attempt.

    Raises:
        ValueError: it has no ids or no times, so it is no finished span.
    """
    context = span.get_span_context()
    if context is None or span.start_time is None or span.end_time is None:
        raise ValueError(f"span {span.name!r} is not finished")
    attributes = _plain(span.attributes or {})
    return Span(
        rollout_id=rollout.rollout_id,
        attempt_id=rollout.attempt_id,
        session_id=next((v for key in SESSION_KEYS if isinstance(v := attributes.get(key), str) and v), None),
        sequence=sequence,
        source=SOURCE,
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=f"{span.parent.span_id:016x}" if span.parent is not None else None,
        name=_text(span.name),
        kind=span.kind.name,
        status=SpanStatus(code=span.status.status_code.name, message=_text(span.status.description or "")),
        start=span.start_time,
        end=span.end_time,
        attributes=json_text(attributes) if attributes else "{}",
        events=json_text([_event(event) for event in span.events]) if span.events else "[]",
        links=json_text([_link(link) for link in span.links]) if span.links else "[]",
        resource=json_text(_plain(span.resource.attributes)),
        scope=_scope(span.instrumentation_scope),
    )


def _event(event: Any) -> dict[str, Any]:
    return {"name": event.name, "time": event.timestamp, "attributes": _plain(event.attributes or {})}


def _link(link: Any) -> dict[str, Any]:
    return {
        "trace_id": f"{link.context.trace_id:032x}",
        "span_id": f"{link.context.span_id:016x}",
        "attributes": _plain(link.attributes or {}),
    }


def _scope(scope: Any) -> str:
    if scope is None:
        return "{}"
    found = {"name": scope.name, "version": scope.version, "attributes": _plain(scope.attributes or {})}
    return json_text({key: value for key, value in found.items() if value})


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _value(value) for key, value in attributes.items()}


def _value(value: Any) -> Any:
    """As JSON; bytes in OTLP's AnyValue form."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in cast("list[Any]", value)]
    return str(value)


def _text(text: str) -> str:
    """What UTF-8 has not (half a surrogate pair) is escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
