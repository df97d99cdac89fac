"""How often a key may be used: a bucket of tokens, and a number of calls at once."""

import msgspec


class Bucket(msgspec.Struct):
    """Fills by `rate` a second up to `size`; a call takes one. A minute's calls may come at once, and no more.

    Attributes:
        at: when `tokens` was counted, in seconds of any clock that goes forward.
    """

    rate: float
    size: float
    tokens: float
    at: float

    @classmethod
    def of(cls, requests_per_minute: int, now: float) -> "Bucket":
        """A full one."""
        return cls(requests_per_minute / 60, requests_per_minute, requests_per_minute, now)

    def take(self, now: float) -> float:
        """0 where a token was taken, else the seconds until there is one."""
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / self.rate
