"""Who calls: rollout and attempt from the URL or the headers, the trace, and whether the call is training traffic."""

import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from urllib.parse import unquote

import msgspec

from headrace.connectors.gateway.errors import BAD_REQUEST, NOT_FOUND, CallError
from headrace.connectors.gateway.keys.guard import ANYBODY, Grant
from headrace.streams.agent.clients import MODE_HEADER
from headrace.streams.kafka.partitioner import MAX_ID_LENGTH, SEGMENT_MARK
from headrace.streams.tracecontext import TraceParent, attempt_trace_id, parse_traceparent

ROLLOUT_HEADER = "x-rollout-id"
ATTEMPT_HEADER = "x-attempt-id"
SESSION_HEADERS = ("x-session-id", "x-headrace-session")
TRAIN_HEADER = "x-headrace-train"
TOKEN_IN_HEADER = "x-headrace-token-in"
ANSWER_ROLLOUT_HEADER = "x-headrace-rollout-id"
RETRY_HEADER = "x-stainless-retry-count"
MODES = ("train", "val", "test")
REMEMBERED_TRACES = 65_536  # some 15 MB
_ROLLOUT_PARTS = 5  # "", "rollout", ID, "attempt", ID and the rest


class Caller(msgspec.Struct, gc=False, frozen=True):
    """The caller of one request.

    Attributes:
        attempt_id: None for outside traffic that names none.
        mode: train, val or test; None for outside traffic that does not say.
        train: whether the call may be trained on.
        recorded: whether it has a span; outside traffic may be sampled.
        key_id: of the key that let it in.
        token_in: whether it asks for token-in continuation; None where it does not say.
    """

    rollout_id: str
    attempt_id: str | None
    session_id: str | None
    mode: str | None
    trace_id: str
    parent_id: str | None
    retry_count: int
    train: bool = True
    recorded: bool = True
    key_id: str | None = None
    token_in: bool | None = None


class Traces:
    """Which rollout the calls of a trace went to, for the latest traces: a trace is never split over two rollouts."""

    def __init__(self, size: int = REMEMBERED_TRACES) -> None:
        self._size = size
        self._rollouts: OrderedDict[str, str] = OrderedDict()

    def rollout(self, trace_id: str) -> str | None:
        """The rollout of a trace; None where it is new or long ago."""
        return self._rollouts.get(trace_id)

    def remember(self, trace_id: str, rollout_id: str) -> None:
        """The trace is in the rollout, whatever comes."""
        if self._rollouts.get(trace_id) != rollout_id:
            self._rollouts[trace_id] = rollout_id
        self._rollouts.move_to_end(trace_id)
        if len(self._rollouts) > self._size:
            self._rollouts.popitem(last=False)


class Outside(msgspec.Struct, frozen=True):
    """How outside traffic becomes rollouts.

    Attributes:
        by_session: a session is a rollout; else a trace is.
        session_headers: the first that is there names the session.
        sample: the part of the rollouts that is recorded, 0 to 1.
    """

    by_session: bool = False
    session_headers: tuple[str, ...] = SESSION_HEADERS
    sample: float = 1.0
    traces: Traces = msgspec.field(default_factory=Traces)


BY_TRACE = Outside()


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


def identify(
    rollout_id: str | None,
    attempt_id: str | None,
    headers: Mapping[str, str],
    outside: Outside = BY_TRACE,
    grant: Grant = ANYBODY,
) -> Caller:
    """The caller of a request.

    A rollout in the URL is a runner's and counts as training traffic unless `x-headrace-mode` says otherwise. All
    other traffic is from outside: its rollout is `x-rollout-id`, else that of the trace of `traceparent`, else by
    `outside` its session or its trace; without any of them the call is a rollout of its own.

    Args:
        rollout_id, attempt_id: of the URL.

    Raises:
        CallError: 400 for an id or a header that cannot be.
    """
    get = headers.get
    mode = get(MODE_HEADER)
    if mode is not None and mode not in MODES:
        raise CallError(BAD_REQUEST, "invalid_mode", f"{MODE_HEADER} is {mode!r}; it is one of {', '.join(MODES)}")
    train = grant.train and _flag(get, TRAIN_HEADER, "invalid_train") is not False
    token_in = _flag(get, TOKEN_IN_HEADER, "invalid_token_in")
    parent: TraceParent | None = parse_traceparent(get("traceparent"))
    session_id = next((value for name in outside.session_headers if (value := get(name)) is not None), None)
    if session_id is not None:
        _check(session_id, "session id", allowed=SEGMENT_MARK)
    trace_id = parent.trace_id if parent is not None else None
    recorded = True
    if rollout_id is not None:
        mode = mode or "train"
    else:
        rollout_id, attempt_id = get(ROLLOUT_HEADER), get(ATTEMPT_HEADER)
        if attempt_id is None:
            trace_id = trace_id or uuid.uuid4().hex  # a trace that has closed opens no segment
            rollout_id = rollout_id or _rollout_of(trace_id, session_id, outside)
            if parent is not None:
                outside.traces.remember(trace_id, rollout_id)
            recorded = mode is not None or _is_sampled(rollout_id, outside.sample)
        elif rollout_id is None:
            rollout_id = trace_id or uuid.uuid4().hex
    _check(rollout_id, "rollout id")
    if attempt_id is not None:
        _check(attempt_id, "attempt id")
    return Caller(
        rollout_id,
        attempt_id,
        session_id,
        mode if train or mode != "train" else None,  # sampled as asked
        trace_id or attempt_trace_id(rollout_id, attempt_id),
        parent.span_id if parent else None,
        _count(get(RETRY_HEADER)),
        train,
        recorded,
        grant.key_id,
        token_in,
    )


def _rollout_of(trace_id: str, session_id: str | None, outside: Outside) -> str:
    if (known := outside.traces.rollout(trace_id)) is not None:
        return known
    return session_id if outside.by_session and session_id is not None else trace_id


def _is_sampled(rollout_id: str, sample: float) -> bool:
    """By the id alone: a session is recorded as a whole or not at all, by every gateway alike."""
    if sample >= 1:
        return True
    number = int.from_bytes(blake2b(rollout_id.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return number < sample * 2**64


def _flag(get: Callable[[str], str | None], name: str, code: str) -> bool | None:
    value = get(name)
    if value is None:
        return None
    if value.lower() in ("yes", "true", "1"):
        return True
    if value.lower() in ("no", "false", "0"):
        return False
    raise CallError(BAD_REQUEST, code, f"{name} is {value[:80]!r}; it is yes or no")


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
