"""Refused spans as dead letters of the spans topic: each an export request that can be mended and sent again."""

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from headrace.connectors.otlp.decode import JsonSpan, Refused, json_bytes
from headrace.connectors.otlp.envelope import RawSpan, join
from headrace.streams.kafka.messages import Headers

ONE_BY_ONE = 100
"""So many refused spans of a request have a letter each, the rest of it has one: a small request makes no flood."""
NOWHERE = -1
PROTOBUF, JSON = "application/x-protobuf", "application/json"


class RefusedSpans:
    """Refused spans in the form of the message that they would have been: they never stood in a partition."""

    def __init__(self, topic: str, refused: Sequence[Refused], headers: Headers | None = None) -> None:
        self._topic = topic
        self.refused = refused
        content_type, self._value = request_of([r.raw for r in refused if r.raw is not None])
        self._headers: Headers = [*(headers or []), ("content-type", content_type)]

    @property
    def reason(self) -> str:
        """Why, in a word."""
        return self.refused[0].code

    @property
    def detail(self) -> str:
        """Why, in a sentence."""
        more = len(self.refused) - 1
        return self.refused[0].message + (f" (and {more} more)" if more else "")

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return NOWHERE

    def offset(self) -> int:
        return NOWHERE

    def key(self) -> bytes | None:
        rollout_id = self.refused[0].rollout_id
        return rollout_id.encode("utf-8", "surrogatepass") if rollout_id is not None else None

    def value(self) -> bytes:
        return self._value

    def headers(self) -> Any:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return 1, int(time.time() * 1000)

    def error(self) -> None:
        return None


def letters_of(topic: str, refused: Sequence[Refused], headers: Headers | None = None) -> Iterator[RefusedSpans]:
    """What becomes dead letters of a request."""
    for one in refused[:ONE_BY_ONE]:
        yield RefusedSpans(topic, [one], headers)
    if rest := refused[ONE_BY_ONE:]:
        yield RefusedSpans(topic, rest, headers)


def request_of(raw: Sequence[RawSpan | JsonSpan]) -> tuple[str, bytes]:
    """Content type and body of an export request of spans as they came. All of them are of one kind."""
    if raw and isinstance(raw[0], JsonSpan):
        return JSON, json_bytes({"resourceSpans": list(_resource_spans(cast("Sequence[JsonSpan]", raw)))})
    return PROTOBUF, join(cast("Sequence[RawSpan]", raw))


def _resource_spans(spans: Sequence[JsonSpan]) -> Iterator[dict[str, Any]]:
    for _, group in groupby(spans, lambda s: (id(s.resource), id(s.scope))):
        members = list(group)
        scope_spans = _with_schema(
            {"scope": members[0].scope, "spans": [s.span for s in members]}, members[0].scope_schema
        )
        yield _with_schema({"resource": members[0].resource, "scopeSpans": [scope_spans]}, members[0].resource_schema)


def _with_schema(fields: dict[str, Any], schema_url: Any) -> dict[str, Any]:
    present = {key: value for key, value in fields.items() if value is not None}
    return {**present, "schemaUrl": schema_url} if schema_url is not None else present
