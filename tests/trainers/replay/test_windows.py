"""The windows of a run as its steps tell them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from headrace.schemas.records import Dropped, LogPosition, TrainingStep, VersionRange, Window
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.windows import OfflineWindows, Planned, ReplayWindows, groups_of, planned
from headrace.trainers.window import Windows
from tests.trainers.make import RUN, at, trajectory
from tests.trainers.pipeline import synthetic, window_settings

Make = Callable[..., Path]
Places = list[tuple[int, int]]


def step(samples: Places, number: int = 3, **dropped: Places) -> TrainingStep:
    def places(positions: Places) -> list[LogPosition]:
        return [at(p, o) for p, o in positions]

    return TrainingStep(
        run_id=RUN,
        step=number,
        policy="policy",
        policy_version=5,
        window=Window(
            samples=places(samples), dropped=[Dropped(reason=r, samples=places(p)) for r, p in dropped.items()]
        ),
        started_at=0,
        ended_at=0,
    )


def plan_of(told: TrainingStep, *, offline: bool = False) -> Planned:
    (plan,) = planned([told], [told], offline=offline)
    return plan


RECORDS = {
    (0, 0): trajectory("b", 1, policy_version=VersionRange(min=2, max=4)),
    (0, 1): trajectory("b", 0),
    (1, 0): trajectory("a", 0),
    (1, 1): trajectory("a", 1, policy_version=VersionRange(min=3, max=3)),
    (1, 2): trajectory("c", 0),
}


def test_groups_are_those_of_the_window_with_the_members_that_only_count_in_the_baseline() -> None:
    plan = plan_of(step([(0, 0), (1, 0)], stale=[(0, 1), (1, 2)], no_reward=[(1, 1)], group_decided=[(9, 9)]))
    assert (9, 9) not in plan.wanted
    groups = groups_of(plan, RECORDS)
    assert [(g.key, [m.at for m in g.in_order()]) for g in groups] == [
        ("b", [(0, 1), (0, 0)]),
        ("a", [(1, 0), (1, 1)]),
    ]
    assert groups[0].members[1].staleness == 2
    windows = ReplayWindows(window_settings(), [(0, 0), (1, 0)])
    assert [m.at for g in groups for m in windows.trainable(g)] == [(0, 0), (1, 0)]
    windows.train(groups[1].in_order()[:1])
    with pytest.raises(ReplayError, match="step 3: 1 samples in another order than 2"):
        windows.window(plan, {})
    with pytest.raises(ReplayError, match="is refused now as too_long"):
        windows.drop(groups[0].members[1], "too_long")


@pytest.mark.parametrize("ungrouped", ["window", "running"])
def test_ungrouped_samples_that_are_stale_are_no_part_of_a_baseline(make_model: Make, ungrouped: str) -> None:
    """They are groups of their own, of which a replay has those alone that were trained."""
    records = {(0, n): t for n, t in enumerate(synthetic(range(2), group_id=None))}
    for (_, n), trajectory_ in records.items():
        version = 0 if n % 4 == 3 else 4
        trajectory_.final_reward = float(n % 4 != 0)
        trajectory_.policy_version = trajectory_.triplets[0].policy_version = VersionRange(min=version, max=version)
    settings = window_settings(groups=8, max_staleness=1, ungrouped=ungrouped)
    windows = Windows(settings)
    for place, trajectory_ in records.items():
        windows.take(place, 0, trajectory_)
    groups = windows.close(4, 0)
    assert groups is not None
    model = make_model()
    first, again = Grpo(GrpoSettings(), "policy"), Grpo(GrpoSettings(), "policy")
    for algorithm in (first, again):
        algorithm.load(model)
    metrics = first.train(groups, windows)
    told = step([place for place in records if place[1] % 4 != 3], stale=[(0, 3), (0, 7)])
    plan = plan_of(told)
    replayed = again.train(groups_of(plan, records), ReplayWindows(settings, plan.trained))
    assert metrics is not None
    assert replayed is not None
    assert metrics.metrics["groups/count"] == replayed.metrics["groups/count"] == 6
    assert first.state().facts == again.state().facts
    assert all(torch.equal(tensor, again.weights()[name]) for name, tensor in first.weights().items())


def test_a_window_is_told_with_the_places_of_the_new_topic() -> None:
    plan = plan_of(step([(0, 0), (1, 0)], stale=[(0, 1)], mode=[(7, 7)]))
    windows = ReplayWindows(window_settings(), plan.trained)
    for group in groups_of(plan, RECORDS):
        windows.train(windows.trainable(group))
    told = windows.window(plan, {(0, 0): at(2, 5), (1, 0): at(2, 6), (0, 1): at(0, 1)})
    assert told.samples == [at(2, 5), at(2, 6)]
    assert told.dropped == [Dropped(reason="stale", samples=[at(0, 1)])]


def test_an_offline_window_decides_anew_who_is_trained() -> None:
    """One that had no reward has one now, one has lost its triplets, and a stale one stays stale."""
    plan = plan_of(step([(0, 0), (1, 0)], stale=[(0, 1)], no_reward=[(1, 1)]), offline=True)
    changed = {**RECORDS, (1, 0): msgspec.structs.replace(RECORDS[1, 0], triplets=[])}
    windows = OfflineWindows(window_settings(max_staleness=3))
    groups = windows.sift(groups_of(plan, changed, offline=True))
    trained = [m for g in groups for m in windows.trainable(g)]
    windows.train(trained)
    assert [m.at for m in trained] == [(0, 0), (1, 1)]
    windows.drop(groups[0].members[1], "too_long")  # as an algorithm says
    assert windows.reasons == {"stale": 1, "no_triplets": 1, "too_long": 1}


def test_groups_that_their_rewards_kept_out_come_back_with_other_rewards() -> None:
    """Also those of steps without a window; what a curriculum kept out stays out."""
    before = step([], number=2, zero_variance=[(1, 2)], boring=[(1, 0), (1, 1)])
    told = step([(0, 0)], zero_variance=[(0, 1)])
    records: dict[tuple[int, int], Any] = {**RECORDS, (0, 1): trajectory("d", 0)}
    (plan,) = planned([before, told], [told], offline=True)
    assert [g.key for g in groups_of(plan, records, offline=True)] == ["b", "d", "c"]
    (plan,) = planned([before, told], [told], offline=False)
    assert [g.key for g in groups_of(plan, records)] == ["b"]
    windows = OfflineWindows(window_settings(zero_variance="drop"))
    assert windows.sift(groups_of(plan_of(told, offline=True), records, offline=True)) == []
    assert windows.reasons == {"zero_variance": 2}
