"""Kish's effective sample size of a window, and of a run."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.trainers.grpo.effective import (
    LOG_WEIGHT,
    SAMPLES,
    SHARE,
    TOKENS,
    ImportanceWeights,
    effective_size,
    total_size,
)
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import settings_of_objective
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.ranks import Ranks
from tests.trainers.test_learner import rows

Make = Callable[..., Path]


def kish(weights: np.ndarray) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def test_it_is_kishs() -> None:
    weights = np.array([0.5, 1.0, 1.5, 4.0])
    assert effective_size(np.log(weights)) == pytest.approx(kish(weights))
    assert effective_size(np.zeros(7)) == pytest.approx(7.0)
    assert effective_size(np.array([])) == 0.0
    assert effective_size(np.log(weights) - 5000.0) == pytest.approx(kish(weights))  # where a product underflows


def windows(*sizes: int) -> list[dict[int, np.ndarray]]:
    """Log-weights of the tokens of each rollout of each window."""
    rng = np.random.default_rng(0)
    return [{r: rng.normal(0, 0.3, size=rng.integers(1, 6)) for r in range(n)} for n in sizes]


def metrics_of(window: dict[int, np.ndarray]) -> dict[str, float]:
    """Its rollouts in two micro-batches, the first in two rows of which one comes in each."""
    weights = ImportanceWeights()
    parts = [(r, w) for r, w in window.items() if r]
    first = np.split(window[0], [1]) if window[0].size > 1 else [window[0]]
    for batch in ([*parts[::2], (0, first[0])], [*parts[1::2], *((0, rest) for rest in first[1:])]):
        if batch:
            counts = np.array([w.size for _, w in batch])
            weights.add([r for r, _ in batch], counts, np.concatenate([w for _, w in batch]))
    return weights.metrics(Ranks())


def test_a_rollouts_weight_is_the_product_over_its_rows() -> None:
    (window,) = windows(9)
    found = metrics_of(window)
    each = np.array([np.exp(w.sum()) for w in window.values()])
    assert found[SAMPLES] == pytest.approx(kish(each))
    assert found[SHARE] == pytest.approx(kish(each) / 9)
    assert found[TOKENS] == pytest.approx(kish(np.exp(np.concatenate(list(window.values())))))
    assert found[LOG_WEIGHT] == pytest.approx(np.log(each.mean()))


def test_the_total_follows_from_the_windows_metrics() -> None:
    made = windows(9, 4, 16)
    every = np.array([np.exp(w.sum()) for window in made for w in window.values()])
    assert total_size((len(w), metrics_of(w)) for w in made) == pytest.approx(kish(every))
    assert total_size([]) == 0.0


@pytest.mark.parametrize("passes", [1, 2])
def test_a_step_counts_each_token_once_as_the_window_begins(make_model: Make, passes: int) -> None:
    """Whatever the mini-batches and passes: the first of them and the last see the same weights."""
    directory = make_model()
    batch = rows(10)
    one = GrpoLearner(load_causal_lm(directory), settings_of_objective("grpo")).step(batch)
    several = settings_of_objective("decoupled_ppo", micro_batch_tokens=40, epochs=passes)
    other = GrpoLearner(load_causal_lm(directory), several).step(batch)
    for name in (SAMPLES, SHARE, TOKENS, LOG_WEIGHT):
        assert other[name] == pytest.approx(one[name], rel=1e-4), name
    assert 1.0 <= one[SAMPLES] < 5.0  # of five rollouts
