"""Which tracers there are. Cheap to import."""

from enum import StrEnum


class TracerName(StrEnum):
    """Who records what an agent's libraries trace."""

    NONE = "none"  # nobody: emitters, operations and the gateway's calls are recorded all the same
    OTEL = "otel"  # OpenTelemetry's SDK
    AGENTOPS = "agentops"  # OpenTelemetry's SDK as AgentOps sets it up, with its instrumentation


def names_of(text: str | None) -> tuple[str, ...]:
    """The names of `openai,langchain`."""
    return tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
