"""Which decoders the builtin engine computes itself, read from a Hugging Face `config.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

NATIVE = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The sizes of a decoder of the Llama family (grouped-query attention, rotary positions, SwiGLU)."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    rms_norm_eps: float
    rope_theta: float
    tied: bool
    qk_norm: bool = False


def read_config(directory: Path) -> dict[str, Any]:
    """The model directory's `config.json`."""
    return cast("dict[str, Any]", json.loads((directory / "config.json").read_text()))


def native_config(config: dict[str, Any]) -> DecoderConfig | None:
    """The decoder this config describes, or None where only transformers knows how to compute it."""
    architectures = cast("list[str]", config.get("architectures") or [])
    if not architectures or architectures[0] not in NATIVE:
        return None
    rope = cast("dict[str, Any]", config.get("rope_parameters") or config.get("rope_scaling") or {})
    plain = rope.get("rope_type", rope.get("type", "default")) == "default" and not config.get("partial_rotary_factor")
    windowed = config.get("sliding_window") and config.get("use_sliding_window", True)
    if not plain or windowed or config.get("hidden_act", "silu") != "silu":
        return None
    heads = int(config["num_attention_heads"])
    return DecoderConfig(
        vocab_size=int(config["vocab_size"]),
        hidden_size=int(config["hidden_size"]),
        intermediate_size=int(config["intermediate_size"]),
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
        max_positions=int(config.get("max_position_embeddings") or 2048),
        rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
        tied=bool(config.get("tie_word_embeddings", False)),
        qk_norm=architectures[0] == "Qwen3ForCausalLM",
    )
