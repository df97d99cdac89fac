"""OpenAI's Responses API."""

from headrace.connectors.gateway.dialects.responses.dialect import ResponsesDialect

__all__ = ["ResponsesDialect"]
