"""What can be wrong with an agent or with what it says."""

from headrace.streams.errors import HeadraceError


class AgentError(HeadraceError):
    """The agent is not one that a runner can call."""


class NoRolloutError(HeadraceError):
    """An emitter was called where no rollout runs."""


class AttemptOverError(HeadraceError):
    """The attempt has ended (timed out, cancelled, lost): what its code still says is refused."""


class InvalidRewardError(HeadraceError):
    """A value that is no reward.

    Attributes:
        reason: one word: `null_reward`, `non_finite_reward` or `non_numeric_reward`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class ResourceError(HeadraceError):
    """The agent asks for a resource that is not there."""
