"""What the scheduler asks of a model: rows of key-value cache that grow by one token a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from headrace.connectors.engine.checkpoint import Signature, TensorBytes, verify

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
HEAD = "lm_head.weight"


def to_tensor(tensor: TensorBytes) -> Tensor:
    """A torch tensor; floats become float32, in which the engine computes."""
    if not tensor.data.nbytes:
        return torch.empty(tensor.shape, dtype=_DTYPES[tensor.dtype])
    found = torch.frombuffer(tensor.data, dtype=_DTYPES[tensor.dtype]).view(tensor.shape)
    return found.to(torch.float32) if found.is_floating_point() else found


class Backend(ABC):
    """A model and the sequences it is generating, one row each, numbered from 0.

    Attributes:
        vocab_size: width of the logits.
        max_positions: the longest sequence.
        rows: how many sequences there are.
    """

    vocab_size: int
    max_positions: int
    rows: int
    signature: Signature
    optional: frozenset[str]

    @abstractmethod
    def prefill(self, prompts: Sequence[Sequence[int]], copies: Sequence[int]) -> Tensor:
        """Appends copies[i] rows for prompts[i], computed once; logits [sum(copies), vocab_size] of what follows."""

    @abstractmethod
    def decode(self, tokens: Tensor) -> Tensor:
        """Appends tokens [rows] to the rows; logits [rows, vocab_size] of what follows."""

    @abstractmethod
    def keep(self, order: Sequence[int]) -> None:
        """Row i becomes the former row order[i]; rows not named are freed."""

    @abstractmethod
    def prepare(self, tensors: Mapping[str, TensorBytes]) -> Any:
        """Weights ready to be installed; touches nothing of what serves. May run in another thread."""

    @abstractmethod
    def install(self, prepared: Any) -> None:
        """Swaps all weights at once; between two steps. The cache is kept."""

    def check(self, tensors: Mapping[str, TensorBytes]) -> None:
        """Raises CheckpointError unless the tensors are a whole, finite version of this model."""
        verify(tensors, self.signature, self.optional)
