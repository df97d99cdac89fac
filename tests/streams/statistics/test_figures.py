"""Rates and figures, with times that the test gives."""

import pytest

from headrace.schemas.records import TrainingStep, Trajectory, VersionRange, Window
from headrace.streams.statistics.figures import Figures
from headrace.streams.statistics.rates import EventRate, RecentMean, TotalRate


def trajectory(**values: object) -> Trajectory:
    return Trajectory(**{"rollout_id": "r", "status": "succeeded", "assembled_at": 0, **values})  # type: ignore[arg-type]


def step(version: int) -> TrainingStep:
    window = Window()
    return TrainingStep(
        run_id="run", step=version, policy="p", policy_version=version, window=window, started_at=0, ended_at=0
    )


def test_event_rate_is_over_the_whole_seconds_before_now() -> None:
    rate = EventRate(window=5)
    for n in range(100):
        rate.add(1000 + n / 10)  # ten a second for ten seconds
    assert rate.per_second(1010) == 10
    assert rate.per_second(1012) == 6  # two empty seconds
    assert rate.per_second(1020) == 0


def test_a_backlog_is_no_burst() -> None:
    rate = EventRate(window=5)
    for n in range(3600):
        rate.add(1000.0 + n)  # an hour, read at once
    assert rate.per_second(1000 + 3600) == 1


def test_total_rate_needs_two_samples_and_forgets_old_ones() -> None:
    rate = TotalRate(window=5)
    assert rate.per_second() == 0
    rate.sample(0, 1000)
    assert rate.per_second() == 0
    for second in range(1, 20):
        rate.sample(second, 1000 + (50 * second if second < 10 else 500))
    assert rate.per_second() == 0
    rate.sample(20, 2000)
    assert rate.per_second() == pytest.approx(100)


def test_recent_mean() -> None:
    mean = RecentMean(size=2)
    assert mean.mean() is None
    for value in (100.0, 1.0, 2.0):
        mean.add(value)
    assert mean.mean() == 1.5


def test_counters_say_what_was_seen() -> None:
    figures = Figures()
    figures.step(step(7), 100.5)
    for n in range(10):
        version = VersionRange(min=5, max=6)
        figures.trajectory(trajectory(final_reward=float(n % 2), policy_version=version, run_id="run"), 100.0 + n / 10)
    figures.trajectory(trajectory(status="failed"), 101.0)
    figures.trajectory(trajectory(revision=1, final_reward=9.0), 101.0)
    figures.total("spans", 100, 100.0)
    figures.total("spans", 150, 101.0)
    figures.lags({"runner": 3})
    assert figures.counters(102.0) == {
        "rollouts_per_second": 2,
        "trajectories_per_second": 2,
        "training_steps_per_second_x1000": 200,
        "policy_version": 7,
        "unreadable": 0,
        "spans_per_second": 50,
        "rewards_per_second": 0,
        "rollouts_succeeded": 10,
        "rollouts_failed": 1,
        "lag_runner": 3,
        "reward_mean_x1000": 500,
        "staleness_mean_x1000": 2000,
    }
