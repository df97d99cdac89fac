"""From the scores of a micro-batch's tokens to its loss."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headrace.trainers.batch import MicroBatch
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.losses.policy import clipped_loss, reinforce_loss, sequence_loss, truncated_weight
from headrace.trainers.losses.scores import kl
from headrace.trainers.losses.value import value_loss


def loss_of(batch: MicroBatch, logprobs: Tensor, entropy: Tensor, values: Tensor | None, s: GrpoSettings) -> Tensor:
    """The part of the window's loss that is this micro-batch's, a scalar.

    Args:
        logprobs: of each token of each row, [tokens], as `entropy` and `values`.
        values: of a value head; None without one.
    """
    advantages = torch.from_numpy(batch.advantages)
    each = _policy_loss(batch, logprobs, advantages, s) - s.entropy * entropy
    if s.needs_reference and s.kl_in == "loss":
        each = each + s.kl_beta * kl(s.kl, logprobs, tensor(batch.reference))
    if values is not None:
        learnt = value_loss(values, tensor(batch.values), tensor(batch.returns), clip=s.value_clip)
        each = each + s.value_coefficient * learnt
    return (each * torch.from_numpy(batch.weights)).sum()


def _policy_loss(batch: MicroBatch, logprobs: Tensor, advantages: Tensor, s: GrpoSettings) -> Tensor:
    behaviour = torch.from_numpy(batch.behaviour)
    old = tensor(batch.proximal) if s.ratio == "decoupled" else behaviour
    clips = {"clip_low": s.clip_low, "clip_high": s.clip_high}
    if s.loss == "gspo":
        each = sequence_loss(logprobs, old, advantages, torch.from_numpy(batch.responses), **clips)
    elif s.loss == "reinforce":
        each = reinforce_loss(logprobs, old, advantages, truncation=s.truncation)
    else:
        each = clipped_loss(logprobs, old, advantages, dual_clip=s.dual_clip, **clips)
    return each * truncated_weight(old, behaviour, s.truncation) if s.ratio == "decoupled" else each


def tensor(array: npt.NDArray[np.float32] | None) -> Tensor:
    """An array that the objective needs; the rows were scored before."""
    assert array is not None, "the rows were not scored"
    return torch.from_numpy(array)
