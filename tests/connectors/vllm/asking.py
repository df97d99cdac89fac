"""Versions for a vLLM server, questions to it, and transformers as the judge of its answers."""

import hashlib
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from headrace.schemas.records import Weights
from tests.connectors.adapters import adapted_logprobs

TEMPERATURE = 1.3


def publish(base: Path, into: Path, version: int, noise: float = 0.05) -> Weights:
    """A changed copy of a model."""
    directory = into / f"weights-{uuid.uuid4().hex}"
    directory.mkdir()
    generator = torch.Generator().manual_seed(version)
    tensors = {
        name: tensor + noise * torch.randn(tensor.shape, generator=generator)
        for name, tensor in load_file(base / "model.safetensors").items()
    }
    (directory / "config.json").write_bytes((base / "config.json").read_bytes())
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    sums = {"model.safetensors": hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest()}
    return Weights(policy="policy", version=version, weights_id=f"id-{version}", uri=str(directory), sha256=sums)


def question(i: int, tokens: int = 8, **more: Any) -> dict[str, Any]:
    """Longer than a block of the prefix cache, so that a stale cache would show."""
    text = f"Please pick the digit {i % 10}. " * 40
    body = {
        "model": "policy",
        "messages": [{"role": "user", "content": text}],
        "seed": i,
        "temperature": TEMPERATURE,
        "max_tokens": tokens,
        "ignore_eos": True,
        "logprobs": True,
        "return_token_ids": True,
    }
    return body | more


async def ask(session: aiohttp.ClientSession, i: int, tokens: int = 8, **more: Any) -> dict[str, Any]:
    async with session.post("/v1/chat/completions", json=question(i, tokens, **more)) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


def difference(answer: dict[str, Any], weights: Weights | str | Path) -> float:
    """The largest between an answer's log-probabilities and those of a version, or of a model's directory."""
    (choice,) = answer["choices"]
    prompt, ids = answer["prompt_token_ids"], choice["token_ids"]
    found = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    if isinstance(weights, Weights) and weights.format == "lora":
        wanted = adapted_logprobs(weights.base_model or "", weights.uri, prompt, ids, TEMPERATURE)
    else:
        wanted = _logprobs(weights.uri if isinstance(weights, Weights) else weights, prompt, ids)
    return max(abs(a - b) for a, b in zip(found, wanted, strict=True))


def _logprobs(directory: str | Path, prompt: list[int], ids: list[int]) -> list[float]:
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].float() / TEMPERATURE
    return logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()
