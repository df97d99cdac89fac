"""What GRPO's arithmetic depends on."""

from dataclasses import dataclass

from headrace.streams.errors import SettingsError
from headrace.trainers.advantages import EPSILON, check_credit
from headrace.trainers.losses import AGGREGATIONS
from headrace.trainers.rows import Level


@dataclass(frozen=True, kw_only=True)
class GrpoSettings:
    """Settings of one optimizer step; all of them stand in the run's manifest.

    Attributes:
        entropy: coefficient of the entropy bonus.
        clip_low: ratios are clipped below 1 - clip_low.
        clip_high: and above 1 + clip_high.
        max_grad_norm: gradients are scaled down to this norm.
        credit: whose advantage a token gets, see `advantages.CREDITS`.
        aggregation: how token losses add up, see `losses.AGGREGATIONS`.
        level: rows from `transition`s (one a call) or from the `trajectory`.
        mismatch_bound: of the mean k3 between behaviour and current at staleness 0; above it is an alarm.
        max_row_tokens: longer rows are dropped as too_long.
        micro_batch_tokens: most tokens that go through the model at once, padding included.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    entropy: float = 0.02
    clip_low: float = 0.2
    clip_high: float = 0.28
    max_grad_norm: float = 1.0
    advantage_epsilon: float = EPSILON
    credit: str = "final"
    aggregation: str = "rollout_mean"
    level: Level = "trajectory"
    mismatch_bound: float = 1e-3
    micro_batch_tokens: int = 16384
    max_row_tokens: int = 32768

    def __post_init__(self) -> None:
        check_credit(self.credit)
        if self.aggregation not in AGGREGATIONS:
            raise SettingsError(f"aggregation {self.aggregation!r}: choose one of {', '.join(AGGREGATIONS)}")
        if self.level not in ("transition", "trajectory"):
            raise SettingsError(f"level {self.level!r}: choose transition or trajectory")
        if not self.lr > 0 or not 0 < self.clip_low < 1 or not self.clip_high > 0 or not self.max_grad_norm > 0:
            raise SettingsError("lr, clip_high and max_grad_norm must be positive, clip_low between 0 and 1")
