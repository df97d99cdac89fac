"""AdamW, arXiv:1711.05101, on torch's multi-tensor operations.

torch.optim imports torch's compiler when an optimizer is made, which takes as long as importing torch itself.
"""

from collections.abc import Mapping

import torch
from torch import Tensor


class AdamW:
    """Decoupled weight decay; the arithmetic and the order of operations of `torch.optim.AdamW(foreach=True)`.

    Args:
        parameters: by name, in the order in which the state is kept.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.parameters = dict(parameters)
        self.betas = betas
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self.steps = 0
        self._first = {name: torch.zeros_like(p, requires_grad=False) for name, p in self.parameters.items()}
        self._second = {name: torch.zeros_like(p, requires_grad=False) for name, p in self.parameters.items()}

    def clip_gradients(self, limit: float) -> float:
        """Scales all gradients so that their joint norm is at most `limit`; returns the norm before."""
        gradients = self._gradients()
        norms = torch.stack(list(torch._foreach_norm(gradients)))  # pyright: ignore[reportPrivateUsage]
        norm: Tensor = norms.square().sum().sqrt()
        scale: Tensor = (limit / (norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_(gradients, scale)  # pyright: ignore[reportPrivateUsage]
        return float(norm)

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """One update from the gradients that stand on the parameters."""
        self.steps += 1
        beta1, beta2 = self.betas
        parameters, gradients = list(self.parameters.values()), self._gradients()
        first, second = list(self._first.values()), list(self._second.values())
        if self.weight_decay:
            torch._foreach_mul_(parameters, 1.0 - lr * self.weight_decay)  # pyright: ignore[reportPrivateUsage]
        torch._foreach_lerp_(first, gradients, 1.0 - beta1)  # pyright: ignore[reportPrivateUsage]
        torch._foreach_mul_(second, beta2)  # pyright: ignore[reportPrivateUsage]
        torch._foreach_addcmul_(second, gradients, gradients, 1.0 - beta2)  # pyright: ignore[reportPrivateUsage]
        denominators = torch._foreach_sqrt(second)  # pyright: ignore[reportPrivateUsage]
        torch._foreach_div_(denominators, (1.0 - beta2**self.steps) ** 0.5)  # pyright: ignore[reportPrivateUsage]
        torch._foreach_add_(denominators, self.epsilon)  # pyright: ignore[reportPrivateUsage]
        size = -lr / (1.0 - beta1**self.steps)
        torch._foreach_addcdiv_(parameters, first, denominators, size)  # pyright: ignore[reportPrivateUsage]

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Both moments, by `first.<name>` and `second.<name>`; the number of steps is beside them in `steps`."""
        first = {f"first.{name}": tensor for name, tensor in self._first.items()}
        return first | {f"second.{name}": tensor for name, tensor in self._second.items()}

    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Goes on where `state` and `steps` were taken."""
        for name in self.parameters:
            self._first[name].copy_(state[f"first.{name}"])
            self._second[name].copy_(state[f"second.{name}"])
        self.steps = steps

    def _gradients(self) -> list[Tensor]:
        return [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.parameters.values()]
