"""Losses of the policy, one value a token."""

import torch
from torch import Tensor

from headrace.streams.errors import InvalidValueError

LOSSES = ("clip", "gspo", "reinforce")
RATIOS = ("behaviour", "decoupled")
LARGEST_LOG_RATIO = 10.0  # of a sequence; beyond it the exponential is of no use, and may overflow


def clipped_loss(
    logprobs: Tensor,
    old: Tensor,
    advantages: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> Tensor:
    """Loss of each token: -min(ratio * A, clip(ratio) * A). PPO, arXiv:1707.06347; clip-higher, arXiv:2503.14476.

    Args:
        logprobs: of the tokens under the current weights.
        old: of the same tokens under the weights that the ratio is taken against.
        advantages: of the tokens.
        clip_low: the ratio is clipped below 1 - clip_low.
        clip_high: and above 1 + clip_high.
        dual_clip: where the advantage is negative the loss is at most -dual_clip * A, arXiv:1912.09729.
    """
    return _clipped((logprobs - old).exp(), advantages, clip_low, clip_high, dual_clip)


def sequence_loss(
    logprobs: Tensor, old: Tensor, advantages: Tensor, responses: Tensor, *, clip_low: float, clip_high: float
) -> Tensor:
    """As `clipped_loss`, with one ratio for a response: its tokens' geometric mean. GSPO, arXiv:2507.18071, eq. 14.

    Each token's own log-probability carries the gradient, so that tokens of one response may differ in advantage.

    Args:
        responses: index of each token's response, from 0, [tokens].
    """
    log_ratio = (logprobs - old).detach()
    count = int(responses.max()) + 1 if responses.numel() else 0
    sums = torch.zeros(count, dtype=log_ratio.dtype, device=log_ratio.device).index_add_(0, responses, log_ratio)
    sizes = torch.bincount(responses, minlength=count).clamp(min=1)
    of_sequence = (sums / sizes)[responses]
    ratio = (logprobs - logprobs.detach() + of_sequence).clamp(max=LARGEST_LOG_RATIO).exp()
    return _clipped(ratio, advantages, clip_low, clip_high, None)


def reinforce_loss(logprobs: Tensor, old: Tensor, advantages: Tensor, *, truncation: float) -> Tensor:
    """Loss of each token: -min(ratio, truncation) * A * log-probability, without a gradient through the ratio.

    REINFORCE with truncated importance sampling; a token beyond the bound keeps its gradient, unlike under a clip.
    CISPO, arXiv:2506.13585; V-trace, arXiv:1802.01561.
    """
    weight = (logprobs.detach() - old).exp().clamp(max=truncation)
    return -weight * advantages * logprobs


def truncated_weight(proximal: Tensor, behaviour: Tensor, truncation: float) -> Tensor:
    """min(proximal / behaviour, truncation): what corrects for samples of older weights. arXiv:2505.24298, eq. 5."""
    return (proximal - behaviour).exp().clamp(max=truncation)


def clipped(ratio: Tensor, advantages: Tensor, *, clip_low: float, clip_high: float) -> Tensor:
    """Which tokens have no gradient because the clip holds them: 1.0 or 0.0 each."""
    above = (ratio > 1.0 + clip_high) & (advantages > 0)
    below = (ratio < 1.0 - clip_low) & (advantages < 0)
    return (above | below).to(ratio.dtype)


def check_loss(loss: str, ratio: str) -> None:
    """Raises SettingsError where there is no such loss or ratio."""
    if loss not in LOSSES:
        raise InvalidValueError(f"loss {loss!r}: choose one of {', '.join(LOSSES)}")
    if ratio not in RATIOS:
        raise InvalidValueError(f"ratio {ratio!r}: choose one of {', '.join(RATIOS)}")


def _clipped(ratio: Tensor, advantages: Tensor, low: float, high: float, dual: float | None) -> Tensor:
    each = -torch.minimum(ratio * advantages, ratio.clamp(1.0 - low, 1.0 + high) * advantages)
    return each if dual is None else torch.where(advantages < 0, torch.minimum(each, -dual * advantages), each)
