"""What a runner cannot go on from."""

from headrace.streams.errors import HeadraceError


class AgentLoadError(HeadraceError):
    """`MODULE_OR_FILE:AGENT` names no agent."""


class HookLoadError(HeadraceError):
    """`--hook MODULE_OR_FILE:NAME` names no hook."""
