"""Anthropic's Messages API."""

from headrace.connectors.gateway.dialects.anthropic.dialect import MessagesDialect

__all__ = ["MessagesDialect"]
