"""What can be wrong with a value that stands in a store."""

from headrace.streams.errors import HeadraceError, UnavailableError


class ClaimsUnavailableError(UnavailableError):
    """The store does not answer, or is not there: what it holds is not lost, and is waited for."""


class ClaimError(HeadraceError):
    """The value that a claim check refers to cannot be had.

    Attributes:
        reason: one word, as dead letters carry it: `claim_missing`, `claim_corrupt`, `claim_foreign` or
            `claim_too_large`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
