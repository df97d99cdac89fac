"""What a search for a prompt is told."""

from dataclasses import dataclass

from headrace.streams.errors import InvalidValueError, SettingsError

MISSING = ("zero", "leave_out")


@dataclass(frozen=True, kw_only=True)
class ApoSettings:
    """One search. Defaults are Agent Lightning's.

    Attributes:
        gradient_model: model that criticises a prompt.
        edit_model: model that rewrites it.
        temperature: of both, so that branches differ.
        gradient_batch_size: results that a criticism is made from.
        train_batch_size: train tasks that a parent is tried on before it is criticised.
        val_batch_size: validation tasks that a round compares its candidates on.
        beam_width: candidates that a round leaves.
        branch_factor: rewrites a parent.
        rounds: of the search.
        timeout_seconds: after which rollouts of a batch that have not ended count as missing; None waits.
        missing: what a rollout without a reward counts as: `zero`, or `leave_out` of the mean.
        initial_validation: the first prompt is scored on all validation tasks, so that only a better one replaces it.
        transcript_chars: most characters of one rollout's conversation in a criticism.
    """

    gradient_model: str = "gpt-5-mini"
    edit_model: str = "gpt-4.1-mini"
    temperature: float = 1.0
    gradient_batch_size: int = 4
    train_batch_size: int = 16
    val_batch_size: int = 16
    beam_width: int = 4
    branch_factor: int = 4
    rounds: int = 3
    timeout_seconds: float | None = 3600.0
    missing: str = "zero"
    initial_validation: bool = True
    transcript_chars: int = 6000

    def __post_init__(self) -> None:
        numbers = ("gradient_batch_size", "train_batch_size", "val_batch_size", "beam_width", "branch_factor", "rounds")
        small = [name for name in numbers if getattr(self, name) < 1]
        if small or self.transcript_chars < 100 or (self.timeout_seconds is not None and self.timeout_seconds <= 0):
            raise SettingsError(f"{', '.join(small) or 'transcript_chars and timeout_seconds'}: must be positive")
        if self.missing not in MISSING:
            raise InvalidValueError(f"missing {self.missing!r}: choose one of {', '.join(MISSING)}")
