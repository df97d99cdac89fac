"""The value head of PPO: what is still to be expected, from the state before each token."""

import torch
from torch import Tensor, nn


class ValueHead(nn.Module):
    """One linear layer on the policy's last hidden states. It begins at zero, so that it expects nothing."""

    def __init__(self, hidden_size: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(1, dtype=dtype))

    def forward(self, hidden: Tensor) -> Tensor:
        """Values [tokens] of hidden states [tokens, hidden]."""
        # No matrix product, which autocast would compute in half the precision.
        return (hidden.to(torch.promote_types(hidden.dtype, torch.float32)) * self.weight).sum(-1) + self.bias
