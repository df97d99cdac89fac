"""The demo's model, and engines on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model
from tests.processes import end, ready, start


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    create_model(directory, PICK_DIGIT, seed=1, steps=20)
    return directory


class EngineProcess:
    """`headrace engine builtin` as a user starts it."""

    def __init__(self, model: Path, *flags: str) -> None:
        self.process = start("engine", "builtin", str(model), "--no-announce", *flags)
        self.ready = ready(self.process)
        self.url = self.ready["endpoint"]

    def stop(self) -> int:
        """Its exit code after SIGTERM."""
        return end(self.process, 20)


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

    def started_on(model: Path, *flags: str) -> EngineProcess:
        started.append(EngineProcess(model, *flags))
        return started[-1]

    yield started_on
    for running in started:
        assert running.stop() == 0
