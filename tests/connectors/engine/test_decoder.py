"""The backends against plain transformers, on random models of each family."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from headrace.connectors.engine.checkpoint import CheckpointError, read_checkpoint
from headrace.connectors.engine.load import load_backend
from headrace.connectors.engine.native_backend import NativeBackend
from headrace.connectors.engine.transformers_backend import TransformersBackend

SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}
MODELS: dict[str, tuple[Any, Any, type]] = {
    "llama": (LlamaForCausalLM, LlamaConfig(**SIZES, head_dim=16, rope_theta=5000.0), NativeBackend),
    "llama tied": (LlamaForCausalLM, LlamaConfig(**SIZES, tie_word_embeddings=True), NativeBackend),
    "llama with biases": (LlamaForCausalLM, LlamaConfig(**SIZES, attention_bias=True), NativeBackend),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**SIZES, tie_word_embeddings=True), NativeBackend),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**SIZES, head_dim=8), NativeBackend),
    "mistral": (MistralForCausalLM, MistralConfig(**SIZES, sliding_window=None), NativeBackend),
    "mistral, sliding": (MistralForCausalLM, MistralConfig(**SIZES, sliding_window=8), TransformersBackend),
    "llama, scaled rope": (
        LlamaForCausalLM,
        LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}),
        TransformersBackend,
    ),
    "gpt2": (GPT2LMHeadModel, GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4), TransformersBackend),
}


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_every_step_gives_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    kind, config, backend_type = MODELS[name]
    torch.manual_seed(0)
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))  # biases and norms that say something
    model.save_pretrained(tmp_path)
    backend = load_backend(tmp_path)
    assert type(backend) is backend_type
    prompts = [[5, 6, 7], [8] * 17, [9, 10]]
    rows = [list(prompt) for prompt, copies in zip(prompts, [1, 2, 1], strict=True) for _ in range(copies)]

    def agree(logits: torch.Tensor) -> None:
        for row, found in zip(rows, logits, strict=True):
            wanted = model(torch.tensor([row])).logits[0, -1]
            assert torch.allclose(found.log_softmax(-1), wanted.log_softmax(-1), atol=1e-5)

    def decode(tokens: list[int]) -> None:
        logits = backend.decode(torch.tensor(tokens))
        for row, token in zip(rows, tokens, strict=True):
            row.append(token)
        agree(logits)

    agree(backend.prefill(prompts, [1, 2, 1]))
    decode([1, 2, 3, 4])
    decode([5, 6, 7, 8])
    rows = [rows[0], rows[3], rows[2]]  # row 1 has ended, the last took its place
    backend.keep([0, 3, 2])
    decode([9, 10, 11])
    late = [20, 21, 22, 23]  # a request joins between two steps
    logits = backend.prefill([late], [1])
    rows.append(late)
    for row, found in zip(rows[-1:], logits, strict=True):
        assert torch.allclose(found, model(torch.tensor([row])).logits[0, -1], atol=1e-4)
    for token in range(60):  # beyond the cache's first size
        decode([token, token, token + 1, token + 2])


@pytest.mark.parametrize("name", ["llama", "llama tied", "gpt2"])
@torch.inference_mode()
def test_weights_of_another_checkpoint_are_installed_whole(name: str, tmp_path: Path) -> None:
    kind, config, _ = MODELS[name]
    torch.manual_seed(0)
    kind(config).save_pretrained(tmp_path / "a")
    other = kind(config).eval()
    other.save_pretrained(tmp_path / "b")
    backend = load_backend(tmp_path / "a")
    tensors = read_checkpoint(str(tmp_path / "b"))
    backend.check(tensors)
    backend.install(backend.prepare(tensors))
    wanted = other(torch.tensor([[5, 6, 7]])).logits[0, -1]
    assert torch.allclose(backend.prefill([[5, 6, 7]], [1])[0], wanted, atol=1e-5)


def test_bfloat16_checkpoints_are_served_and_followed_by_wider_ones(tmp_path: Path) -> None:
    kind, config, _ = MODELS["llama"]
    model = kind(config)
    model.save_pretrained(tmp_path / "wide")
    model.to(torch.bfloat16).save_pretrained(tmp_path / "narrow")
    narrow, wide = load_backend(tmp_path / "narrow"), load_backend(tmp_path / "wide")
    narrow.check(read_checkpoint(str(tmp_path / "wide")))
    with pytest.raises(CheckpointError, match="BF16") as error:
        wide.check(read_checkpoint(str(tmp_path / "narrow")))
    assert error.value.reason == "dtype"
