"""pass@k against its definition, and what counts in a score."""

from itertools import combinations

import pytest

from headrace.schemas.records import Trajectory, VersionRange
from headrace.streams.errors import SettingsError
from headrace.trainers.validation.scores import EarlyStop, Score, pass_at_k, score


def trajectory(rollout: str, group: str, reward: float | None, version: int = 3, revision: int = 0) -> Trajectory:
    return Trajectory(
        rollout_id=rollout,
        group_id=group,
        mode="val",
        status="succeeded",
        final_reward=reward,
        policy_version=VersionRange(min=version, max=version),
        revision=revision,
        assembled_at=0,
    )


@pytest.mark.parametrize("samples", [1, 3, 5])
def test_pass_at_k_is_the_share_of_subsets_with_one_that_passes(samples: int) -> None:
    for passed in range(samples + 1):
        for k in range(1, samples + 1):
            subsets = list(combinations(range(samples), k))
            share = sum(any(i < passed for i in subset) for subset in subsets) / len(subsets)
            assert pass_at_k(samples, passed, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_more_than_the_samples_is_refused() -> None:
    with pytest.raises(SettingsError, match="pass@3 needs 1 to 2 of the 2 samples"):
        pass_at_k(2, 1, 3)


def test_a_score_counts_each_rollout_once_by_its_newest_revision() -> None:
    found = score(
        3,
        [
            trajectory("a0", "a", 0.0),
            trajectory("a0", "a", 1.0, revision=1),
            trajectory("a1", "a", 0.0, version=4),
            trajectory("b0", "b", 0.0),
            trajectory("b1", "b", None),
        ],
    )
    assert found is not None
    assert (found.tasks, found.rollouts, found.unrewarded) == (2, 3, 1)
    assert found.reward == pytest.approx(1 / 3)
    assert found.passes == {1: 0.25, 2: 1.0}  # at 2, only the first task has two rewards
    assert found.exact == pytest.approx(2 / 3)
    assert set(found.metrics()) == {
        "val/reward", "val/rollouts", "val/unrewarded", "val/exact", "val/pass@1", "val/pass@2"
    }  # fmt: skip


def test_without_a_reward_there_is_no_score() -> None:
    assert score(0, [trajectory("a", "a", None)]) is None


def at(version: int, reward: float) -> Score:
    return Score(version=version, tasks=1, rollouts=1, unrewarded=0, reward=reward, passes={}, exact=1.0)


def test_it_is_time_to_stop_after_as_many_validations_without_a_better_one() -> None:
    early = EarlyStop(patience=2, least=0.1)
    assert [early.take(at(n, r)) for n, r in enumerate([0.2, 0.5, 0.55, 0.7, 0.75, 0.6])] == [False] * 5 + [True]
    assert early.best is not None
    assert early.best.version == 3
    assert not any(EarlyStop().take(at(n, 0.0)) for n in range(50))
