"""Rewards that stand in spans, in the forms of Agent Lightning, AgentOps and the GenAI conventions.

Whoever lets spans in (the OTLP endpoint, the runner's tracer) reads them once and writes Reward records; what is
refused never becomes a record and so never takes a call's place.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.schemas.records import Reward, Span
from headrace.streams.assembly.loose import as_list, as_mapping, read_text
from headrace.streams.assembly.values import Attributes

REWARD_SPAN = "agentlightning.reward"
INDEXED = re.compile(r"agentlightning\.reward\.(\d{1,9})\.(name|value)")
LINK = re.compile(r"agentlightning\.link\.(\d{1,9})\.(key_match|value_match)")
AGENTOPS_OUTPUTS = ("agentops.task.output", "agentops.entity.output")
EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_VALUE = "gen_ai.evaluation.score.value"

OPERATION_TRACE = "operation.trace_id"
OPERATION_SPAN = "operation.span_id"
OPERATION_START = "operation.start"
SEQUENCE = "sequence"
LINKS = "links"
EVALUATED_RESPONSE = "gen_ai.response.id"


class RewardForm(msgspec.Struct, frozen=True):
    """A reward value as it stands in a span, before it is judged."""

    name: str
    primary: bool
    value: Any
    response_id: str | None = None  # of the call it judges


class RewardsRead(msgspec.Struct):
    """What a span says about rewards."""

    rewards: list[Reward]
    rejected: list[str]  # null_reward, non_finite_reward or non_numeric_reward


def is_reward_operation(span_name: str, attributes: Attributes) -> bool:
    """Whether the span is the operation that gives a reward, whatever the value: what lies below it judges."""
    if span_name == REWARD_SPAN:
        return True
    if not attributes:
        return False
    return any(key.startswith("agentlightning.reward.") and INDEXED.fullmatch(key) for key in attributes) or (
        _agentops_payload(attributes) is not None
    )


def refusal(value: Any) -> str | None:
    """Why a value is no reward; None if it is one. bool and int are numbers, numeric text is not."""
    if value is None:
        return "null_reward"
    if not isinstance(value, int | float):
        return "non_numeric_reward"
    try:
        return None if math.isfinite(value) else "non_finite_reward"
    except OverflowError:  # an integer that no double holds
        return "non_finite_reward"


def tells_rewards(span: Span) -> bool:
    """Whether `read_rewards` may find something: true of every span with a reward, and of few others."""
    return (
        "reward" in span.attributes
        or "gen_ai.evaluation." in span.attributes
        or span.name == REWARD_SPAN
        or EVALUATION_EVENT in span.events
    )


def read_rewards(span: Span, attributes: Attributes) -> RewardsRead:
    """The rewards of a span as records, and the codes of the values that are refused."""
    found = RewardsRead([], [])
    links: str | None = None
    for number, form in enumerate(_forms(span, attributes)):
        value = plain_number(form.value)
        code = refusal(value)
        if code is not None:
            found.rejected.append(code)
            continue
        if links is None:
            links = _links(attributes)
        found.rewards.append(_record(span, links, number, form, float(value)))
    return found


def plain_number(value: Any) -> Any:
    """NaN and the infinities stand in span attributes as OTLP's AnyValue, since JSON has none."""
    inner = as_mapping(value).get("doubleValue")
    if isinstance(inner, str | int | float) and not isinstance(inner, bool):
        try:
            return float(inner)
        except (ValueError, OverflowError):
            return value
    return value


def _record(span: Span, links: str, number: int, form: RewardForm, value: float) -> Reward:
    metadata = {OPERATION_TRACE: span.trace_id, OPERATION_SPAN: span.span_id, OPERATION_START: str(span.start)}
    if span.sequence is not None:
        metadata[SEQUENCE] = str(span.sequence)
    if links:
        metadata[LINKS] = links
    if form.response_id is not None:
        metadata[EVALUATED_RESPONSE] = form.response_id
    return Reward(
        rollout_id=span.rollout_id,
        attempt_id=span.attempt_id,
        reward_id=f"{span.attempt_id or ''}/{span.trace_id}/{span.span_id}/{number}",
        name=form.name,
        primary=form.primary,
        value=value,
        source="agent",
        at=span.start // 1000,
        metadata=metadata,
    )


def _forms(span: Span, attributes: Attributes) -> Iterator[RewardForm]:
    dimensions: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith("agentlightning.reward.") and (match := INDEXED.fullmatch(key)):
            dimensions.setdefault(int(match[1]), {})[match[2]] = value
    if dimensions:
        lowest = min(dimensions)
        for number in sorted(dimensions):
            name = dimensions[number].get("name")
            yield RewardForm(name if isinstance(name, str) else "", number == lowest, dimensions[number].get("value"))
    elif (payload := _agentops_payload(attributes)) is not None:
        yield RewardForm("", True, payload.get("value"))
    elif span.name == REWARD_SPAN:
        yield RewardForm("", True, attributes.get("reward"))
    yield from _evaluations(span, attributes)


def _evaluations(span: Span, attributes: Attributes) -> Iterator[RewardForm]:
    told = [attributes] if EVALUATION_NAME in attributes or EVALUATION_VALUE in attributes else []
    if EVALUATION_EVENT in span.events:
        events = [as_mapping(event) for event in as_list(read_text(span.events))]
        told += [dict(as_mapping(e.get("attributes"))) for e in events if e.get("name") == EVALUATION_EVENT]
    for evaluation in told:
        if EVALUATION_VALUE not in evaluation:
            continue  # a label without a score is no reward
        name, response_id = evaluation.get(EVALUATION_NAME), evaluation.get(EVALUATED_RESPONSE)
        yield RewardForm(
            name if isinstance(name, str) and name else "evaluation",
            False,
            evaluation.get(EVALUATION_VALUE),
            response_id if isinstance(response_id, str) else None,
        )


def _agentops_payload(attributes: Attributes) -> dict[str, Any] | None:
    for key in AGENTOPS_OUTPUTS:
        value = attributes.get(key)
        if isinstance(value, str):
            value = _payload_text(value)
        payload = as_mapping(value)
        if payload.get("type") == "reward":
            return dict(payload)
    return None


def _payload_text(text: str) -> Any:
    if "reward" not in text:
        return None
    try:
        return json.loads(text)  # takes NaN and Infinity, which Python's JSON writes
    except (ValueError, RecursionError):
        return read_text(text)


def _links(attributes: Attributes) -> str:
    """Agent Lightning's links as JSON; empty if there are none."""
    links: dict[int, dict[str, str]] = {}
    for key, value in attributes.items():
        if key.startswith("agentlightning.link.") and (match := LINK.fullmatch(key)):
            links.setdefault(int(match[1]), {})[match[2]] = str(value)
    pairs = (links[number] for number in sorted(links))
    found = [(pair["key_match"], pair["value_match"]) for pair in pairs if len(pair) == 2]
    return json.dumps(found) if found else ""
