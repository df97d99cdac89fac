"""Every trainer writes its figures under the fixed names, which tools that draw curves rely on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.schemas.records import Sampling, Trajectory
from headrace.trainers.algorithm import Algorithm
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import settings_of_objective
from headrace.trainers.metrics.names import is_fixed
from headrace.trainers.sft.algorithm import Sft
from headrace.trainers.sft.settings import SftSettings
from headrace.trainers.window import Windows
from tests.trainers.make import POLICY, triplet
from tests.trainers.pipeline import synthetic, window_settings

Make = Callable[..., Path]

EVERY = {
    *("reward/mean", "groups/count", "groups/size", "groups/zero_variance", "staleness/mean", "staleness/max"),
    *("entropy", "loss", "grad_norm", "lr", "step/skipped", "turns", "length/mean", "length/max", "rows/trained"),
    *("tokens/trained", "tokens/distinct", "tokens/forward", "seconds/rows", "seconds/train", "masked/no_logprobs"),
}
POLICY_GRADIENT = EVERY | {
    *("ratio/mean", "ratio/max", "ratio/k3", "clip/fraction", "mismatch/k3", "mismatch/alarm", "masked/off_support"),
    *("ess/samples", "ess/share", "ess/tokens", "ess/log_weight"),
}
EVERY_PART = POLICY_GRADIENT | {"kl_ref", "ratio/weight", "ratio/truncated", "value/error", "value/returns"}


def window() -> list[Trajectory]:
    """Two groups; one answer was sampled off the policy's support, one has no log-probabilities."""
    found = synthetic(range(2))
    found[0].triplets.append(triplet([1, 2], [3], [-1.0], sampling=Sampling(top_p=0.5)))
    found[1].triplets.append(triplet([1, 2], [3], None))
    return found


def names(algorithm: Algorithm, model: Path) -> set[str]:
    """Of the metrics of one step."""
    algorithm.load(model)
    windows = Windows(window_settings())
    for offset, trajectory in enumerate(window()):
        windows.take((0, offset), 0, trajectory)
    groups = windows.close(0, 0)
    assert groups is not None
    trained = algorithm.train(groups, windows)
    assert trained is not None
    return set(trained.metrics)


@pytest.mark.parametrize(
    ("objective", "given", "expected"),
    [
        ("grpo", {}, POLICY_GRADIENT),
        ("dapo", {}, POLICY_GRADIENT),
        ("ppo", {"kl": "k3"}, EVERY_PART),
    ],
)
def test_a_policy_gradient_step(objective: str, given: dict[str, str], expected: set[str], make_model: Make) -> None:
    found = names(Grpo(settings_of_objective(objective, **given), POLICY), make_model())
    assert found == expected
    assert all(is_fixed(name) for name in found)


def test_a_step_of_imitation(make_model: Make) -> None:
    found = names(Sft(SftSettings(recorded="always"), POLICY), make_model())
    assert found - {"masked/no_logprobs"} == EVERY - {"masked/no_logprobs"} | {"nll"}
    assert all(is_fixed(name) for name in found)
