"""The vLLM environment, and one server for the tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model
from headrace.streams.environments import EnvironmentMissingError, find_python

COMMAND = str(Path(sys.executable).parent / "headrace")
START_SECONDS = 400
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def vllm_python() -> str:
    """Skips where the environment was not made."""
    try:
        return str(find_python("vllm", os.environ))
    except EnvironmentMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    create_model(directory, PICK_DIGIT, seed=1, steps=20)
    return directory


class VllmProcess:
    """`headrace engine vllm` as a user starts it."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = [COMMAND, "engine", "vllm", str(model), "--no-announce", "--max-model-len", "512", *flags]
        command += ["--start-seconds", str(START_SECONDS)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "vLLM did not start; its log is on stderr"
        self.url = json.loads(line)["endpoint"]


@pytest.fixture(scope="session")
def vllm(vllm_python: str, model_dir: Path) -> Iterator[VllmProcess]:
    """One server for the tests that can share it; SIGTERM ends it with exit code 0."""
    server = VllmProcess(model_dir)
    yield server
    server.process.terminate()
    assert server.process.wait(60) == 0


@pytest.fixture
def start_vllm(vllm_python: str) -> Iterator[Callable[..., VllmProcess]]:
    """Starts servers that end with the test."""
    started: list[VllmProcess] = []

    def start(model: Path, *flags: str) -> VllmProcess:
        started.append(VllmProcess(model, *flags))
        return started[-1]

    yield start
    for server in started:
        server.process.terminate()
        server.process.wait(60)
