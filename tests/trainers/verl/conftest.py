"""verl's environment, and one group of its workers for the tests that can share it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model
from headrace.streams.environments import EnvironmentMissingError, find_python
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.verl.process import VerlProcess, verl_process
from headrace.trainers.verl.settings import VerlSettings
from tests.waiting import until

OBJECTIVE = GrpoSettings(aggregation="token_mean", lr=1e-3, entropy=0.02, micro_batch_tokens=256)


@pytest.fixture(scope="session")
def verl_python() -> str:
    """Skips where the environment was not made."""
    try:
        return str(find_python("verl", os.environ))
    except EnvironmentMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    create_model(directory, PICK_DIGIT, seed=1, steps=5)
    return directory


@pytest.fixture(scope="session")
def verl(verl_python: str) -> Iterator[VerlProcess]:
    """verl on Ray, which takes long to start; nothing of it is left at the end."""
    with verl_process(OBJECTIVE, VerlSettings()) as process:
        yield process
    until(lambda: not left_of(os.getpid()), 20, what="something of Ray or verl is left")


def left_of(trainer: int) -> list[int]:
    """Processes of Ray and verl whose environment says that this process is their trainer."""
    mark = f"HEADRACE_VERL_PARENT={trainer}\0".encode()
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found
