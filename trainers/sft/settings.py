"""What supervised fine-tuning's arithmetic depends on, and what it learns from."""

from dataclasses import dataclass

from headrace.streams.errors import InvalidValueError, SettingsError
from headrace.trainers.losses import AGGREGATIONS
from headrace.trainers.models.lora import LoraSettings
from headrace.trainers.rows import Level

RECORDED = ("own", "always", "never")


@dataclass(frozen=True, kw_only=True)
class SftSettings:
    """All of it stands in the run's manifest.

    Attributes:
        best_of_group: of a complete group only so many with the highest reward are trained; None takes all.
        recorded: whose token ids are trained as they were recorded: those of this policy (`own`), all (`always`), or
            none (`never`); other calls are rendered by the model's chat template.
        aggregation: how token losses add up, see `losses.AGGREGATIONS`.
        level: rows from `transition`s (one an answer) or from the `trajectory`.
        max_row_tokens: longer rows are dropped as too_long.
        micro_batch_tokens: most tokens that go through the model at once, padding included.
        lora: of the adapter that is trained instead of all weights.
    """

    lr: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    best_of_group: int | None = None
    recorded: str = "own"
    aggregation: str = "token_mean"
    level: Level = "trajectory"
    micro_batch_tokens: int = 16384
    max_row_tokens: int = 32768
    lora: LoraSettings | None = None

    def __post_init__(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            raise InvalidValueError(f"aggregation {self.aggregation!r}: choose one of {', '.join(AGGREGATIONS)}")
        if self.level not in ("transition", "trajectory"):
            raise InvalidValueError(f"level {self.level!r}: choose transition or trajectory")
        if self.recorded not in RECORDED:
            raise InvalidValueError(f"recorded {self.recorded!r}: choose one of {', '.join(RECORDED)}")
        if not self.lr > 0 or not self.max_grad_norm > 0 or (self.best_of_group is not None and self.best_of_group < 1):
            raise SettingsError("lr, max_grad_norm and best_of_group must be positive")
