"""What a step's arithmetic depends on, and the named settings of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headrace.streams.errors import InvalidValueError, SettingsError
from headrace.trainers.advantages.credit import check_credit
from headrace.trainers.advantages.estimators import EPSILON, GAE, check_advantage
from headrace.trainers.losses.aggregation import AGGREGATIONS
from headrace.trainers.losses.policy import check_loss
from headrace.trainers.losses.scores import check_kl
from headrace.trainers.models.lora import LoraSettings, lora_from
from headrace.trainers.rows import Level
from headrace.trainers.samples import check_over_long
from headrace.trainers.window_settings import WindowSettings

Dtype = Literal["float32", "bfloat16"]
MISMATCH_BOUNDS: dict[str, float] = {"float32": 1e-3, "bfloat16": 5e-2}


@dataclass(frozen=True, kw_only=True)
class GrpoSettings:
    """Settings of one window's step; all of them stand in the run's manifest.

    Attributes:
        advantage: the estimator, see `advantages.estimators.ADVANTAGES`.
        credit: whose reward a call's tokens answer for, see `advantages.credit.CREDITS`.
        gamma: discount: from call to call for credit `return`, from token to token for `gae`.
        gae_lambda: of `gae`.
        loss: of the policy, see `losses.policy.LOSSES`.
        ratio: against the recorded `behaviour` log-probabilities, or `decoupled`: against those of the weights with
            which the window begins, times truncated proximal/behaviour.
        truncation: most that an importance weight counts (decoupled, reinforce).
        clip_low: ratios are clipped below 1 - clip_low.
        clip_high: and above 1 + clip_high.
        dual_clip: bound of the loss where the advantage is negative; None is none.
        epochs: passes over a window.
        mini_batches: optimizer steps a pass; its rollouts are dealt out to them one by one.
        entropy: coefficient of the entropy bonus.
        kl: estimator of the divergence from the run's base weights: none, k1 or k3.
        kl_beta: its coefficient.
        kl_in: whether it lowers the `reward` or adds to the `loss`.
        value_coefficient: of the value head's loss (gae).
        value_clip: most that a value moves in a window.
        max_grad_norm: gradients are scaled down to this norm.
        aggregation: how token losses add up, see `losses.aggregation.AGGREGATIONS`.
        token_divisor: length that divides a `token_sum`; None is no division.
        level: rows from `transition`s (one a call) or from the `trajectory`.
        dtype: of the forward pass; weights, gradients and optimizer are float32 whatever it is.
        mismatch_bound: of the mean k3 between behaviour and current at staleness 0; above it is an alarm. None: 1e-3
            in float32, 5e-2 in bfloat16.
        max_row_tokens: longer rows are over-long.
        over_long: whether such a row is a `drop`, or is `cut` behind its last response that fits.
        micro_batch_tokens: most tokens that go through the model at once, padding included.
        packing: rows lie one behind the other instead of padded to the longest.
        baseline_decay: what of the running baseline of ungrouped samples stays, a window.
        lora: of the adapter that is trained instead of all weights.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    advantage: str = "grpo"
    advantage_epsilon: float = EPSILON
    credit: str = "final"
    gamma: float = 1.0
    gae_lambda: float = 1.0
    loss: str = "clip"
    ratio: str = "behaviour"
    truncation: float = 2.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float | None = None
    epochs: int = 1
    mini_batches: int = 1
    entropy: float = 0.02
    kl: str = "none"
    kl_beta: float = 0.001
    kl_in: str = "loss"
    value_coefficient: float = 0.5
    value_clip: float = 0.2
    max_grad_norm: float = 1.0
    aggregation: str = "rollout_mean"
    token_divisor: float | None = None
    level: Level = "trajectory"
    dtype: Dtype = "float32"
    mismatch_bound: float | None = None
    max_row_tokens: int = 32768
    over_long: str = "drop"
    micro_batch_tokens: int = 16384
    packing: bool = False
    baseline_decay: float = 0.9
    lora: LoraSettings | None = None

    def __post_init__(self) -> None:
        check_advantage(self.advantage)
        check_credit(self.credit)
        check_loss(self.loss, self.ratio)
        check_kl(self.kl)
        check_over_long(self.over_long)
        if self.aggregation not in AGGREGATIONS:
            raise InvalidValueError(f"aggregation {self.aggregation!r}: choose one of {', '.join(AGGREGATIONS)}")
        if self.level not in ("transition", "trajectory"):
            raise InvalidValueError(f"level {self.level!r}: choose transition or trajectory")
        if self.dtype not in MISMATCH_BOUNDS:
            raise InvalidValueError(f"dtype {self.dtype!r}: choose one of {', '.join(MISMATCH_BOUNDS)}")
        if self.kl_in not in ("reward", "loss"):
            raise InvalidValueError(f"kl_in {self.kl_in!r}: choose reward or loss")
        self._check_numbers()
        self._check_together()

    def _check_numbers(self) -> None:
        if not self.lr > 0 or not 0 < self.clip_low < 1 or not self.clip_high > 0 or not self.max_grad_norm > 0:
            raise SettingsError("lr, clip_high and max_grad_norm must be positive, clip_low between 0 and 1")
        if not 0 <= self.gamma <= 1 or not 0 <= self.gae_lambda <= 1 or not 0 <= self.baseline_decay < 1:
            raise SettingsError("gamma and gae_lambda must be between 0 and 1, baseline_decay from 0 to below 1")
        if not self.truncation > 0 or not self.value_clip > 0 or not self.value_coefficient > 0:
            raise SettingsError("truncation, value_clip and value_coefficient must be positive")
        if self.kl_beta < 0 or (self.token_divisor is not None and not self.token_divisor > 0):
            raise SettingsError("kl_beta must not be negative, token_divisor must be positive")
        if self.dual_clip is not None and not self.dual_clip > 1:
            raise SettingsError("dual_clip must be above 1: below it would cut where the ratio is 1")
        if self.epochs < 1 or self.mini_batches < 1 or self.max_row_tokens < 2 or self.micro_batch_tokens < 1:
            raise SettingsError("epochs, mini_batches and micro_batch_tokens must be at least 1, max_row_tokens 2")

    def _check_together(self) -> None:
        if self.optimizer_steps > 1 and self.ratio != "decoupled":
            raise SettingsError(
                "several optimizer steps a window need ratio decoupled: after the first one, current/behaviour would "
                "count the staleness of the samples as if this window had moved the policy"
            )
        if self.token_divisor is not None and self.aggregation != "token_sum":
            raise SettingsError("token_divisor goes with aggregation token_sum")
        if self.advantage == GAE and self.credit == "own":
            raise SettingsError("advantage gae hands rewards back from token to token: choose credit final or return")
        if self.dual_clip is not None and self.loss != "clip":
            raise SettingsError("dual_clip goes with loss clip")

    @property
    def optimizer_steps(self) -> int:
        """Most optimizer steps a window."""
        return self.epochs * self.mini_batches

    @property
    def alarm_bound(self) -> float:
        """Above which a mean k3 is an alarm."""
        return MISMATCH_BOUNDS[self.dtype] if self.mismatch_bound is None else self.mismatch_bound

    @property
    def needs_reference(self) -> bool:
        """Whether the base weights are asked too."""
        return self.kl != "none" and self.kl_beta > 0


OBJECTIVES: dict[str, dict[str, Any]] = {
    "grpo": {},
    "dr_grpo": {"advantage": "dr_grpo", "aggregation": "token_sum", "token_divisor": 1024.0},
    "rloo": {"advantage": "rloo"},
    "reinforce_pp": {"advantage": "reinforce_pp", "aggregation": "token_mean", "kl": "k1", "kl_in": "reward"},
    "reinforce_pp_baseline": {
        "advantage": "reinforce_pp_baseline",
        "aggregation": "token_mean",
        "kl": "k3",
        "kl_in": "loss",
    },
    "ppo": {
        "advantage": GAE,
        "aggregation": "token_mean",
        "ratio": "decoupled",
        "epochs": 2,
        "mini_batches": 2,
        "clip_high": 0.2,
        "gae_lambda": 0.95,
    },
    "dapo": {"aggregation": "token_mean", "clip_high": 0.28},
    "gspo": {"loss": "gspo", "clip_low": 3e-4, "clip_high": 4e-4},
    "decoupled_ppo": {"ratio": "decoupled", "mini_batches": 2},
    "cispo": {"loss": "reinforce", "aggregation": "token_mean"},
}
"""What each named objective sets; the rest has the defaults, and any of it can be set beside the name."""


def settings_of_objective(objective: str, **given: Any) -> GrpoSettings:
    """The settings of a named objective; `given` counts more, except where it is None.

    Raises:
        SettingsError: there is no such objective, or the settings do not go together.
    """
    if objective not in OBJECTIVES:
        raise InvalidValueError(f"objective {objective!r}: choose one of {', '.join(OBJECTIVES)}")
    chosen = {name: value for name, value in given.items() if value is not None}
    preset = dict(OBJECTIVES[objective])
    if chosen.get("aggregation", "token_sum") != "token_sum":
        preset.pop("token_divisor", None)
    return GrpoSettings(**(preset | chosen))


def settings_from(given: Mapping[str, Any]) -> GrpoSettings:
    """The settings as a run's manifest has them."""
    values: dict[str, Any] = {**given, "betas": tuple(given["betas"]), "lora": lora_from(given.get("lora"))}
    return GrpoSettings(**values)


def window_policies(objective: str) -> dict[str, str]:
    """What a named objective sets of the window: DAPO's dynamic sampling."""
    return {"zero_variance": "drop"} if objective == "dapo" else {}


def check_window(window: WindowSettings, settings: GrpoSettings) -> None:
    """Raises SettingsError where a window takes what the settings cannot train."""
    if window.ungrouped == "value" and settings.advantage != GAE:
        raise SettingsError("ungrouped value needs a value head: choose advantage gae, or ungrouped window or running")
    if window.ungrouped == "running" and settings.advantage == GAE:
        raise SettingsError("advantage gae has a value head for its baseline: choose ungrouped value")
