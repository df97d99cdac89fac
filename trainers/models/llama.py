"""Llama's forward pass on torch alone: the weights and the arithmetic of Hugging Face's implementation.

Importing transformers costs more than twice what importing torch does, which is most of the start of a process that
runs a small model. The names of the parameters are those of `transformers.LlamaForCausalLM`.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Parameters take their storage from the file that is loaded. Named at every module, because torch's device
# context, like a random initialisation on this device, imports its compiler, which costs as much as torch itself.
_UNFILLED = "meta"


@dataclass(frozen=True, kw_only=True)
class LlamaSettings:
    """The part of a Llama `config.json` that shapes the forward pass."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_theta: float
    norm_eps: float
    tied: bool

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LlamaSettings | None":
        """None where the config asks for something that is not implemented here."""
        rope: dict[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
        plain = (
            config.get("model_type") == "llama"
            and rope.get("rope_type", rope.get("type", "default")) == "default"
            and config.get("hidden_act", "silu") == "silu"
            and not config.get("attention_bias", False)
            and not config.get("mlp_bias", False)
            and config.get("pretraining_tp", 1) == 1
            and "quantization_config" not in config
        )
        if not plain:
            return None
        heads = int(config["num_attention_heads"])
        return cls(
            vocab_size=int(config["vocab_size"]),
            hidden_size=int(config["hidden_size"]),
            intermediate_size=int(config["intermediate_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
            rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
            norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            tied=bool(config.get("tie_word_embeddings", False)),
        )


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, device=_UNFILLED))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, settings: LlamaSettings) -> None:
        super().__init__()
        self.settings = settings
        size, width = settings.hidden_size, settings.head_dim
        self.q_proj = nn.Linear(size, settings.heads * width, bias=False, device=_UNFILLED)
        self.k_proj = nn.Linear(size, settings.kv_heads * width, bias=False, device=_UNFILLED)
        self.v_proj = nn.Linear(size, settings.kv_heads * width, bias=False, device=_UNFILLED)
        self.o_proj = nn.Linear(settings.heads * width, size, bias=False, device=_UNFILLED)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, lengths: list[int] | None = None
    ) -> Tensor:
        batch, length, _ = x.shape
        shape = (batch, length, -1, self.settings.head_dim)
        q = _rotate(self.q_proj(x).view(shape).transpose(1, 2), cos, sin)
        k = _rotate(self.k_proj(x).view(shape).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        repeat = self.settings.heads // self.settings.kv_heads
        if repeat > 1:
            k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        if lengths is not None:
            mixed = _apart(q, k, v, lengths)
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class MLP(nn.Module):
    def __init__(self, settings: LlamaSettings) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(settings.hidden_size, settings.intermediate_size, bias=False, device=_UNFILLED)
        self.up_proj = nn.Linear(settings.hidden_size, settings.intermediate_size, bias=False, device=_UNFILLED)
        self.down_proj = nn.Linear(settings.intermediate_size, settings.hidden_size, bias=False, device=_UNFILLED)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, settings: LlamaSettings) -> None:
        super().__init__()
        self.self_attn = Attention(settings)
        self.mlp = MLP(settings)
        self.input_layernorm = RMSNorm(settings.hidden_size, settings.norm_eps)
        self.post_attention_layernorm = RMSNorm(settings.hidden_size, settings.norm_eps)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, lengths: list[int] | None = None
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask, lengths)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, settings: LlamaSettings) -> None:
        super().__init__()
        size = (settings.vocab_size, settings.hidden_size)
        self.embed_tokens = nn.Embedding(*size, _weight=torch.empty(size, device=_UNFILLED))
        self.layers = nn.ModuleList(Layer(settings) for _ in range(settings.layers))
        self.norm = RMSNorm(settings.hidden_size, settings.norm_eps)
        width = settings.head_dim
        # Plain attribute, not a buffer: it is no part of the weights, and stays float32 under any dtype.
        self.inverse_frequency = 1.0 / settings.rope_theta ** (torch.arange(0, width, 2).float() / width)

    def forward(
        self, token_ids: Tensor, positions: Tensor | None, mask: Tensor | None, lengths: list[int] | None = None
    ) -> Tensor:
        x: Tensor = self.embed_tokens(token_ids)
        if positions is None:
            positions = torch.arange(token_ids.shape[1], device=x.device)
        angles = positions.float().unsqueeze(-1) * self.inverse_frequency.to(x.device)
        angles = torch.cat((angles, angles), -1)
        if angles.dim() == 3:
            angles = angles.unsqueeze(1)  # the same for every head
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        heads_mask = None if mask is None else mask.unsqueeze(1)
        for layer in self.layers:
            x = layer(x, cos, sin, heads_mask, lengths)
        return self.norm(x)


class Llama(nn.Module):
    """A Llama for training and scoring: whole sequences, padded on the right, no cache.

    Its parameters are on the meta device until `load_state_dict(..., assign=True)`.
    """

    def __init__(self, settings: LlamaSettings) -> None:
        super().__init__()
        self.settings = settings
        self.model = Decoder(settings)
        self.lm_head = nn.Linear(settings.hidden_size, settings.vocab_size, bias=False, device=_UNFILLED)
        if settings.tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def hidden(
        self,
        token_ids: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        lengths: list[int] | None = None,
    ) -> Tensor:
        """Last hidden states [batch, length, hidden] of token ids [batch, length].

        Attention is causal, so what stands to the right of a sequence cannot reach it and needs no mask.

        Args:
            positions: of each token, [batch, length]; counted from the left where it is None.
            mask: true where a token attends to another, [batch, length, length]; causal where it is None.
            lengths: of the sequences that lie one behind the other in the only row, each causal within itself.
        """
        return self.model(token_ids, positions, mask, lengths)

    def head(self, hidden: Tensor) -> Tensor:
        """Logits [..., vocabulary] of hidden states [..., hidden]."""
        return self.lm_head(hidden)


def _apart(q: Tensor, k: Tensor, v: Tensor, lengths: list[int]) -> Tensor:
    """Causal attention of packed sequences [1, heads, tokens, width], each with itself; equal lengths at once."""
    mixed: list[Tensor] = []
    start = 0
    for length, same in groupby(lengths):
        count = len(list(same))
        end = start + count * length
        shape = (-1, count, length, q.shape[-1])
        each = functional.scaled_dot_product_attention(
            q[0, :, start:end].reshape(shape).transpose(0, 1),
            k[0, :, start:end].reshape(shape).transpose(0, 1),
            v[0, :, start:end].reshape(shape).transpose(0, 1),
            is_causal=True,
        )
        mixed.append(each.transpose(0, 1).flatten(1, 2))
        start = end
    return torch.cat(mixed, 1).unsqueeze(0)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (arXiv:2104.09864) in the half-split layout of Hugging Face."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin
