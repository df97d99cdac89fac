"""The tests of verl's step once more, with its workers on a CUDA device: `make gpu-check`."""

from collections.abc import Iterator

import pytest
import torch

from headrace.trainers.verl.process import VerlProcess, verl_process
from headrace.trainers.verl.settings import VerlSettings
from tests.trainers.verl.conftest import OBJECTIVE
from tests.trainers.verl.test_verl import (
    test_a_step_is_that_of_the_own_learner,
    test_it_goes_on_where_its_state_was_taken,
    test_its_advantages_are_ours,
)

pytestmark = [pytest.mark.gpu, pytest.mark.verl, pytest.mark.slow, pytest.mark.timeout(600)]
__all__ = [
    "test_a_step_is_that_of_the_own_learner",
    "test_it_goes_on_where_its_state_was_taken",
    "test_its_advantages_are_ours",
]


@pytest.fixture(scope="module")
def verl(request: pytest.FixtureRequest) -> Iterator[VerlProcess]:
    """As that of the other tests, on the device."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device: torch.cuda.is_available() is false")
    request.getfixturevalue("verl_python")
    with verl_process(OBJECTIVE, VerlSettings(device="cuda")) as process:
        yield process
