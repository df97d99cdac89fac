"""Makes the demo's model on the spot: random weights, then a warm start that teaches the format and not the task."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save
from tokenizers import Tokenizer
from torch import Tensor

from headrace.connectors.engine.architecture import native_config
from headrace.connectors.engine.decoder import arrange, hidden_states, parameter_shapes, rotary_table
from headrace.demo.tasks import DemoTask
from headrace.demo.tinymodel.tokenizer import (
    END_OF_TEXT,
    TURN_END,
    build_tokenizer,
    chat_prompt,
    save_tokenizer,
)
from headrace.streams.errors import HeadraceError

# An initial range of 0.02 learns five to ten times slower at this size, or not at all.
INITIALIZER_RANGE = 0.1
MAX_POSITIONS = 1024


class ModelExistsError(HeadraceError):
    """The target directory is already there; it is never overwritten."""


@dataclass(frozen=True, slots=True)
class CreatedModel:
    """What `create_model` made; loss is that of the last warm-start step (nats a token)."""

    directory: str
    task: str
    seed: int
    parameters: int
    vocabulary: int
    loss: float
    seconds: float

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def model_config(tokenizer: Tokenizer) -> dict[str, Any]:
    """The `config.json` of a Llama of about 0.2 M parameters, its vocabulary exactly the tokenizer's."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "hidden_act": "silu",
        "max_position_embeddings": MAX_POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "rope_theta": 10000.0,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "initializer_range": INITIALIZER_RANGE,
        "tie_word_embeddings": False,
        "use_cache": True,
        "dtype": "float32",
        "bos_token_id": tokenizer.token_to_id(END_OF_TEXT),
        "eos_token_id": tokenizer.token_to_id(TURN_END),
        "pad_token_id": tokenizer.token_to_id(END_OF_TEXT),
    }


def create_model(directory: Path, task: DemoTask, seed: int, steps: int = 60) -> CreatedModel:
    """Writes a Hugging Face model directory; it appears whole, by one rename.

    Raises:
        ModelExistsError: the directory exists.
    """
    if directory.exists():
        raise ModelExistsError(f"{directory} exists already; remove it or name another directory")
    began = time.perf_counter()
    torch.set_num_threads(1)
    tokenizer = build_tokenizer(task.texts)
    config = model_config(tokenizer)
    generator = torch.Generator().manual_seed(seed)
    tensors = _initial(config, generator)
    loss = _warm_start(config, tensors, _rows(task, tokenizer, seed), steps)
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}")
    temporary.mkdir(parents=True)
    try:
        _save(temporary, config, tokenizer, tensors)
        temporary.rename(directory)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if directory.exists():
            raise ModelExistsError(f"{directory} was made by someone else meanwhile") from None
        raise
    parameters = sum(tensor.numel() for tensor in tensors.values())
    seconds = round(time.perf_counter() - began, 3)
    return CreatedModel(str(directory), task.name, seed, parameters, config["vocab_size"], round(loss, 4), seconds)


def _initial(config: dict[str, Any], generator: torch.Generator) -> dict[str, Tensor]:
    decoder = native_config(config)
    assert decoder is not None
    tensors: dict[str, Tensor] = {}
    for name, shape in parameter_shapes(decoder).items():
        if name.endswith("norm.weight"):
            tensors[name] = torch.ones(shape)
        else:
            tensors[name] = torch.randn(shape, generator=generator) * INITIALIZER_RANGE
    return tensors


def _rows(task: DemoTask, tokenizer: Tokenizer, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    def ids(text: str) -> list[int]:
        if text not in known:
            known[text] = tokenizer.encode(text).ids
        return known[text]

    known: dict[str, list[int]] = {}
    for texts, answer in task.warm_start(seed):
        yield ids(chat_prompt(*texts)), ids(answer + TURN_END)


def _warm_start(
    config: dict[str, Any],
    tensors: dict[str, Tensor],
    rows: Iterator[tuple[list[int], list[int]]],
    steps: int,
    batch: int = 32,
    rate: float = 3e-3,
) -> float:
    """Supervised steps in place with Adam (Kingma and Ba 2015); returns the last loss.

    Written out, because torch.optim imports the compiler, which costs a second.
    """
    decoder = native_config(config)
    assert decoder is not None
    rotary = rotary_table(decoder)
    parameters = list(tensors.values())
    first = [torch.zeros_like(p) for p in parameters]
    second = [torch.zeros_like(p) for p in parameters]
    value = float("nan")
    for parameter in parameters:
        parameter.requires_grad_()
    for step in range(1, steps + 1):
        drawn = list(islice(rows, batch))
        length = max(len(prompt) + len(answer) for prompt, answer in drawn)
        pad: int = config["pad_token_id"]
        ids = torch.tensor([p + a + [pad] * (length - len(p) - len(a)) for p, a in drawn])
        where = torch.tensor([[i, len(p) + j - 1] for i, (p, a) in enumerate(drawn) for j in range(len(a))]).unbind(1)
        weights = arrange(decoder, tensors)
        hidden = hidden_states(weights, decoder, rotary, ids, torch.arange(length))[where]
        loss = F.cross_entropy(F.linear(hidden, weights.head), ids[where[0], where[1] + 1])
        gradients = torch.autograd.grad(loss, parameters)
        value = loss.item()
        with torch.no_grad():
            scale = (1 - 0.999**step) ** 0.5
            for parameter, gradient, mean, square in zip(parameters, gradients, first, second, strict=True):
                mean.lerp_(gradient, 0.1)
                square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                parameter.addcdiv_(mean, (square.sqrt() / scale).add_(1e-8), value=-rate / (1 - 0.9**step))
    for parameter in parameters:
        parameter.requires_grad_(False)
    return value


def _save(directory: Path, config: dict[str, Any], tokenizer: Tokenizer, tensors: dict[str, Tensor]) -> None:
    generation = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    (directory / "generation_config.json").write_text(json.dumps(generation, indent=2))
    (directory / "model.safetensors").write_bytes(save(tensors, metadata={"format": "pt"}))
    save_tokenizer(tokenizer, directory, MAX_POSITIONS)
