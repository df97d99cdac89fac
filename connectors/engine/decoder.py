"""A Llama-family decoder in plain torch functions: no transformers import, weights that are swapped by reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from headrace.connectors.engine.architecture import DecoderConfig

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q [B, heads, T, d], k and v [B, kv_heads, T, d]) -> [B, heads, T, d]."""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One block; q, k, v and gate, up are joined so that each is one matrix product."""

    input_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """All tensors of one version."""

    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor


def parameter_shapes(config: DecoderConfig, *, qkv_bias: bool = False, out_bias: bool = False) -> dict[str, list[int]]:
    """Name and shape of each tensor of the checkpoint, in Hugging Face's names."""
    h, f, d = config.hidden_size, config.intermediate_size, config.head_dim
    q, kv = config.heads * d, config.kv_heads * d
    shapes = {"model.embed_tokens.weight": [config.vocab_size, h], "model.norm.weight": [h]}
    for i in range(config.layers):
        p = f"model.layers.{i}."
        shapes |= {p + "input_layernorm.weight": [h], p + "post_attention_layernorm.weight": [h]}
        for name, rows, columns in (("q", q, h), ("k", kv, h), ("v", kv, h), ("o", h, q)):
            shapes[f"{p}self_attn.{name}_proj.weight"] = [rows, columns]
            if out_bias if name == "o" else qkv_bias:
                shapes[f"{p}self_attn.{name}_proj.bias"] = [rows]
        if config.qk_norm:
            shapes |= {p + "self_attn.q_norm.weight": [d], p + "self_attn.k_norm.weight": [d]}
        shapes |= {p + "mlp.gate_proj.weight": [f, h], p + "mlp.up_proj.weight": [f, h]}
        shapes[p + "mlp.down_proj.weight"] = [h, f]
    if not config.tied:
        shapes["lm_head.weight"] = [config.vocab_size, h]
    return shapes


def arrange(config: DecoderConfig, tensors: Mapping[str, Tensor]) -> DecoderWeights:
    """The tensors of a checkpoint as this module computes with them. Differentiable."""
    layers: list[LayerWeights] = []
    for i in range(config.layers):
        p = f"model.layers.{i}."
        a = p + "self_attn."
        bias = [tensors[f"{a}{n}_proj.bias"] for n in "qkv"] if f"{a}q_proj.bias" in tensors else None
        layers.append(
            LayerWeights(
                input_norm=tensors[p + "input_layernorm.weight"],
                qkv=torch.cat([tensors[f"{a}{n}_proj.weight"] for n in "qkv"]),
                qkv_bias=torch.cat(bias) if bias else None,
                q_norm=tensors.get(a + "q_norm.weight"),
                k_norm=tensors.get(a + "k_norm.weight"),
                out=tensors[a + "o_proj.weight"],
                out_bias=tensors.get(a + "o_proj.bias"),
                post_norm=tensors[p + "post_attention_layernorm.weight"],
                gate_up=torch.cat([tensors[p + "mlp.gate_proj.weight"], tensors[p + "mlp.up_proj.weight"]]),
                down=tensors[p + "mlp.down_proj.weight"],
            )
        )
    embedding = tensors["model.embed_tokens.weight"]
    head = embedding if config.tied else tensors["lm_head.weight"]
    return DecoderWeights(embedding, tuple(layers), tensors["model.norm.weight"], head)


def rotary_table(config: DecoderConfig) -> Tensor:
    """cos and sin of every position, [2, max_positions, head_dim] (Su et al. 2021, halves as in Llama)."""
    inverse = 1.0 / config.rope_theta ** (torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim)
    angles = torch.outer(torch.arange(config.max_positions, dtype=torch.float32), inverse).repeat(1, 2)
    return torch.stack([angles.cos(), angles.sin()])


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def causal_attention(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of whole sequences to themselves; padding on the right needs no mask."""
    del layer
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def hidden_states(
    weights: DecoderWeights,
    config: DecoderConfig,
    rotary: Tensor,
    ids: Tensor,
    positions: Tensor,
    attend: Attend = causal_attention,
) -> Tensor:
    """The last hidden states [B, T, hidden] of ids [B, T] at positions [B, T] (or [T])."""
    batch, length = ids.shape
    d, eps, h = config.head_dim, config.rms_norm_eps, (config.hidden_size,)
    sizes = [config.heads * d, config.kv_heads * d, config.kv_heads * d]
    cos, sin = rotary[:, positions].unsqueeze(-3)
    x = F.embedding(ids, weights.embedding)
    for i, layer in enumerate(weights.layers):
        joined = F.linear(F.rms_norm(x, h, layer.input_norm, eps), layer.qkv, layer.qkv_bias)
        q, k, v = (part.view(batch, length, -1, d).transpose(1, 2) for part in torch.split(joined, sizes, -1))
        if layer.q_norm is not None:
            q, k = F.rms_norm(q, (d,), layer.q_norm, eps), F.rms_norm(k, (d,), layer.k_norm, eps)
        context = attend(i, _rotate(q, cos, sin), _rotate(k, cos, sin), v)
        x = x + F.linear(context.transpose(1, 2).reshape(batch, length, sizes[0]), layer.out, layer.out_bias)
        gate, up = F.linear(F.rms_norm(x, h, layer.post_norm, eps), layer.gate_up).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, layer.down)
    return F.rms_norm(x, h, weights.norm, eps)
