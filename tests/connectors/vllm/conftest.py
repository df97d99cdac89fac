"""The vLLM environment, and one server for the tests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from headrace.streams.environments import EnvironmentMissingError, find_python
from tests.processes import end, ready, start

START_SECONDS = 400
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def vllm_python() -> str:
    """Skips where the environment was not made."""
    try:
        return str(find_python("vllm", os.environ))
    except EnvironmentMissingError as error:
        pytest.skip(str(error))


class VllmProcess:
    """`headrace engine vllm` as a user starts it."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = ("engine", "vllm", str(model), "--no-announce", "--max-model-len", "512", *flags)
        self.process = start(*command, "--start-seconds", str(START_SECONDS))
        self.url = ready(self.process)["endpoint"]


@pytest.fixture(scope="session")
def vllm(vllm_python: str, model_dir: Path) -> Iterator[VllmProcess]:
    """One server for the tests that can share it; SIGTERM ends it with exit code 0."""
    server = VllmProcess(model_dir, "--enable-lora", "--max-lora-rank", "8")
    yield server
    assert end(server.process, 60) == 0


@pytest.fixture
def start_vllm(vllm_python: str) -> Iterator[Callable[..., VllmProcess]]:
    """Starts servers that end with the test."""
    started: list[VllmProcess] = []

    def serve(model: Path, *flags: str) -> VllmProcess:
        started.append(VllmProcess(model, *flags))
        return started[-1]

    yield serve
    for server in started:
        end(server.process, 60)
