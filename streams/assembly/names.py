"""The name of the agent that a span tells, by the conventions of the agent frameworks."""

from typing import Any

from headrace.streams.assembly.values import Attributes

CREATE_AGENT = "create_agent"
ADK_RUN = "agent_run ["
KEYS = frozenset(
    {
        "agent.name",
        "gen_ai.agent.name",
        "agentops.span.kind",
        "recipient_agent_type",
        "langchain.chain.type",
        "executor.id",
        "graph.node.id",
        "openinference.span.kind",
    }
)
"""Every key that tells a name, or says that one is told: most spans have none of them."""


_WORDS = ("agent", "langchain.chain.type", "executor.id", "graph.node.id", "openinference.span.kind", "\\u")


def may_tell_name(attributes: str) -> bool:
    """Whether attributes, as JSON text, may hold one of `KEYS`: much cheaper than to decode them."""
    return any(map(attributes.__contains__, _WORDS))


def own_agent_name(span_name: str, attributes: Attributes) -> str | None:
    """The agent's name that stands on this span itself; None if it tells none.

    Keys, in this order: agent.name (OpenAI Agents SDK), gen_ai.agent.name (GenAI conventions, not where the agent is
    only created), operation.name of an AgentOps agent, recipient_agent_type (AutoGen), langchain.chain.type
    (LangGraph), executor.id (Agent Framework), graph.node.id (OpenInference), the name of an OpenInference AGENT span,
    `agent_run [NAME]` (Google ADK).
    """
    if span_name.startswith(ADK_RUN) and span_name.endswith("]"):
        return _text(span_name[len(ADK_RUN) : -1])
    if KEYS.isdisjoint(attributes):
        return None
    get = attributes.get
    if name := _text(get("agent.name")):
        return name
    if get("gen_ai.operation.name") != CREATE_AGENT and (name := _text(get("gen_ai.agent.name"))):
        return name
    if _kind(get("agentops.span.kind")) == "agent" and (name := _text(get("operation.name"))):
        return name
    for key in ("recipient_agent_type", "langchain.chain.type", "executor.id", "graph.node.id"):
        if name := _text(get(key)):
            return name
    if _kind(get("openinference.span.kind")) == "agent":
        return _text(span_name)
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _kind(value: Any) -> str:
    return value.rpartition(".")[2].lower() if isinstance(value, str) else ""
