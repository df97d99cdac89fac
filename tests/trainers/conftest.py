import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from headrace.trainers.models.llama import Llama, LlamaSettings

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 48,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "dtype": "float32",
}


@pytest.fixture
def make_model(tmp_path: Path) -> Callable[..., Path]:
    """Writes a random small Llama; keyword arguments change its config."""

    def make(name: str = "model", *, seed: int = 0, **changes: Any) -> Path:
        config = CONFIG | changes
        settings = LlamaSettings.from_config(config)
        assert settings is not None
        generator = torch.Generator().manual_seed(seed)
        tensors = {
            key: torch.ones(p.shape) if "norm" in key else 0.2 * torch.randn(p.shape, generator=generator)
            for key, p in Llama(settings).named_parameters()
        }
        directory = tmp_path / name
        directory.mkdir()
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
        (directory / "config.json").write_text(json.dumps(config))
        (directory / "tokenizer_config.json").write_text("{}")
        return directory

    return make


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
