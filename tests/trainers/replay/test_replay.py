"""A run is trained again from the log: bit for bit the same, or it says what is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from headrace.schemas.records import Dropped, LogPosition, TrainingStep, VersionRange, Window
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.clients import make_admin
from headrace.streams.settings import Settings
from headrace.trainers.replay.replay import Replay, Replayed
from headrace.trainers.replay.windows import ReplayError, ReplayWindows, groups_of, repeated
from tests.trainers.make import RUN, trajectory
from tests.trainers.pipeline import loop, produce, run_until, synthetic, trained_at_least, training, window_settings

Make = Callable[..., Path]


def step(samples: list[tuple[int, int]], **dropped: list[tuple[int, int]]) -> TrainingStep:
    def places(positions: list[tuple[int, int]]) -> list[LogPosition]:
        return [LogPosition(partition=p, offset=o) for p, o in positions]

    return TrainingStep(
        run_id=RUN,
        step=3,
        policy="policy",
        policy_version=5,
        window=Window(
            samples=places(samples), dropped=[Dropped(reason=r, samples=places(p)) for r, p in dropped.items()]
        ),
        started_at=0,
        ended_at=0,
    )


def test_groups_are_those_of_the_window_with_the_members_that_only_count_in_the_baseline() -> None:
    records = {
        (0, 0): trajectory("b", 1, policy_version=VersionRange(min=2, max=4)),
        (0, 1): trajectory("b", 0),
        (1, 0): trajectory("a", 0),
        (1, 1): trajectory("a", 1),
        (1, 2): trajectory("c", 0),
    }
    told = step([(0, 0), (1, 0)], stale=[(0, 1), (1, 2)], no_reward=[(1, 1)], group_decided=[(9, 9)])
    groups = groups_of(told, records)
    assert [(g.key, [m.at for m in g.in_order()]) for g in groups] == [
        ("b", [(0, 1), (0, 0)]),
        ("a", [(1, 0), (1, 1)]),
    ]
    assert groups[0].members[1].staleness == 2
    windows = ReplayWindows(window_settings(), [(0, 0), (1, 0)])
    assert [m.at for g in groups for m in windows.trainable(g)] == [(0, 0), (1, 0)]
    windows.train(groups[1].in_order()[:1])
    with pytest.raises(ReplayError, match="step 3: 1 samples in another order than 2"):
        repeated(told, windows)
    with pytest.raises(ReplayError, match="is refused now as too_long"):
        windows.drop(groups[0].members[1], "too_long")


@pytest.mark.kafka
def test_a_run_is_bit_identical_twice_and_what_retention_took_is_said(
    settings: Settings, make_model: Make, tmp_path: Path
) -> None:
    model = make_model()
    records = synthetic(range(8))
    for number, record in enumerate(records):
        if number % 4 == 3:  # stale from the third window on, and then only part of their groups' baselines
            continue
        record.policy_version = record.triplets[0].policy_version = VersionRange(min=9, max=9)
    produce(settings, records)
    trainer = loop(settings, model, tmp_path, window=window_settings(max_staleness=1))
    run_until(settings, trainer, trained_at_least(16 + 12))
    _, steps = training(settings)
    assert any(d.reason == "stale" for s in steps for d in s.window.dropped)

    def replay(prefix: str, **options: int) -> list[Replayed]:
        target = settings.model_copy(update={"prefix": f"{settings.prefix}-{prefix}"})
        done: list[Replayed] = []
        Replay(settings, target, RUN, tmp_path / prefix, **options).run(done.append)
        manifests, again = training(target)
        assert manifests[0].parent is not None
        assert manifests[0].parent.run_id == RUN
        assert [s.window for s in again] == [s.window for s in steps if s.window.samples][: len(again)]
        return done

    assert [d.identical for d in replay("first")] == [True] * len([s for s in steps if s.window.samples])
    assert [d.identical for d in replay("second", until=2)] == [True, True]
    with pytest.raises(SettingsError, match="a prefix of its own"):
        Replay(settings, settings, RUN, tmp_path / "same")
    admin = make_admin(settings, "test")
    everything = [TopicPartition(settings.topic("triplets"), partition, -1) for partition in range(3)]
    deleted = cast("Any", admin).delete_records(everything)
    for future in deleted.values():
        future.result(10)
    with pytest.raises(ReplayError, match=r"trajectories are not in the log any more .* the first is step 1"):
        replay("late")
