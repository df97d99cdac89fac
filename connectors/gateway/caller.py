"""Who calls: rollout and attempt from the URL or the headers, the trace, and whether the call is training traffic."""

import uuid
from collections.abc import Mapping
from urllib.parse import unquote

import msgspec

from headrace.connectors.gateway.errors import BAD_REQUEST, NOT_FOUND, CallError
from headrace.streams.agent.clients import MODE_HEADER
from headrace.streams.kafka.partitioner import MAX_ID_LENGTH, SEGMENT_MARK
from headrace.streams.tracecontext import TraceParent, attempt_trace_id, parse_traceparent

ROLLOUT_HEADER = "x-rollout-id"
ATTEMPT_HEADER = "x-attempt-id"
SESSION_HEADER = "x-session-id"
ANSWER_ROLLOUT_HEADER = "x-headrace-rollout-id"
RETRY_HEADER = "x-stainless-retry-count"
MODES = ("train", "val", "test")
_ROLLOUT_PARTS = 5  # "", "rollout", ID, "attempt", ID and the rest


class Caller(msgspec.Struct, gc=False, frozen=True):
    """The caller of one request.

    Attributes:
        attempt_id: None for outside traffic that names none.
        mode: train, val or test; None for outside traffic that does not say.
    """

    rollout_id: str
    attempt_id: str | None
    session_id: str | None
    mode: str | None
    trace_id: str
    parent_id: str | None
    retry_count: int


def split_path(path: str) -> tuple[str | None, str | None, str]:
    """(rollout_id, attempt_id, rest) of `/rollout/{id}/attempt/{id}/v1/...`; (None, None, path) of any other path.

    Args:
        path: the path as it was sent, percent-encoded.

    Raises:
        CallError: 404 where it begins like a rollout's path and is none.
    """
    if not path.startswith("/rollout/"):
        return None, None, path
    parts = path.split("/", _ROLLOUT_PARTS)
    if len(parts) <= _ROLLOUT_PARTS or parts[3] != "attempt" or not parts[2] or not parts[4]:
        raise CallError(NOT_FOUND, "not_found", f"no such path: {path}; use /rollout/ID/attempt/ID/v1/chat/completions")
    return unquote(parts[2]), unquote(parts[4]), "/" + parts[5]


def identify(rollout_id: str | None, attempt_id: str | None, headers: Mapping[str, str]) -> Caller:
    """The caller of a request.

    A rollout in the URL is a runner's and counts as training traffic unless `x-headrace-mode` says otherwise. All
    other traffic is from outside: its rollout is `x-rollout-id`, else the trace of `traceparent`, else a new one.

    Raises:
        CallError: 400 for an id or a mode that cannot be.
    """
    get = headers.get
    mode = get(MODE_HEADER)
    if mode is not None and mode not in MODES:
        raise CallError(BAD_REQUEST, "invalid_mode", f"{MODE_HEADER} is {mode!r}; it is one of {', '.join(MODES)}")
    parent: TraceParent | None = parse_traceparent(get("traceparent"))
    if rollout_id is not None:
        mode = mode or "train"
    else:
        rollout_id, attempt_id = get(ROLLOUT_HEADER), get(ATTEMPT_HEADER)
        if rollout_id is None:
            rollout_id = parent.trace_id if parent else uuid.uuid4().hex
    _check(rollout_id, "rollout id")
    if attempt_id is not None:
        _check(attempt_id, "attempt id")
    if (session_id := get(SESSION_HEADER)) is not None:
        _check(session_id, "session id", allowed=SEGMENT_MARK)
    return Caller(
        rollout_id,
        attempt_id,
        session_id,
        mode,
        parent.trace_id if parent else attempt_trace_id(rollout_id, attempt_id),
        parent.span_id if parent else None,
        _count(get(RETRY_HEADER)),
    )


def _check(value: str, what: str, allowed: str = "") -> None:
    marked = SEGMENT_MARK in value and SEGMENT_MARK not in allowed
    if not 0 < len(value) <= MAX_ID_LENGTH or marked or not value.isprintable():
        raise CallError(
            BAD_REQUEST,
            "invalid_id",
            f"{value[:80]!r} is no {what}: 1 to {MAX_ID_LENGTH} printable characters without {SEGMENT_MARK!r}",
        )


def _count(value: str | None) -> int:
    return int(value) if value is not None and value.isdecimal() and len(value) < 6 else 0
