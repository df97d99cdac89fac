"""Changed copies of the demo's model, and transformers as the judge."""

import hashlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headrace.schemas.records import Weights

torch.set_num_threads(1)
Publish = Callable[..., Weights]
Judge = Callable[..., list[float]]


@pytest.fixture
def publish(model_dir: Path, tmp_path: Path) -> Publish:
    """Writes a changed copy of the model and gives its Weights; `noise` 0 is the model itself."""

    def make(version: int, noise: float = 0.05, policy: str = "policy", base: Path = model_dir) -> Weights:
        directory = tmp_path / f"weights-{uuid.uuid4().hex}"
        directory.mkdir()
        generator = torch.Generator().manual_seed(version)
        tensors = {
            name: tensor + noise * torch.randn(tensor.shape, generator=generator)
            for name, tensor in load_file(base / "model.safetensors").items()
        }
        for name in ("config.json", "generation_config.json"):
            (directory / name).write_bytes((base / name).read_bytes())
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
        return weights_of(directory, version, policy)

    return make


def weights_of(directory: Path, version: int, policy: str = "policy") -> Weights:
    """The record of a checkpoint as it lies there."""
    files = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in directory.glob("*.safetensors")}
    return Weights(policy=policy, version=version, weights_id=f"id-{version}", uri=str(directory), sha256=files)


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Log-probabilities of response ids after prompt ids, by transformers alone."""

    from transformers import AutoModelForCausalLM

    models: dict[str, Any] = {}

    def load(directory: str) -> Any:
        # One model for all versions: only their tensors differ.
        if not models:
            models["model"] = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        if models.get("directory") != directory:
            models["model"].load_state_dict(load_file(Path(directory) / "model.safetensors"), strict=True)
            models["directory"] = directory
        return models["model"]

    def logprobs(
        directory: str | Path, prompt: list[int], response: list[int], temperature: float = 1.0, size: int | None = None
    ) -> list[float]:
        with torch.no_grad():
            logits = load(str(directory))(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1]
        table = (logits[:, :size].float() / (temperature or 1.0)).log_softmax(-1)
        return table.gather(1, torch.tensor(response)[:, None])[:, 0].tolist()

    return logprobs
