"""Rewards of groups to advantages of rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headrace.trainers.advantages.estimators import group_relative, whiten
from headrace.trainers.batch import Scores, TokenRow
from headrace.trainers.grpo.assigning import Assigner, Sample
from headrace.trainers.grpo.settings import GrpoSettings


def row(rollout: int, calls: Sequence[tuple[int, int]], **fields: Any) -> TokenRow:
    """A prompt token and the responses, with random scores of the forward pass."""
    size = sum(n for _, n in calls)
    rng = np.random.default_rng([rollout, size, calls[0][0]])
    draw = lambda: rng.normal(-2.0, 0.5, size=size).astype(np.float32)  # noqa: E731
    mask = np.arange(size + 1) > 0
    logprobs = np.concatenate([[0.0], draw()]).astype(np.float32)
    values: dict[str, Any] = {
        "token_ids": rng.integers(0, 48, size=size + 1).astype(np.int32),
        "loss_mask": mask,
        "logprobs": logprobs,
        "rollout": rollout,
        "calls": tuple(calls),
        "scored": Scores(proximal=logprobs[mask], reference=draw(), values=draw()),
    }
    return TokenRow(**(values | fields))


def final(*rewards: float) -> list[Sample]:
    return [Sample(np.array([reward]), index) for index, reward in enumerate(rewards)]


def test_a_rollouts_rows_have_its_advantage_and_untrained_members_count_in_the_baseline() -> None:
    group = [*final(1.0, 0.0), Sample(np.array([5.0]), None)]
    rows = Assigner(GrpoSettings(), [group])([row(0, [(0, 2)]), row(0, [(1, 1)]), row(1, [(0, 3)])])
    expected = group_relative([1.0, 0.0, 5.0])
    assert [r.advantage for r in rows] == [expected[0], expected[0], expected[1]]


def test_own_credit_is_one_advantage_a_call() -> None:
    settings = GrpoSettings(credit="own", advantage="dr_grpo")
    group = [Sample(np.array([1.0, 3.0]), 0), Sample(np.array([2.0]), 1)]
    rows = Assigner(settings, [group])([row(0, [(0, 2), (1, 1)]), row(1, [(0, 2)])])
    assert np.asarray(rows[0].advantage).tolist() == [-1.0, -1.0, 1.0]
    assert np.asarray(rows[1].advantage).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_divergence_in_the_reward_is_taken_off_before_the_comparison(kind: str) -> None:
    settings = GrpoSettings(advantage="rloo", kl=kind, kl_beta=0.5, kl_in="reward")
    rows = [row(0, [(0, 2)]), row(0, [(1, 1)]), row(1, [(0, 3)])]
    divergence = [0.0, 0.0]
    for r in rows:
        assert r.scored is not None
        assert r.scored.reference is not None
        log_ratio = r.logprobs[1:].astype(np.float64) - r.scored.reference
        each = log_ratio if kind == "k1" else np.exp(-log_ratio) - 1 + log_ratio
        divergence[r.rollout] += each.sum()
    a, b = 1.0 - 0.5 * divergence[0], 0.5 - 0.5 * divergence[1]
    found = Assigner(settings, [final(1.0, 0.5)])(rows)
    np.testing.assert_allclose([found[0].advantage, found[2].advantage], [a - b, b - a], rtol=1e-9)


def test_a_return_takes_the_divergence_from_its_call_on() -> None:
    settings = GrpoSettings(advantage="reward", credit="return", kl="k1", kl_beta=1.0, kl_in="reward")
    one = row(0, [(0, 1), (1, 1)])
    found = Assigner(settings, [[Sample(np.array([3.0, 2.0]), 0)]])([one])[0]
    assert one.scored is not None
    assert one.scored.reference is not None
    first, second = one.logprobs[1:].astype(np.float64) - one.scored.reference
    np.testing.assert_allclose(found.advantage, [3.0 - first - second, 2.0 - second], rtol=1e-6)


def cut(whole: TokenRow) -> list[TokenRow]:
    """Each response of a row as a row of its own."""
    made: list[TokenRow] = []
    start = 0
    for call, size in whole.calls:
        span = slice(start, start + size)
        assert whole.scored is not None
        scored = Scores(**{name: getattr(whole.scored, name)[span] for name in ("proximal", "reference", "values")})
        mask = np.zeros_like(whole.loss_mask)
        mask[1 + start : 1 + start + size] = True
        made.append(replace(whole, loss_mask=mask, calls=((call, size),), scored=scored))
        start += size
    return made


@pytest.mark.parametrize(
    "fields",
    [
        {"advantage": "gae", "gae_lambda": 0.9, "gamma": 0.95},
        {"advantage": "gae", "credit": "return", "kl": "k1", "kl_beta": 0.1, "kl_in": "reward"},
        {"advantage": "reinforce_pp", "kl": "k3", "kl_in": "reward"},
        {"advantage": "reinforce_pp_baseline", "credit": "own"},
    ],
)
def test_cutting_a_row_changes_no_advantage(fields: dict[str, Any]) -> None:
    settings = GrpoSettings(**fields)
    whole = [row(0, [(0, 2), (1, 3)]), row(1, [(0, 1), (1, 2), (2, 1)])]
    per_call = settings.credit != "final"
    group = [Sample(np.array([0.5, 1.0]), 0), Sample(np.array([0.0, 2.0, 1.0]), 1)] if per_call else final(1.0, 0.0)
    every = Assigner(settings, [group])(whole)
    pieces = Assigner(settings, [group])([piece for r in whole for piece in cut(r)])

    def tokens(rows: list[TokenRow]) -> list[float]:
        return [x for r in rows for x in np.broadcast_to(r.advantage, (r.trained,)).tolist()]

    np.testing.assert_allclose(tokens(pieces), tokens(every), rtol=1e-6)
    if settings.advantage == "gae":
        joined = np.concatenate([r.returns for r in pieces if r.returns is not None])
        np.testing.assert_array_equal(joined, np.concatenate([r.returns for r in every if r.returns is not None]))


def test_token_advantages_are_whitened_returns_are_not() -> None:
    settings = GrpoSettings(advantage="gae")
    rows = Assigner(settings, [final(1.0, 0.0)])([row(0, [(0, 2)]), row(1, [(0, 1)])])
    raw: list[np.ndarray] = []
    for r, reward in zip(rows, (1.0, 0.0), strict=True):
        assert r.scored is not None
        assert r.scored.values is not None
        assert r.returns is not None
        assert r.returns.tolist() == [reward] * r.trained
        raw.append(reward - r.scored.values.astype(np.float64))
    expected = whiten(np.concatenate(raw), np.ones(3, dtype=np.int64))
    np.testing.assert_allclose(np.concatenate([np.asarray(r.advantage) for r in rows]), expected, rtol=1e-5)


def test_samples_without_a_group_are_compared_with_a_baseline() -> None:
    rows = Assigner(GrpoSettings(), [], final(1.0, 0.0), 0.75)([row(0, [(0, 1)]), row(1, [(0, 1)])])
    assert [np.asarray(r.advantage).item() for r in rows] == [0.25, -0.75]
