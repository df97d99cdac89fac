"""verl's environment, and one group of its workers for the tests that can share it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.demo.tasks import PICK_DIGIT
from headrace.demo.tinymodel.create import create_model
from headrace.streams.environments import EnvironmentMissingError, find_python
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.verl.process import VerlProcess, verl_process
from headrace.trainers.verl.settings import VerlSettings

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
    """verl on Ray; it takes long to start."""
    with verl_process(OBJECTIVE, VerlSettings()) as process:
        yield process
