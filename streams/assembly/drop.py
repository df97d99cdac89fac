"""Why a model call gives no triplet: one reason a call, the first of a fixed order that applies."""

from collections.abc import Sequence

from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.values import Call
from headrace.streams.assembly.withheld import REASONS, WITHHELD

SUPERSEDED = "superseded_attempt"
INSIDE_REWARD = "inside_reward"
DUPLICATE = "duplicate_call"
OUTSIDE_MATCH = "outside_agent_match"
HTTP_ERROR = "http_error"
STATUS_ERROR = "status_error"
NO_TOKEN_IDS = "no_token_ids"
EMPTY = "empty_response"
INCOMPLETE = "incomplete_response"
UNDELIVERED = "undelivered"
NO_MODEL_CALL = "no_model_call"
LATE = "late_after_close"
GATEWAY = "gateway"


def judge_call(call: Call, settings: AssemblySettings, inside: bool, undelivered: bool) -> None:
    """Set the call's `reason`, and whether it may take a reward.

    A call of another agent takes a reward and keeps it, though it gives no triplet; one that failed does not.

    Args:
        inside: it lies below a reward operation.
        undelivered: the client never saw its answer.
    """
    fault = _fault(call, settings, undelivered)
    pattern = settings.agent_pattern
    if inside:
        call.reason = INSIDE_REWARD
    elif pattern is not None and (call.agent_name is None or pattern.search(call.agent_name) is None):
        call.reason = OUTSIDE_MATCH
    else:
        call.reason = fault
    call.takes_reward = fault is None and not inside


def _fault(call: Call, settings: AssemblySettings, undelivered: bool) -> str | None:
    if call.http_status is not None and call.http_status >= 400:
        return HTTP_ERROR
    if call.failed:
        return STATUS_ERROR
    if (withheld := _withheld(call)) is not None:
        return withheld
    if not call.has_tokens:
        return NO_TOKEN_IDS
    for choice in call.choices:
        if choice.tokens:
            break
    else:
        return EMPTY
    if call.incomplete and not settings.keep_incomplete:
        return INCOMPLETE
    return UNDELIVERED if undelivered else None


def _withheld(call: Call) -> str | None:
    """Why the gateway has kept a call's content to itself: then no other copy's content is used either."""
    for copy in call.copies:
        if copy.span.source == GATEWAY and WITHHELD in copy.span.attributes:
            reason = copy.attributes.get(WITHHELD)
            if reason in REASONS:
                return reason
    return None


def undelivered_calls(calls: Sequence[Call]) -> list[Call]:
    """Calls whose client sent the same request again: it never saw their answer."""
    for call in calls:
        if call.retry_count:
            break
    else:
        return []
    lost: list[Call] = []
    for call in sorted(calls, key=_start):
        if not call.retry_count:
            continue
        # The answer to the first request may end, and so be logged, after the answer to the second.
        asked = [
            earlier
            for earlier in calls
            if earlier.retry_count < call.retry_count
            and _start(earlier) <= _start(call)
            and not any(earlier is other for other in lost)
            and same_request(earlier, call)
        ]
        if asked:
            lost.append(max(asked, key=_start))
    return lost


def _start(call: Call) -> int:
    return call.node.span.start


def same_request(a: Call, b: Call) -> bool:
    """Whether two calls ask for the same: the request as sent, else the prompt."""
    ours = a.node.span.llm.request if a.node.span.llm is not None else None
    theirs = b.node.span.llm.request if b.node.span.llm is not None else None
    if ours and theirs:
        return ours == theirs
    return a.prompt is not None and a.prompt == b.prompt and a.model == b.model
