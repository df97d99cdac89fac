"""An OTLP span as a Span record. Source: opentelemetry-proto, trace/v1/trace.proto."""

from typing import Any, NamedTuple

import msgspec
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from headrace.connectors.otlp.values import plain_map
from headrace.schemas.records import Span, SpanStatus
from headrace.streams.kafka.partitioner import MAX_ID_LENGTH, SEGMENT_MARK
from headrace.streams.session_ids import SESSION_KEYS

ROLLOUT_KEYS = ("agentlightning.rollout_id", "headrace.rollout_id")
ATTEMPT_KEYS = ("agentlightning.attempt_id", "headrace.attempt_id")
SEQUENCE_KEYS = ("agentlightning.span_sequence_id", "headrace.sequence")
ID_KEYS = frozenset({*ROLLOUT_KEYS, *ATTEMPT_KEYS, *SEQUENCE_KEYS, *SESSION_KEYS})
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUSES = ("UNSET", "OK", "ERROR")
TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8
NO_TRACE, NO_SPAN = bytes(TRACE_ID_BYTES), bytes(SPAN_ID_BYTES)
# 1973-03-03 in nanoseconds, the year 5138 in microseconds: no time of these years in another unit is above.
EARLIEST = 100_000_000_000_000_000
LATEST = 2**63 - 1
_encode = msgspec.json.Encoder().encode


class Malformed(ValueError):
    """A span that breaks the protocol; the message says how."""


class Caller(msgspec.Struct, frozen=True):
    """What the headers of a request say of its spans that say nothing themselves."""

    rollout_id: str | None = None
    attempt_id: str | None = None
    session_id: str | None = None


NOBODY = Caller()


class Ids(NamedTuple):
    """What attributes say of where a span belongs."""

    rollout_id: str | None = None
    attempt_id: str | None = None
    session_id: str | None = None
    sequence: int | None = None


NO_IDS = Ids()


class Source(NamedTuple):
    """What the spans of one resource have in common.

    Attributes:
        ids: what its attributes say.
        text: its attributes as JSON text.
        rest: what else it says.
    """

    ids: Ids
    text: str
    rest: dict[str, Any]


def read_source(resource: Resource, schema_url: str) -> Source:
    """What a resource says."""
    attributes = plain_map(resource.attributes)
    rest: dict[str, Any] = {}
    if schema_url:
        rest["schema_url"] = schema_url
    if resource.dropped_attributes_count:
        rest["dropped_attributes_count"] = resource.dropped_attributes_count
    if resource.entity_refs:
        rest["entity_refs"] = [
            {
                "schema_url": entity.schema_url,
                "type": entity.type,
                "id_keys": list(entity.id_keys),
                "description_keys": list(entity.description_keys),
            }
            for entity in resource.entity_refs
        ]
    return Source(ids_of(attributes), _text(attributes), rest)


def read_scope(scope: InstrumentationScope, schema_url: str) -> str:
    """An instrumentation scope as JSON text."""
    found: dict[str, Any] = {
        "name": scope.name,
        "version": scope.version,
        "attributes": plain_map(scope.attributes),
        "dropped_attributes_count": scope.dropped_attributes_count,
        "schema_url": schema_url,
    }
    return _text({key: value for key, value in found.items() if value})


def read_span(
    message: OtlpSpan, attributes: dict[str, Any], source: Source, scope: str, caller: Caller = NOBODY
) -> Span:
    """The record of a span.

    Its rollout is the one that it names, else its resource, else the caller; else its trace is a rollout of its own.

    Args:
        attributes: the span's own, as JSON.

    Raises:
        Malformed: it breaks the protocol.
    """
    trace, span, parent = message.trace_id, message.span_id, message.parent_span_id
    if len(trace) != TRACE_ID_BYTES or trace == NO_TRACE:
        raise Malformed("trace_id must be 16 bytes that are not all zero")
    if len(span) != SPAN_ID_BYTES or span == NO_SPAN:
        raise Malformed("span_id must be 8 bytes that are not all zero")
    if len(parent) not in (0, SPAN_ID_BYTES):
        raise Malformed("parent_span_id must be 8 bytes or none")
    start, end = message.start_time_unix_nano, message.end_time_unix_nano
    if not EARLIEST <= start <= end <= LATEST:
        raise Malformed(_about_times(start, end))
    trace_id = trace.hex()
    ids = ids_of(attributes, source.ids)
    rollout_id, attempt_id = ids.rollout_id or caller.rollout_id, ids.attempt_id
    if attempt_id is None and rollout_id is not None and rollout_id == caller.rollout_id:
        attempt_id = caller.attempt_id
    if rollout_id is not None:
        check_id(rollout_id, "rollout id")
    if attempt_id is not None:
        check_id(attempt_id, "attempt id")
    kind, status = message.kind, message.status
    return Span(
        rollout_id=rollout_id or trace_id,
        attempt_id=attempt_id,
        session_id=ids.session_id or caller.session_id,
        sequence=ids.sequence,
        source="otlp",
        trace_id=trace_id,
        span_id=span.hex(),
        parent_id=parent.hex() if parent and parent != NO_SPAN else None,
        name=message.name,
        kind=KINDS[kind] if 0 <= kind < len(KINDS) else KINDS[0],
        status=SpanStatus(
            code=STATUSES[status.code] if 0 <= status.code < len(STATUSES) else STATUSES[0], message=status.message
        ),
        start=start,
        end=end,
        attributes=_text(attributes),
        events=_text([_event(event) for event in message.events]) if message.events else "[]",
        links=_text([_link(link) for link in message.links]) if message.links else "[]",
        resource=source.text,
        scope=scope,
        rest=_rest(message, source),
    )


def check_id(value: str, what: str) -> None:
    """Checks an id that comes from outside.

    Raises:
        Malformed: it is none.
    """
    if not 0 < len(value) <= MAX_ID_LENGTH or SEGMENT_MARK in value or not value.isprintable():
        raise Malformed(
            f"{value[:80]!r} is no {what}: 1 to {MAX_ID_LENGTH} printable characters without {SEGMENT_MARK!r}"
        )


def ids_of(attributes: dict[str, Any], otherwise: Ids = NO_IDS) -> Ids:
    """What attributes say of where a span belongs, each thing else as `otherwise` says."""
    if ID_KEYS.isdisjoint(attributes):
        return otherwise
    sequence = _whole(_identity(SEQUENCE_KEYS, attributes))
    return Ids(
        _identity(ROLLOUT_KEYS, attributes) or otherwise.rollout_id,
        _identity(ATTEMPT_KEYS, attributes) or otherwise.attempt_id,
        _identity(SESSION_KEYS, attributes) or otherwise.session_id,
        sequence if sequence is not None else otherwise.sequence,
    )


def _about_times(start: int, end: int) -> str:
    if not start or not end:
        return "a finished span has a start and an end time"
    if start < EARLIEST or end < EARLIEST:
        return f"times are nanoseconds since 1970; {min(start, end)} is none of this time: is it in another unit?"
    if end < start:
        return f"it ends before it starts, by {start - end} ns"
    return "times are nanoseconds since 1970, below 2^63"


def _event(event: OtlpSpan.Event) -> dict[str, Any]:
    found = {"name": event.name, "time": event.time_unix_nano, "attributes": plain_map(event.attributes)}
    if event.dropped_attributes_count:
        found["dropped_attributes_count"] = event.dropped_attributes_count
    return found


def _link(link: OtlpSpan.Link) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trace_id": link.trace_id.hex(),
        "span_id": link.span_id.hex(),
        "attributes": plain_map(link.attributes),
    }
    if link.trace_state:
        found["trace_state"] = link.trace_state
    if link.flags:
        found["flags"] = link.flags
    if link.dropped_attributes_count:
        found["dropped_attributes_count"] = link.dropped_attributes_count
    return found


def _rest(message: OtlpSpan, source: Source) -> str:
    found: dict[str, Any] = {}
    if message.flags:
        found["flags"] = message.flags
    if message.trace_state:
        found["trace_state"] = message.trace_state
    if message.dropped_attributes_count:
        found["dropped_attributes_count"] = message.dropped_attributes_count
    if message.dropped_events_count:
        found["dropped_events_count"] = message.dropped_events_count
    if message.dropped_links_count:
        found["dropped_links_count"] = message.dropped_links_count
    if not 0 <= message.kind < len(KINDS):
        found["kind"] = message.kind
    if not 0 <= message.status.code < len(STATUSES):
        found["status_code"] = message.status.code
    if source.rest:
        found["resource"] = source.rest
    return _text(found) if found else "{}"


def _identity(keys: tuple[str, ...], attributes: dict[str, Any]) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if value is not None and value != "":
            return value if isinstance(value, str) else str(value)
    return None


def _whole(text: str | None) -> int | None:
    try:
        number = int(text) if text is not None else None
    except ValueError:
        return None
    return number if number is None or abs(number) <= LATEST else None


def _text(value: Any) -> str:
    return _encode(value).decode()
