"""The demo's model, and engines on it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model

COMMAND = str(Path(sys.executable).parent / "headrace")


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    create_model(directory, PICK_DIGIT, seed=1, steps=20)
    return directory


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
