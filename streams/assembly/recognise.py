"""Which spans are model calls, and what they say: one reader for each convention that tracing libraries write.

Sources: OpenTelemetry GenAI semantic conventions, OpenInference, Traceloop (OpenLLMetry), AgentOps, LiteLLM's OTel
callback, Vercel AI SDK telemetry, Google's Agent Development Kit, and Headrace's own gateway.
"""

import re
from typing import Any

from headrace.schemas.records import ModelCall, Span
from headrace.streams.assembly.evidence import Evidence
from headrace.streams.assembly.tokens import read_tokens
from headrace.streams.assembly.values import Attributes, Call, CallChoice, Node

CALL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content", "chat.completions", "text.completions"})
OTHER_OPERATIONS = frozenset(
    {
        "embeddings",
        "create_agent",
        "invoke_agent",
        "execute_tool",
        "invoke_workflow",
        "retrieval",
    }
)
CALL_NAME = re.compile(r"openai\.chat\.completion")
LITELLM_NAMES = frozenset({"litellm_request", "raw_gen_ai_request"})
LITELLM_OTHER = re.compile(r"embedding|image|speech|transcription|moderation|rerank", re.IGNORECASE)
HELPER_NAME = re.compile(r"\w+\._prepare_chat_with_tools")
"""OpenInference gives every method of a LlamaIndex model the kind LLM, also the one that puts a request together."""
TEMPLATE_KEY = "llm.prompt_template.template"
TOLD_OF_CALLS = (
    "llm.model_name",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.prompts",
    "llm.token_count.",
    "llm.invocation_parameters",
    "prompt_token_ids",
)
VERCEL_NAME = re.compile(r"ai\.\w+\.do(Generate|Stream)\b")
ADK_NAME, ADK_SCOPE = "call_llm", '"gcp.vertex.agent"'
TRACELOOP_TYPES = frozenset({"chat", "completion"})
KIND_KEYS = ("openinference.span.kind", "agentops.span.kind", "traceloop.span.kind")
CALL_KEYS = frozenset(
    {
        "gen_ai.operation.name",
        "openinference.span.kind",
        "agentops.span.kind",
        "traceloop.span.kind",
        "gen_ai.request.type",
        "llm.request.type",
        "ai.operationId",
    }
)
"""Every key that tells a call by itself, or that a span is none: most spans have none of them."""
FINISH_REASONS = {
    "tool_call": "tool_calls",
    "tool-calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_calls": "tool_calls",
    "end_turn": "stop",
}
CUT_REASONS = frozenset({"abort", "aborted", "cancelled", "canceled"})


def kind_of(value: Any) -> str:
    """A span kind as a lower-case word; AgentOps writes the Python name of the member at times."""
    return value.rpartition(".")[2].lower() if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def is_model_call(span: Span, attributes: Attributes) -> bool:
    """Whether the span traces a model call. `attributes` are those of the span, decoded."""
    if span.llm is not None:
        return True
    name = span.name
    if name == ADK_NAME and ADK_SCOPE in span.scope:
        return True
    if not attributes:
        return CALL_NAME.search(name) is not None
    if CALL_KEYS.isdisjoint(attributes):
        return name in LITELLM_NAMES or CALL_NAME.search(name) is not None or VERCEL_NAME.match(name) is not None
    operation = _word(attributes.get("gen_ai.operation.name"))
    if operation in CALL_OPERATIONS:
        return True
    if operation in OTHER_OPERATIONS:
        return False
    if name in LITELLM_NAMES:
        return LITELLM_OTHER.search(_word(attributes.get("llm.request.type")) or operation) is None
    return (
        CALL_NAME.search(name) is not None
        or (kind_of(attributes.get("openinference.span.kind")) == "llm" and not _only_prepares(name, attributes))
        or kind_of(attributes.get("agentops.span.kind")) == "llm"
        or kind_of(attributes.get("traceloop.span.kind")) == "llm"
        or _word(attributes.get("gen_ai.request.type")) in TRACELOOP_TYPES
        or _word(attributes.get("llm.request.type")) in TRACELOOP_TYPES
        or VERCEL_NAME.match(name) is not None
        or VERCEL_NAME.match(_word(attributes.get("ai.operationId"))) is not None
    )


def is_tool(attributes: Attributes) -> bool:
    """Whether a span traces a tool that the agent runs. `attributes` are those of the span, decoded."""
    get = attributes.get
    return get("gen_ai.operation.name") == "execute_tool" or any(kind_of(get(key)) == "tool" for key in KIND_KEYS)


def _only_prepares(name: str, attributes: Attributes) -> bool:
    """Whether an OpenInference span of the kind LLM only puts a prompt together.

    Haystack's PromptBuilder tells a template, and nothing of a call.
    """
    if TEMPLATE_KEY in attributes:
        return not any(key.startswith(TOLD_OF_CALLS) for key in attributes)
    return HELPER_NAME.fullmatch(name) is not None


def read_call(node: Node) -> Call | None:
    """The model call that a span traces; None if it traces none."""
    llm = node.span.llm
    if llm is not None:
        return _recorded_call(node, llm)
    if not is_model_call(node.span, node.attributes):
        return None
    return _traced_call(node)


def _recorded_call(node: Node, llm: ModelCall) -> Call:
    """A call that the gateway saw itself."""
    generated = llm.usage.output_tokens if llm.usage is not None else 0
    choices: list[CallChoice] = []
    incomplete = bool(llm.choices)
    for choice in llm.choices:
        tokens: bytes | None = choice.response_token_ids
        if not tokens and (generated or not llm.prompt_token_ids):
            tokens = None
        read = CallChoice(choice.index, tokens, choice.logprobs, choice.finish_reason)
        if choice.finish_reason and choice.finish_reason not in CUT_REASONS:
            incomplete = False
        if read.logprobs is not None and len(read.logprobs) != len(choice.response_token_ids):
            read.logprobs, read.logprobs_misfit = None, True
        choices.append(read)
    return Call(
        node=node,
        outer=node,
        copies=[node],
        response_id=llm.response_id or None,
        model=llm.model,
        prompt=llm.prompt_token_ids or None,
        choices=choices,
        policy=llm.policy,
        policy_version=llm.policy_version,
        sampling=llm.sampling,
        logprobs_mode=llm.logprobs_mode,
        http_status=llm.http_status,
        failed=llm.error is not None or node.span.status.code == "ERROR",
        incomplete=incomplete,
        retry_count=llm.retry_count,
    )


def _traced_call(node: Node) -> Call:
    """A call as a tracing library tells it."""
    evidence = Evidence(node.span, node.attributes)
    prompt, choices = read_tokens(evidence)
    reasons = evidence.finish_reasons
    if not choices:
        choices = [CallChoice(index) for index in range(len(reasons))]
    for choice, reason in zip(choices, reasons, strict=False):
        choice.finish_reason = choice.finish_reason or reason
    for choice in choices:
        if choice.finish_reason is not None:
            choice.finish_reason = FINISH_REASONS.get(choice.finish_reason, choice.finish_reason)
    known = [choice.finish_reason for choice in choices if choice.finish_reason]
    return Call(
        node=node,
        outer=node,
        copies=[node],
        response_id=evidence.response_id,
        model=evidence.model,
        prompt=prompt,
        choices=choices,
        http_status=evidence.http_status,
        failed=evidence.failed,
        incomplete=all(reason in CUT_REASONS for reason in known) if known else evidence.streaming,
        retry_count=evidence.retry_count,
    )
