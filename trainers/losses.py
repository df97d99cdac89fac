"""Per-token losses and how they add up. Torch; every tensor is flat over the trained tokens, shape [tokens]."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headrace.streams.errors import SettingsError

AGGREGATIONS = ("rollout_mean", "row_mean", "token_mean", "token_sum")


def clipped_loss(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, *, clip_low: float, clip_high: float
) -> Tensor:
    """Loss of each token: -min(ratio * A, clip(ratio) * A). PPO, arXiv:1707.06347; clip-higher, arXiv:2503.14476.

    Args:
        logprobs: of the tokens under the current weights.
        behaviour: of the same tokens when they were sampled.
        advantages: of the tokens' rollouts.
        clip_low: the ratio is clipped below 1 - clip_low.
        clip_high: and above 1 + clip_high.
    """
    ratio = (logprobs - behaviour).exp()
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def clipped(ratio: Tensor, advantages: Tensor, *, clip_low: float, clip_high: float) -> Tensor:
    """Which tokens have no gradient because the clip holds them: 1.0 or 0.0 each."""
    above = (ratio > 1.0 + clip_high) & (advantages > 0)
    below = (ratio < 1.0 - clip_low) & (advantages < 0)
    return (above | below).to(ratio.dtype)


def k3(behaviour: Tensor, current: Tensor) -> Tensor:
    """Each token's k3 estimate of KL(behaviour || current), never negative. http://joschu.net/blog/kl-approx.html"""
    log_ratio = current - behaviour
    return log_ratio.expm1() - log_ratio


def logprobs_and_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and entropy of each distribution, both [tokens], of logits [tokens, vocabulary].

    The temperature is already in the logits.
    """
    all_logprobs = logits.log_softmax(-1)
    taken = all_logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return taken, -(all_logprobs.exp() * all_logprobs).sum(-1)


def token_weights(
    row_of_token: npt.NDArray[np.int64], rollout_of_row: npt.NDArray[np.int64], aggregation: str
) -> npt.NDArray[np.float64]:
    """Weight of each token's loss in the sum that is the window's loss, [tokens].

    rollout_mean: each rollout counts the same, so that cutting a row in two changes nothing; row_mean: each row does;
    token_mean: each token does; token_sum: no division.

    Args:
        row_of_token: index of the row, [tokens].
        rollout_of_row: index of the rollout, [rows].

    Raises:
        SettingsError: there is no such aggregation.
    """
    tokens = int(row_of_token.size)
    if aggregation == "token_sum":
        return np.ones(tokens, dtype=np.float64)
    if aggregation == "token_mean":
        return np.full(tokens, 1.0 / max(1, tokens), dtype=np.float64)
    if aggregation == "row_mean":
        unit = row_of_token
    elif aggregation == "rollout_mean":
        unit = rollout_of_row[row_of_token]
    else:
        raise SettingsError(f"aggregation {aggregation!r}: choose one of {', '.join(AGGREGATIONS)}")
    sizes: npt.NDArray[np.float64] = np.bincount(unit, minlength=1).astype(np.float64)
    return 1.0 / (np.count_nonzero(sizes) * sizes[unit])
