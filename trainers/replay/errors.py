"""What a replay refuses."""

from headrace.streams.errors import HeadraceError


class ReplayError(HeadraceError):
    """The log does not give what a step was trained on, or what a replay is to train on instead."""
