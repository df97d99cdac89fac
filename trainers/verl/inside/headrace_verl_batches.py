# pyright: basic, reportMissingImports=false
"""The trainer's arrays to verl's TensorDict of jagged tensors, and back to flat figures."""

from __future__ import annotations

import numpy as np
import torch
from verl.utils import tensordict_utils as tu

DTYPES = {
    "token_ids": np.int32,
    "loss_mask": np.bool_,
    "logprobs": np.float32,
    "advantages": np.float32,
    "sizes": np.int64,
    "prompts": np.int64,
    "temperatures": np.float32,
    "fresh": np.bool_,
}


class Batch:
    """Rows of one optimizer step. Filled up with masked copies of the first row until each worker has as many."""

    def __init__(self, arrays, multiple):
        flat = {name: np.frombuffer(arrays[name], dtype=dtype) for name, dtype in DTYPES.items()}
        bounds = np.cumsum(flat["sizes"])[:-1].tolist()
        self.rows = flat["sizes"].size
        added = -self.rows % multiple
        per_token = {
            name: [torch.from_numpy(part.copy()) for part in np.split(flat[name], bounds)]
            for name in ("token_ids", "loss_mask", "logprobs", "advantages")
        }
        self.prompts = flat["prompts"].tolist() + flat["prompts"].tolist()[:1] * added
        for name, parts in per_token.items():
            parts += [torch.zeros_like(parts[0]) if name == "loss_mask" else parts[0]] * added
        self.tokens = per_token["token_ids"]
        self.temperatures = np.concatenate([flat["temperatures"], flat["temperatures"][:1].repeat(added)])
        self.fresh = np.concatenate([flat["fresh"], np.zeros(added, dtype=np.bool_)])
        self.masks = [mask[p:] for mask, p in zip(per_token["loss_mask"], self.prompts, strict=True)]
        self.behaviour = [values[p:] for values, p in zip(per_token["logprobs"], self.prompts, strict=True)]
        self.advantages = [values[p:] for values, p in zip(per_token["advantages"], self.prompts, strict=True)]
        self.old = self.behaviour
        self.weights: list[torch.Tensor] | None = None

    def __len__(self):
        return len(self.tokens)

    def part(self, indices, multiple):
        """Some of the rows, filled up."""
        chosen = list(indices)
        added = -len(chosen) % multiple
        other = object.__new__(Batch)
        other.rows = len(chosen)
        filled = chosen + chosen[:1] * added
        for name in ("tokens", "prompts", "behaviour", "advantages", "old"):
            setattr(other, name, [getattr(self, name)[i] for i in filled])
        other.masks = [self.masks[i] for i in chosen] + [torch.zeros_like(self.masks[i]) for i in chosen[:1] * added]
        other.weights = None if self.weights is None else [self.weights[i] for i in filled]
        other.temperatures = self.temperatures[filled]
        other.fresh = self.fresh[filled]
        return other

    def tensordict(self, *, micro_batch_tokens, pad, entropy, infer=False):
        """What `train_mini_batch` and `infer_batch` take."""
        masks = [mask.long() for mask in self.masks]
        tensors = {
            "input_ids": _jagged([t.long() for t in self.tokens]),
            "position_ids": _jagged([torch.arange(t.numel()) for t in self.tokens]),
            "prompts": _jagged([t[:p].long() for t, p in zip(self.tokens, self.prompts, strict=True)]),
            "responses": _jagged([t[p:].long() for t, p in zip(self.tokens, self.prompts, strict=True)]),
            "response_mask": _jagged(masks),
            "loss_mask": _jagged(masks),
            "old_log_probs": _jagged(self.old),
            "advantages": _jagged(self.advantages),
        }
        if self.weights is not None:
            tensors["rollout_is_weights"] = _jagged(self.weights)
        facts = {
            "pad_token_id": pad,
            "calculate_entropy": entropy,
            "global_batch_size": self.rows,
            "max_token_len_per_gpu": max(micro_batch_tokens, max(t.numel() for t in self.tokens)),
            "use_dynamic_bsz": True,
            "compute_loss": not infer,
        }
        if (self.temperatures == 1.0).all():
            facts["temperature"] = 1.0
        else:
            tensors["temperature"] = torch.from_numpy(self.temperatures.copy())
        if not infer:
            facts |= {"mini_batch_size": len(self), "epochs": 1, "seed": 0, "dataloader_kwargs": {"shuffle": False}}
        return tu.get_tensordict(tensors, facts)

    def padded(self, parts):
        """Rows of responses as a matrix, zero behind their ends."""
        return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)

    def of_responses(self, nested):
        """The responses' part of what verl says of whole rows: it stands one position before the token."""
        return [row[p - 1 : -1].float() for row, p in zip(nested.unbind(), self.prompts, strict=True)]


def _jagged(parts):
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged)
