"""Credit, groups, whitening and the value head's advantages, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.streams.errors import SettingsError
from headrace.trainers.advantages.credit import CREDITS, check_credit, scores
from headrace.trainers.advantages.estimators import ADVANTAGES, check_advantage, of_group, whiten
from headrace.trainers.advantages.gae import gae
from headrace.trainers.advantages.window import Scored, estimate

REWARDS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8)
OF_GROUPS = [name for name in ADVANTAGES if name != "gae"]


def scored(*rewards: float, tokens: int = 1) -> list[Scored]:
    return [Scored(np.array([reward]), np.array([tokens])) for reward in rewards]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dr_grpo", [-2.0, 0.0, 2.0]),
        ("rloo", [-3.0, 0.0, 3.0]),
        ("reward", [1.0, 3.0, 5.0]),
        ("reinforce_pp_baseline", [-2.0, 0.0, 2.0]),
    ],
)
def test_one_group(name: str, expected: list[float]) -> None:
    assert of_group(name, [1.0, 3.0, 5.0]).tolist() == expected


def test_leave_one_out_is_the_reward_less_the_mean_of_the_others() -> None:
    rewards = [0.3, -1.2, 2.5, 0.0]
    expected = [r - (sum(rewards) - r) / 3 for r in rewards]
    np.testing.assert_allclose(of_group("rloo", rewards), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "reinforce_pp_baseline"])
@pytest.mark.parametrize("rewards", [[], [3.0], [0.1] * 7])
def test_equal_rewards_teach_nothing(name: str, rewards: list[float]) -> None:
    assert of_group(name, rewards).tolist() == [0.0] * len(rewards)


@given(st.lists(REWARDS, min_size=1, max_size=4), st.sampled_from(OF_GROUPS))
def test_the_order_of_groups_and_members_changes_nothing(rewards: list[list[float]], name: str) -> None:
    groups = [scored(*r) for r in rewards]
    forward = estimate(groups, name)
    backward = estimate([group[::-1] for group in groups[::-1]], name)
    for group, again in zip(forward, backward[::-1], strict=True):
        np.testing.assert_allclose(np.concatenate(group), np.concatenate(again[::-1]), rtol=1e-6, atol=1e-6)


def test_whitening_counts_tokens_and_only_what_is_trained() -> None:
    values, tokens = np.array([1.0, -2.0, 50.0]), np.array([3, 1, 0])
    each = np.repeat(values, tokens)
    expected = (values - each.mean()) / np.sqrt(each.var(ddof=1) + 1e-8)
    np.testing.assert_allclose(whiten(values, tokens), expected, rtol=1e-12)
    assert whiten(np.array([2.0, 2.0]), np.array([5, 1])).tolist() == [0.0, 0.0]
    assert whiten(np.array([2.0]), np.array([1])).tolist() == [0.0]


def test_reinforce_pp_whitens_over_the_window() -> None:
    groups = [scored(1.0, 0.0, tokens=2), scored(3.0, tokens=6)]
    found = np.concatenate([v for group in estimate(groups, "reinforce_pp") for v in group])
    np.testing.assert_allclose(found, whiten(np.array([1.0, 0.0, 3.0]), np.array([2, 2, 6])))


def test_credit() -> None:
    calls = [1.0, None, 2.0, None]
    assert scores("final", 5.0, calls).tolist() == [5.0]
    np.testing.assert_array_equal(scores("own", 5.0, calls), [1.0, np.nan, 2.0, np.nan])
    np.testing.assert_array_equal(scores("return", 5.0, calls, gamma=0.5), [1.5, 1.0, 2.0, np.nan])
    with pytest.raises(SettingsError, match="final, own, return"):
        check_credit("last")
    with pytest.raises(SettingsError, match="grpo, dr_grpo, rloo"):
        check_advantage("best")


@pytest.mark.parametrize("credit", CREDITS)
def test_with_one_call_all_credits_are_one(credit: str) -> None:
    groups = [[Scored(scores(credit, r, [r]), np.array([1])) for r in (0.0, 1.0, 1.0)]]
    found = np.concatenate(estimate(groups, "grpo")[0])
    np.testing.assert_array_equal(found, of_group("grpo", [0.0, 1.0, 1.0]))


def test_calls_without_a_reward_have_no_advantage_and_no_part_in_the_mean() -> None:
    member = Scored(np.array([1.0, np.nan]), np.array([1, 0]))
    found = estimate([[member, *scored(3.0)]], "dr_grpo")[0]
    np.testing.assert_array_equal(found[0], [-1.0, np.nan])
    assert found[1].tolist() == [1.0]


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=12),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_gae_is_its_sum(tokens: list[tuple[float, float]], gamma: float, lam: float) -> None:
    rewards, values = (np.array(x) for x in zip(*tokens, strict=True))
    following = np.append(values[1:], 0.0)
    surprise = rewards + gamma * following - values
    expected = [sum((gamma * lam) ** k * surprise[t + k] for k in range(len(tokens) - t)) for t in range(len(tokens))]
    advantages, returns = gae(rewards, values, gamma=gamma, lam=lam)
    np.testing.assert_allclose(advantages, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(returns, advantages + values, rtol=1e-12)


def test_gae_with_lambda_one_is_the_return_less_the_value() -> None:
    rewards, values = np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.25, -1.0])
    advantages, returns = gae(rewards, values, gamma=1.0, lam=1.0)
    assert returns.tolist() == [3.0, 3.0, 2.0]
    assert advantages.tolist() == [2.5, 2.75, 3.0]
