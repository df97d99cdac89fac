"""Emitters: what an agent says about its work while it runs.

Span names and attributes are Agent Lightning's, so that its tools read them; exceptions carry OpenTelemetry's
`exception.*` attributes.
"""

import json
import math
import secrets
import time
import traceback
from collections.abc import Mapping
from typing import Any, cast

from headrace.schemas.records import Reward, Span, SpanStatus
from headrace.streams.agent.numbers import reward_number
from headrace.streams.agent.tracer import AttemptTracer, Sent, current_tracer
from headrace.streams.kafka.clock import wall_us

MESSAGE_SPAN = "agentlightning.message"
OBJECT_SPAN = "agentlightning.object"
EXCEPTION_SPAN = "agentlightning.exception"
ANNOTATION_SPAN = "agentlightning.annotation"
REWARD_SPAN = "agentlightning.reward"
SEQUENCE = "sequence"  # in a reward's metadata: its place among the spans, as the assembler reads it
SCOPE = '{"name":"headrace"}'
RETURNED = "return"


def emit_reward(
    value: Any,
    *,
    name: str = "",
    primary_key: str | None = None,
    span_id: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Sent:
    """Writes a reward of the rollout, or of the call or step that `span_id` names.

    In a thread (a sync agent) it returns when the brokers have it; on the event loop, `await` the result for that. The
    next call through `llm.client()` and the end of the attempt wait for it in any case.

    Args:
        value: a number, or the dimensions as {name: number}.
        name: of a further dimension; the primary reward's is ''.
        primary_key: which of the dimensions is the primary reward. Required with a mapping.

    Raises:
        InvalidRewardError: None, NaN, infinite or not a number; nothing is written then.
        NoRolloutError: no rollout runs here.
    """
    tracer = current_tracer()
    number = tracer.next_number()
    told = {SEQUENCE: f"{number}", **(metadata or {})}
    rewards = [
        _reward(tracer, f"{number}", dimension, primary, figure, span_id, told)
        for dimension, primary, figure in _dimensions(value, name, primary_key)
    ]
    return tracer.emit(rewards[0].reward_id, [*rewards], after_traced=True)


def returned_reward(tracer: AttemptTracer, value: Any) -> Reward:
    """The reward that an agent returned; there is one at most of an attempt."""
    return _reward(tracer, RETURNED, "", True, reward_number(value, "what an agent returns"), None, None)


def _dimensions(value: Any, name: str, primary_key: str | None) -> list[tuple[str, bool, float]]:
    if not isinstance(value, Mapping):
        return [(name, name == "", reward_number(value))]
    values: dict[Any, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
    if primary_key not in values:
        raise ValueError(f"primary_key={primary_key!r}: name one of the dimensions {sorted(map(str, values))}")
    ordered = [primary_key, *(key for key in values if key != primary_key)]
    return [(str(key), key == primary_key, reward_number(values[key], f"reward {key!r}")) for key in ordered]


def _reward(
    tracer: AttemptTracer,
    number: str,
    name: str,
    primary: bool,
    value: float,
    span_id: str | None,
    metadata: Mapping[str, str] | None,
) -> Reward:
    attempt_id = tracer.rollout.attempt_id
    return Reward(
        rollout_id=tracer.rollout.rollout_id,
        attempt_id=attempt_id,
        reward_id=f"{attempt_id}/{number}/{name}" if name else f"{attempt_id}/{number}",
        name=name,
        primary=primary,
        value=value,
        span_id=span_id,
        source="agent",
        at=wall_us(),
        metadata={str(k): str(v) for k, v in metadata.items()} if metadata else {},
    )


def emit_message(message: str, attributes: Mapping[str, Any] | None = None) -> Sent:
    """Writes a message as a span.

    Raises:
        TypeError: it is no text.
    """
    if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users' code is not always typed
        raise TypeError(f"a message is text, not {type(message).__name__}; emit_object takes JSON values")
    return emit_span(MESSAGE_SPAN, {"message": message, **(attributes or {})})


def emit_object(value: Any, attributes: Mapping[str, Any] | None = None) -> Sent:
    """Writes a JSON value as a span.

    Raises:
        TypeError: JSON cannot hold it.
    """
    return emit_span(OBJECT_SPAN, {"object": json_text(value), **(attributes or {})})


def emit_exception(error: BaseException, attributes: Mapping[str, Any] | None = None) -> Sent:
    """Writes an exception as a span; it does not fail the attempt.

    Raises:
        TypeError: it is no exception.
    """
    if not isinstance(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"an exception is expected, not {type(error).__name__}")
    event = exception_event(error)
    about = {**event["attributes"], "exception.escaped": True}
    return emit_span(EXCEPTION_SPAN, {**about, **(attributes or {})}, events=[event])


def emit_annotation(attributes: Mapping[str, Any]) -> Sent:
    """Writes attributes as a span of their own."""
    return emit_span(ANNOTATION_SPAN, dict(attributes))


def exception_event(error: BaseException) -> dict[str, Any]:
    """OpenTelemetry's `exception` event."""
    try:
        message, stack = str(error), "".join(traceback.format_exception(error))
    except Exception as second:  # its own __str__ raises: that it came is told all the same
        message = stack = f"it cannot be shown: {type(second).__name__}"
    about = {"exception.type": type_name(error), "exception.message": message, "exception.stacktrace": stack}
    return {"name": "exception", "time": time.time_ns(), "attributes": about}


def type_name(error: BaseException) -> str:
    """The qualified name of an exception's type."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def json_text(value: Any) -> str:
    """A value as JSON that UTF-8 can hold, NaN and the infinities in OTLP's form.

    Raises:
        TypeError: JSON cannot hold it.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        try:
            value = _finite(value)
        except RecursionError:
            raise TypeError("a value that contains itself is no JSON") from None
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value, allow_nan=False)
    return text


def _finite(value: Any) -> Any:
    """NaN and the infinities in OTLP's AnyValue form, since JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"doubleValue": {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]}
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast(list[Any], value)]
    return value


def emit_span(
    name: str,
    attributes: Mapping[str, Any],
    *,
    span_id: str | None = None,
    parent_id: str | None = None,
    start_ns: int | None = None,
    events: list[dict[str, Any]] | None = None,
    error: str | None = None,
) -> Sent:
    """Writes a span of the attempt that runs here, below the operation that runs here.

    Args:
        attributes: values of JSON's types, or sequences of them.
        parent_id: the span above it; the one that runs here if it is not given.
        start_ns: nanoseconds since the epoch; now if it is a point in time.
        error: the message of an ERROR status.
    """
    tracer = current_tracer()
    now = time.time_ns()
    span = Span(
        rollout_id=tracer.rollout.rollout_id,
        attempt_id=tracer.rollout.attempt_id,
        source="runner",
        trace_id=tracer.trace_id,
        span_id=span_id or secrets.token_hex(8),
        parent_id=parent_id or tracer.span_id,
        sequence=tracer.next_number(),
        name=name,
        status=SpanStatus() if error is None else SpanStatus(code="ERROR", message=error),
        start=now if start_ns is None else start_ns,
        end=now,
        attributes=json_text(attributes) if attributes else "{}",
        events=json_text(events) if events else "[]",
        scope=SCOPE,
    )
    return tracer.emit(span.span_id, [span])
