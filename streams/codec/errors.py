"""What can be wrong with a record's bytes."""

from headrace.streams.errors import HeadraceError


class EncodeError(HeadraceError):
    """A record whose values do not fit its schema."""


class DecodeError(HeadraceError):
    """Bytes that no schema reads; their place is a dead-letter topic.

    Attributes:
        reason: one word for counters and headers: `empty`, `unknown_framing`, `unknown_schema`, `wrong_record`,
            `malformed` or `trailing_bytes`, or one of `ClaimError`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
