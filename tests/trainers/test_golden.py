"""Objectives on the same tensors as verl's and TRL's own code, whose results stand in golden/ (see make_*.py there)."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headrace.trainers.advantages.estimators import whiten
from headrace.trainers.advantages.gae import gae
from headrace.trainers.advantages.window import Scored, estimate
from headrace.trainers.losses.aggregation import token_weights
from headrace.trainers.losses.policy import clipped_loss, reinforce_loss, sequence_loss, truncated_weight
from headrace.trainers.losses.scores import kl
from headrace.trainers.losses.value import value_loss
from tests.trainers.golden import inputs as given

FOLDER = Path(__file__).parent / "golden"
BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-5}
Array = Any
INPUTS = given.make()
MASK = INPUTS["mask"].astype(bool)
ROW = np.nonzero(MASK)[0]


@cache
def golden(package: str) -> dict[str, Array]:
    with np.load(FOLDER / f"{package}.npz") as found:
        return dict(found)


def close(actual: Array, expected: Array, bound: float = 1e-9) -> None:
    error = np.max(np.abs(actual - expected)) / np.max(np.abs(expected))
    assert error <= bound, f"differs by {error:.2e} of the largest component"


def flat(name: str, dtype: torch.dtype) -> Tensor:
    """The tokens of all rollouts, one behind the other."""
    return torch.tensor(INPUTS[name][MASK], dtype=dtype)


def padded(values: Array) -> Array:
    full = np.zeros(MASK.shape)
    full[MASK] = values
    return full


def groups_of(rewards: Array) -> list[list[Scored]]:
    tokens = MASK.sum(1)
    made: list[list[Scored]] = [[] for _ in range(given.GROUPS)]
    for index, group in enumerate(INPUTS["group"]):
        made[group].append(Scored(np.array([rewards[index]]), np.array([tokens[index]])))
    return made


def advantages(name: str, **fields: Any) -> Array:
    return np.concatenate([v for group in estimate(groups_of(INPUTS["rewards"]), name, **fields) for v in group])


VERL_ADVANTAGES: list[tuple[str, str]] = [
    ("grpo", "grpo"),
    ("dr_grpo", "dr_grpo"),
    ("rloo", "rloo"),
    ("reinforce_pp", "reinforce_pp"),
    ("reinforce_pp_baseline", "reinforce_pp_baseline"),
]


@pytest.mark.parametrize(("name", "theirs"), VERL_ADVANTAGES)
def test_advantages_are_verls(name: str, theirs: str) -> None:
    close(advantages(name)[:, None] * MASK, golden("verl")[f"advantage/{theirs}"])


def test_the_value_heads_advantages_are_verls() -> None:
    found: list[tuple[Array, Array]] = []
    for index, size in enumerate(MASK.sum(1)):
        rewards = np.zeros(size)
        rewards[-1] = INPUTS["rewards"][index]
        found.append(gae(rewards, INPUTS["values"][index, :size], gamma=given.GAMMA, lam=given.LAMBDA))
    raw, returns = (np.concatenate(x) for x in zip(*found, strict=True))
    close(padded(whiten(raw, np.ones(raw.size, dtype=np.int64))), golden("verl")["advantage/gae"])
    close(padded(returns), golden("verl")["returns/gae"])


@pytest.mark.parametrize(("name", "epsilon"), [("grpo", 1e-4), ("dr_grpo", 0.0), ("rloo", 0.0)])
def test_advantages_are_trls(name: str, epsilon: float) -> None:
    close(advantages(name, epsilon=epsilon), golden("trl")[f"advantage/{name}"])


def weights(aggregation: str, divisor: float | None = None) -> Array:
    return token_weights(ROW, np.arange(MASK.shape[0]), aggregation, token_divisor=divisor)


CLIPS = {"clip_low": given.CLIP_LOW, "clip_high": given.CLIP_HIGH}
GSPO = {"clip_low": given.GSPO_LOW, "clip_high": given.GSPO_HIGH}
RESPONSES = torch.tensor(ROW)
Loss = Callable[[Tensor, Callable[[str], Tensor]], Tensor]


def _kl(kind: str) -> Loss:
    return lambda x, get: kl(kind, x, get("reference"))


def _corrected(x: Tensor, get: Callable[[str], Tensor]) -> Tensor:
    weight = truncated_weight(get("proximal"), get("behaviour"), given.TRUNCATION)
    return clipped_loss(x, get("proximal"), get("advantages"), **CLIPS) * weight


def _with_kl(x: Tensor, get: Callable[[str], Tensor]) -> Tensor:
    return clipped_loss(x, get("proximal"), get("advantages"), **CLIPS) + given.BETA * kl("k3", x, get("reference"))


TOKEN_LOSSES: dict[str, Loss] = {
    "clip": lambda x, get: clipped_loss(x, get("proximal"), get("advantages"), **CLIPS),
    "dual_clip": lambda x, get: clipped_loss(x, get("proximal"), get("advantages"), dual_clip=given.DUAL_CLIP, **CLIPS),
    "gspo": lambda x, get: sequence_loss(x, get("proximal"), get("advantages"), RESPONSES, **GSPO),
    "cispo": lambda x, get: reinforce_loss(x, get("proximal"), get("advantages"), truncation=given.TRUNCATION),
    "truncated": _corrected,
    "clip_with_kl": _with_kl,
    "k1": _kl("k1"),
    "k3": _kl("k3"),
}
AGGREGATIONS: dict[str, Array] = {
    "rollout_mean": weights("rollout_mean"),
    "token_mean": weights("token_mean"),
    "token_sum": weights("token_sum"),
    "divided": weights("token_sum", given.DIVISOR),
}


def cases(package: str) -> list[str]:
    """Names of golden losses: `loss/<loss>/<aggregation>`."""
    with np.load(FOLDER / f"{package}.npz") as found:
        return [f"{package}/{name}" for name in found if name.startswith("loss/")]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("case", [*cases("verl"), *cases("trl")])
def test_losses_and_their_gradients(case: str, dtype: torch.dtype) -> None:
    package, _, loss, aggregation = case.split("/")
    x = flat("current", dtype).requires_grad_(True)
    each = TOKEN_LOSSES[loss](x, lambda name: flat(name, dtype))
    weight = AGGREGATIONS[aggregation]
    if package == "verl" and aggregation == "rollout_mean":
        sizes = MASK.sum(1)[ROW]
        weight = weight * sizes / (sizes + 1e-8)  # what verl divides a rollout's sum by
    total = (each * torch.tensor(weight, dtype=dtype)).sum()
    total.backward()
    assert x.grad is not None
    expected = golden(package)
    close(total.item(), expected[f"loss/{loss}/{aggregation}"], BOUNDS[dtype])
    close(padded(x.grad.numpy()), expected[f"gradient/{loss}/{aggregation}"], BOUNDS[dtype])


@pytest.mark.parametrize("dtype", BOUNDS)
def test_the_loss_of_values_is_verls(dtype: torch.dtype) -> None:
    x = flat("new_values", dtype).requires_grad_(True)
    each = value_loss(x, flat("values", dtype), flat("returns", dtype), clip=given.VALUE_CLIP)
    total = (each * torch.tensor(weights("token_mean"), dtype=dtype)).sum()
    total.backward()
    assert x.grad is not None
    close(total.item(), golden("verl")["value_loss"], BOUNDS[dtype])
    close(padded(x.grad.numpy()), golden("verl")["value_gradient"], BOUNDS[dtype])


def test_goldens_say_where_they_come_from() -> None:
    for package in ("verl", "trl"):
        assert str(golden(package)["version"]).startswith(package)
