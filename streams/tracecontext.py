"""Trace ids: W3C Trace Context, and the ids of a rollout's attempts, which every writer derives alike."""

import hashlib
import random
import re
from typing import NamedTuple

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
TRACE_BYTES = 16
SPAN_BITS = 64


class TraceParent(NamedTuple):
    """The caller's span, as 32 and 16 hex digits."""

    trace_id: str
    span_id: str


def parse_traceparent(value: str | None) -> TraceParent | None:
    """The caller's span; None where the header is missing or breaks the W3C Trace Context recommendation."""
    found = _TRACEPARENT.fullmatch(value) if value else None
    if found is None or (value and value.startswith("00") and found[3]):
        return None
    return TraceParent(found[1], found[2])


def format_traceparent(trace_id: str, span_id: str) -> str:
    """A sampled `traceparent`."""
    return f"00-{trace_id}-{span_id}-01"


def attempt_trace_id(rollout_id: str, attempt_id: str | None) -> str:
    """The trace of an attempt: all spans of it that know no other trace share this one."""
    text = rollout_id if attempt_id is None else f"{rollout_id}/{attempt_id}"
    return hashlib.blake2b(text.encode(), digest_size=TRACE_BYTES).hexdigest()


def new_span_id() -> str:
    """16 random hex digits."""
    return f"{random.getrandbits(SPAN_BITS):016x}"
