"""A small model, changed copies of it, engines on it, and transformers as the judge."""

import hashlib
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model
from headrace.schemas.records import Weights

COMMAND = str(Path(sys.executable).parent / "headrace")
torch.set_num_threads(1)
Publish = Callable[..., Weights]
Judge = Callable[..., list[float]]


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    create_model(directory, PICK_DIGIT, seed=1, steps=20)
    return directory


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


class EngineProcess:
    """`headrace engine builtin` as a user starts it."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = [COMMAND, "engine", "builtin", str(model), "--no-announce", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the engine did not start; its log is on stderr"
        self.ready = json.loads(line)
        self.url = self.ready["endpoint"]

    def stop(self) -> int:
        """Its exit code after SIGTERM."""
        self.process.terminate()
        return self.process.wait(20)


@pytest.fixture(scope="session")
def engine(model_dir: Path) -> Iterator[EngineProcess]:
    """One engine for the tests that load no weights."""
    running = EngineProcess(model_dir, "--seed", "7")
    yield running
    assert running.stop() == 0


@pytest.fixture
def start_engine() -> Iterator[Callable[..., EngineProcess]]:
    """Starts engines that end with the test."""
    started: list[EngineProcess] = []

    def start(model: Path, *flags: str) -> EngineProcess:
        started.append(EngineProcess(model, *flags))
        return started[-1]

    yield start
    for running in started:
        assert running.stop() == 0


@pytest.fixture
def headrace() -> str:
    """The command."""
    return COMMAND
