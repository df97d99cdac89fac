"""Loss of a value head."""

import torch
from torch import Tensor


def value_loss(values: Tensor, old: Tensor, returns: Tensor, *, clip: float) -> Tensor:
    """Loss of each token: half the square of the error, or of that of the clipped value, whichever is larger.

    A value moves at most `clip` away from what it was when the window's advantages were computed. PPO's reference code,
    as in verl and TRL.
    """
    held = torch.maximum(torch.minimum(values, old + clip), old - clip)
    return 0.5 * torch.maximum((values - returns).square(), (held - returns).square())
