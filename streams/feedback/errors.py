"""Why feedback is refused."""

from headrace.streams.errors import HeadraceError

INVALID, UNKNOWN_TARGET, NO_VIEW, UNAVAILABLE = "invalid_feedback", "unknown_target", "no_view", "unavailable"


class FeedbackError(HeadraceError):
    """One piece of feedback that is not written.

    Attributes:
        code: a short name of the reason.
        param: the field at fault.
    """

    def __init__(self, code: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.code, self.param = code, param
        self.retriable = code in (UNKNOWN_TARGET, UNAVAILABLE)


class UnknownTargetError(FeedbackError):
    """Nobody knows what the feedback is about, or the view does not yet."""

    def __init__(self, message: str) -> None:
        super().__init__(UNKNOWN_TARGET, message)
