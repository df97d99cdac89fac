"""A span as a row: what it says of itself, and of the model call that it traces."""

from typing import NamedTuple

from headrace.schemas.records import ModelCall, Span
from headrace.streams.assembly.evidence import Evidence
from headrace.streams.assembly.names import own_agent_name
from headrace.streams.assembly.recognise import is_model_call
from headrace.streams.assembly.values import NO_ATTRIBUTES, span_attributes
from headrace.streams.view.rows import Place, Row

TOKEN_BYTES = 4


class CallFacts(NamedTuple):
    """The columns of a model call, in their order; all None for a span that traces none."""

    model: str | None = None
    policy: str | None = None
    policy_version_min: int | None = None
    policy_version_max: int | None = None
    response_id: str | None = None
    choices: int | None = None
    prompt_tokens: int | None = None
    response_tokens: int | None = None
    finish_reason: str | None = None
    retry_count: int | None = None
    http_status: int | None = None
    error_type: str | None = None
    error_message: str | None = None


NO_CALL = CallFacts()


def span_row(span: Span, place: Place) -> Row:
    """Of `tables.spans`. Token counts are those of the recorded ids, else what the trace says was used."""
    llm = span.llm
    text = span.attributes
    attributes = NO_ATTRIBUTES
    if _may_name_agent(text) or (llm is None and _may_be_call(text)):  # decoding them costs more than all the rest
        attributes = span_attributes(span)
    if llm is not None:
        call = _recorded(llm)
    elif is_model_call(span, attributes):
        call = _told(Evidence(span, attributes))
    else:
        call = NO_CALL
    return (
        *place,
        span.rollout_id,
        span.attempt_id or "",
        span.trace_id,
        span.span_id,
        span.parent_id,
        span.session_id,
        span.sequence,
        span.source,
        span.name,
        own_agent_name(span.name, attributes),
        span.kind,
        span.status.code,
        span.status.message,
        span.start,
        span.end,
        *call,
        text,
        span.events,
        span.links,
        span.resource,
        span.scope,
        llm.request if llm is not None else None,
        llm.response if llm is not None else None,
    )


def _may_name_agent(text: str) -> bool:
    return (
        "agent.name" in text
        or "agent_type" in text
        or "span.kind" in text
        or "chain.type" in text
        or "executor.id" in text
        or "graph.node.id" in text
    )


def _may_be_call(text: str) -> bool:
    return "gen_ai." in text or "llm." in text or "span.kind" in text or "ai.operationId" in text


def _recorded(llm: ModelCall) -> CallFacts:
    version, usage, error = llm.policy_version, llm.usage, llm.error
    prompt = len(llm.prompt_token_ids) // TOKEN_BYTES
    response = sum([len(choice.response_token_ids) for choice in llm.choices]) // TOKEN_BYTES
    return CallFacts(
        llm.model,
        llm.policy,
        version.min if version is not None else None,
        version.max if version is not None else None,
        llm.response_id,
        len(llm.choices),
        prompt or (usage.input_tokens if usage is not None else None),
        response or (usage.output_tokens if usage is not None else None),
        llm.choices[0].finish_reason if llm.choices else None,
        llm.retry_count,
        llm.http_status,
        error.type if error is not None else None,
        error.message if error is not None else None,
    )


def _told(evidence: Evidence) -> CallFacts:
    usage = evidence.usage
    reasons = evidence.finish_reasons
    return CallFacts(
        model=evidence.model or None,
        response_id=evidence.response_id,
        choices=len(evidence.choices) or None,
        prompt_tokens=usage.input_tokens if usage is not None else None,
        response_tokens=usage.output_tokens if usage is not None else None,
        finish_reason=reasons[0] if reasons else None,
        retry_count=evidence.retry_count,
        http_status=evidence.http_status,
    )
