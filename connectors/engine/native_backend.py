"""The Llama family, computed by `decoder`, all rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headrace.connectors.engine.architecture import DecoderConfig
from headrace.connectors.engine.backend import HEAD, Backend, to_tensor
from headrace.connectors.engine.checkpoint import TensorBytes, signature
from headrace.connectors.engine.decoder import DecoderWeights, arrange, hidden_states, rotary_table


class NativeBackend(Backend):
    """A model of the Llama family, with the cache as one tensor a layer for all rows."""

    def __init__(self, config: DecoderConfig, tensors: Mapping[str, TensorBytes]) -> None:
        self.config = config
        self.vocab_size, self.max_positions = config.vocab_size, config.max_positions
        self.signature = signature(tensors)
        self.optional = frozenset({HEAD}) if config.tied else frozenset()
        self.rows = 0
        self._rotary = rotary_table(config)
        self._weights: DecoderWeights = self.prepare(tensors)
        self._lengths: list[int] = []
        self._cache = self._allocate(16, 64)

    def prepare(self, tensors: Mapping[str, TensorBytes]) -> DecoderWeights:
        return arrange(self.config, {name: to_tensor(tensor) for name, tensor in tensors.items()})

    def install(self, prepared: DecoderWeights) -> None:
        self._weights = prepared

    def prefill(self, prompts: Sequence[Sequence[int]], copies: Sequence[int]) -> Tensor:
        lengths = [len(prompt) for prompt in prompts]
        longest, before = max(lengths), self.rows
        source = [i for i, count in enumerate(copies) for _ in range(count)]
        self._lengths += [lengths[i] for i in source]
        self.rows += len(source)
        self._reserve(self.rows, longest)
        ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts])
        index = torch.tensor(source)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._cache[layer]
            keys[before : self.rows, :, :longest] = k[index]
            values[before : self.rows, :, :longest] = v[index]
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

        hidden = hidden_states(self._weights, self.config, self._rotary, ids, torch.arange(longest), attend)
        last = hidden[torch.arange(len(prompts)), torch.tensor(lengths) - 1]
        return torch.nn.functional.linear(last, self._weights.head)[index]

    def decode(self, tokens: Tensor) -> Tensor:
        longest, n = max(self._lengths) + 1, self.rows
        self._reserve(n, longest)
        positions, row = torch.tensor(self._lengths), torch.arange(n)
        mask = (torch.arange(longest) <= positions[:, None])[:, None, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._cache[layer]
            keys[row, :, positions] = k[:, :, 0]
            values[row, :, positions] = v[:, :, 0]
            keys, values = keys[:n, :, :longest], values[:n, :, :longest]
            return torch.nn.functional.scaled_dot_product_attention(q, keys, values, mask, enable_gqa=True)

        hidden = hidden_states(self._weights, self.config, self._rotary, tokens[:, None], positions[:, None], attend)
        self._lengths = [length + 1 for length in self._lengths]
        return torch.nn.functional.linear(hidden[:, 0], self._weights.head)

    def keep(self, order: Sequence[int]) -> None:
        moved = [(to, source) for to, source in enumerate(order) if to != source]
        if moved:
            longest = max(self._lengths[source] for source in order)
            to, source = torch.tensor(moved).unbind(1)
            for keys, values in self._cache:
                keys[to, :, :longest] = keys[source, :, :longest]
                values[to, :, :longest] = values[source, :, :longest]
        self._lengths = [self._lengths[source] for source in order]
        self.rows = len(order)

    def _allocate(self, rows: int, length: int) -> list[tuple[Tensor, Tensor]]:
        # Zeros, not empty: what attention masks must still be finite.
        shape = (rows, self.config.kv_heads, length, self.config.head_dim)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in range(self.config.layers)]

    def _reserve(self, rows: int, length: int) -> None:
        has_rows, _, has_length, _ = self._cache[0][0].shape
        if rows <= has_rows and length <= has_length:
            return
        # Powers of two, so that growing costs no more than what was there.
        new = self._allocate(
            max(has_rows, 1 << (rows - 1).bit_length()), max(has_length, 1 << (length - 1).bit_length())
        )
        for (old_keys, old_values), (keys, values) in zip(self._cache, new, strict=True):
            keys[:has_rows, :, :has_length] = old_keys
            values[:has_rows, :, :has_length] = old_values
        self._cache = new
