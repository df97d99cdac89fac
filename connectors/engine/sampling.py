"""Sampling a token for each row, each with settings and a random stream of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one row is sampled: temperature 0 is greedy, top_k 0 and top_p 1 are off."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    @property
    def truncated(self) -> bool:
        """Whether tokens are excluded."""
        return self.top_k > 0 or self.top_p < 1.0


def _mix(value: int) -> int:
    # SplitMix64 (Steele, Lea and Flood 2014).
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def stream_key(seed: int, choice: int) -> int:
    """The random stream of one choice of a request."""
    return _mix((_mix(seed & _MASK) + (choice + 1) * _GOLDEN) & _MASK)


def uniform(key: int, position: int) -> float:
    """The number in [0, 1) of a stream at a position: a counter, so that batch mates and order change nothing."""
    return (_mix((key + (position + 1) * _GOLDEN) & _MASK) >> 12) * 2.0**-52


def sample(logits: Tensor, settings: Sequence[Sampling], uniforms: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Tokens [B] and the log-probabilities [B, V] of the distributions they were drawn from.

    Log-probabilities are those after temperature, top_k and top_p (excluded tokens: -inf), in float32. A greedy row has
    those at temperature 1, as in vLLM's processed mode. A token is the first whose cumulative probability, in the order
    of ids, exceeds the row's uniform number.
    """
    if any(s.temperature != 1.0 for s in settings):
        logits = logits / torch.tensor([s.temperature or 1.0 for s in settings])[:, None]
    cut = [i for i, s in enumerate(settings) if s.truncated and s.temperature]
    if cut:
        logits = logits.clone()
        logits[cut] = _truncate(logits[cut], [settings[i] for i in cut])
    logprobs = logits.log_softmax(-1)
    cumulative = logprobs.double().exp().cumsum(-1)
    targets = torch.tensor(uniforms, dtype=torch.float64)[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, targets, right=True)[:, 0]
    greedy = [i for i, s in enumerate(settings) if not s.temperature]
    if greedy:
        tokens[greedy] = logprobs[greedy].argmax(-1)
    return tokens, logprobs


def _truncate(logits: Tensor, settings: Sequence[Sampling]) -> Tensor:
    """-inf outside the k likeliest tokens and outside the smallest set that holds top_p of what is left."""
    width = logits.shape[-1]
    ordered, index = torch.sort(logits, dim=-1, descending=True, stable=True)
    rank = torch.arange(width)
    k = torch.tensor([min(s.top_k, width) if s.top_k > 0 else width for s in settings])[:, None]
    ordered = ordered.masked_fill(rank >= k, -torch.inf)
    p = torch.tensor([s.top_p for s in settings], dtype=torch.float64)[:, None]
    probability = ordered.double().softmax(-1)
    # The mass before a token: the first is always kept.
    ordered = ordered.masked_fill((probability.cumsum(-1) - probability >= p) & (rank > 0), -torch.inf)
    return torch.empty_like(logits).scatter_(-1, index, ordered)
