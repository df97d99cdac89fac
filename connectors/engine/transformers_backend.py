"""Any other Hugging Face causal language model, computed by transformers: correct for all, batched for none."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from torch import Tensor
from transformers import AutoConfig

from headrace.connectors.engine.backend import HEAD, Backend, to_tensor
from headrace.connectors.engine.checkpoint import TensorBytes, signature


class TransformersBackend(Backend):
    """A cache of its own for each row and one forward pass a row.

    Sliding windows, recurrent states and the like differ too much between models for one shared cache.
    """

    def __init__(self, directory: Path, config: dict[str, Any], tensors: Mapping[str, TensorBytes]) -> None:
        self._config = cast("Any", AutoConfig.from_pretrained(directory))
        self._kind: Any = getattr(transformers, config["architectures"][0])
        text: Any = self._config.get_text_config()
        self.vocab_size = int(text.vocab_size)
        self.max_positions = int(getattr(text, "max_position_embeddings", None) or 2048)
        self.signature = signature(tensors)
        self.optional = frozenset({HEAD}) if config.get("tie_word_embeddings") else frozenset()
        self.rows = 0
        self._caches: list[Any] = []
        self._model = self.prepare(tensors)

    def prepare(self, tensors: Mapping[str, TensorBytes]) -> Any:
        state = {name: to_tensor(tensor) for name, tensor in tensors.items()}
        return self._kind.from_pretrained(None, config=self._config, state_dict=state, dtype=torch.float32).eval()

    def install(self, prepared: Any) -> None:
        self._model = prepared

    def prefill(self, prompts: Sequence[Sequence[int]], copies: Sequence[int]) -> Tensor:
        logits: list[Tensor] = []
        for prompt, count in zip(prompts, copies, strict=True):
            out = self._model(input_ids=torch.tensor([list(prompt)]), use_cache=True, logits_to_keep=1)
            self._caches += [out.past_key_values, *(copy.deepcopy(out.past_key_values) for _ in range(count - 1))]
            logits += [out.logits[0, -1].float()] * count
        self.rows = len(self._caches)
        return torch.stack(logits)

    def decode(self, tokens: Tensor) -> Tensor:
        logits: list[Tensor] = []
        for row, cache in enumerate(self._caches):
            out = self._model(input_ids=tokens[row].view(1, 1), past_key_values=cache, use_cache=True)
            self._caches[row] = out.past_key_values
            logits.append(out.logits[0, -1].float())
        return torch.stack(logits)

    def keep(self, order: Sequence[int]) -> None:
        self._caches = [self._caches[row] for row in order]
        self.rows = len(order)
