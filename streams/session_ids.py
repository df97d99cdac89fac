"""Where spans tell the session that they belong to."""

SESSION_KEYS = (
    "session.id",  # OpenTelemetry, OpenInference
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "gcp.vertex.agent.session_id",  # Google's Agent Development Kit
)
"""Attributes, the first that is there counts."""
