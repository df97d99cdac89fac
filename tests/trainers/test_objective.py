"""Advantages and losses against an implementation of their formulas in numpy, in float64."""

import numpy as np
import pytest
import torch

from headrace.streams.errors import SettingsError
from headrace.trainers.advantages.estimators import group_relative
from headrace.trainers.losses.aggregation import AGGREGATIONS, token_weights
from headrace.trainers.losses.policy import clipped, clipped_loss
from headrace.trainers.losses.scores import k3, logprobs_and_entropy

LOW, HIGH = 0.2, 0.28


def close(actual: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.max(np.abs(actual - expected)) <= 1e-9 * max(1e-300, np.max(np.abs(expected))))


def test_the_largest_rewards_have_finite_advantages() -> None:
    largest = group_relative([1.7e308, -1.7e308, 0.0])
    assert np.isfinite(largest).all()
    np.testing.assert_allclose(largest, group_relative([1.0, -1.0, 0.0]), rtol=1e-5)


def test_group_relative_is_the_standard_score() -> None:
    rewards = np.random.default_rng(0).normal(size=16)
    n = len(rewards)
    mean = sum(rewards) / n
    deviation = (sum((r - mean) ** 2 for r in rewards) / (n - 1)) ** 0.5
    assert close(group_relative(list(rewards)), np.array([(r - mean) / (deviation + 1e-6) for r in rewards]))


@pytest.mark.parametrize("rewards", [[], [3.0], [1.0, 1.0, 1.0], [0.1] * 7])
def test_equal_rewards_have_no_advantage(rewards: list[float]) -> None:
    assert group_relative(rewards).tolist() == [0.0] * len(rewards)


def test_loss_and_gradient_of_the_whole_objective() -> None:
    """d loss / d logits, by hand: every token's surrogate, clip, entropy and weight."""
    rng = np.random.default_rng(1)
    tokens, vocabulary, coefficient = 60, 11, 0.03
    logits = rng.normal(size=(tokens, vocabulary)) * 2
    temperature = rng.choice([0.5, 1.0, 1.7], size=tokens)
    targets = rng.integers(0, vocabulary, size=tokens)
    advantages = rng.normal(size=tokens)
    weights = rng.uniform(0.1, 1, size=tokens)
    shifted = logits / temperature[:, None]
    probabilities = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    logprobs = np.log(probabilities[np.arange(tokens), targets])
    behaviour = logprobs + rng.normal(size=tokens) * 0.4
    loss, gradient = 0.0, np.zeros_like(logits)
    for t in range(tokens):
        p, a, ratio = probabilities[t], advantages[t], np.exp(logprobs[t] - behaviour[t])
        held = min(max(ratio, 1 - LOW), 1 + HIGH)
        entropy = -np.sum(p * np.log(p))
        loss += weights[t] * (-min(ratio * a, held * a) - coefficient * entropy)
        onehot = np.eye(vocabulary)[targets[t]]
        through = ratio * a if ratio * a <= held * a else 0.0
        d = -through * (onehot - p) + coefficient * p * (np.log(p) + entropy)
        gradient[t] = weights[t] * d / temperature[t]

    x = torch.tensor(logits, requires_grad=True)
    lp, ent = logprobs_and_entropy(x / torch.tensor(temperature)[:, None], torch.tensor(targets))
    each = clipped_loss(lp, torch.tensor(behaviour), torch.tensor(advantages), clip_low=LOW, clip_high=HIGH)
    total = ((each - coefficient * ent) * torch.tensor(weights)).sum()
    total.backward()
    assert x.grad is not None
    assert close(np.array(total.item()), np.array(loss))
    assert close(x.grad.numpy(), gradient)
    ratio = np.exp(logprobs - behaviour)
    flags = clipped(torch.tensor(ratio), torch.tensor(advantages), clip_low=LOW, clip_high=HIGH).numpy()
    assert (
        flags.tolist()
        == (np.abs(gradient - _entropy_part(probabilities, coefficient, weights, temperature)).max(1) < 1e-12)
        .astype(float)
        .tolist()
    )
    assert 0 < flags.sum() < tokens


def _entropy_part(p: np.ndarray, coefficient: float, weights: np.ndarray, temperature: np.ndarray) -> np.ndarray:
    entropy = -(p * np.log(p)).sum(1, keepdims=True)
    return coefficient * p * (np.log(p) + entropy) * (weights / temperature)[:, None]


def test_k3() -> None:
    rng = np.random.default_rng(2)
    behaviour, current = rng.normal(size=50), rng.normal(size=50)
    ratio = np.exp(current - behaviour)
    assert close(k3(torch.tensor(behaviour), torch.tensor(current)).numpy(), ratio - 1 - np.log(ratio))
    tiny = torch.tensor([1e-9], dtype=torch.float64)
    assert k3(torch.zeros(1, dtype=torch.float64), tiny).item() >= 0


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_aggregations(aggregation: str) -> None:
    rollouts = [[3, 1], [5], [2, 2, 2]]  # tokens of each row of each rollout
    rng = np.random.default_rng(3)
    losses = [[rng.normal(size=n) for n in rows] for rows in rollouts]
    by_rollout = [np.concatenate(rows) for rows in losses]
    every = np.concatenate(by_rollout)
    expected = {
        "rollout_mean": np.mean([x.mean() for x in by_rollout]),
        "row_mean": np.mean([x.mean() for rows in losses for x in rows]),
        "token_mean": every.mean(),
        "token_sum": every.sum(),
    }[aggregation]
    counts = [n for rows in rollouts for n in rows]
    row_of_token = np.repeat(np.arange(len(counts)), counts)
    rollout_of_row = np.repeat(np.arange(3), [len(rows) for rows in rollouts])
    assert close(np.array((token_weights(row_of_token, rollout_of_row, aggregation) * every).sum()), expected)


@pytest.mark.parametrize(
    ("aggregation", "divisor"), [("rollout_mean", None), ("token_mean", None), ("token_sum", None), ("token_sum", 7.0)]
)
def test_no_aggregation_sees_how_a_rollout_is_cut_into_rows(aggregation: str, divisor: float | None) -> None:
    whole = token_weights(np.array([0] * 6 + [1]), np.array([0, 1]), aggregation, token_divisor=divisor)
    cut = token_weights(np.array([0, 0, 1, 2, 2, 2, 3]), np.array([0, 0, 0, 1]), aggregation, token_divisor=divisor)
    assert whole.tolist() == cut.tolist()


def test_a_token_sum_may_be_divided_by_rollouts_and_a_length() -> None:
    weights = token_weights(np.array([0, 0, 1]), np.array([0, 1]), "token_sum", token_divisor=50.0)
    assert weights.tolist() == [0.01] * 3


def test_an_unknown_aggregation_names_the_known() -> None:
    with pytest.raises(SettingsError, match="rollout_mean"):
        token_weights(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), "mean")
