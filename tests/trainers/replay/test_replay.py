"""A run is trained again from the log: bit for bit the same, with other rewards, or it says what is missing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from headrace.schemas.records import VersionRange
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.errors import InvalidValueError, SettingsError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.settings import Settings
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.lora import LoraSettings
from headrace.trainers.replay.beginning import history_of
from headrace.trainers.replay.bounds import places_of
from headrace.trainers.replay.changes import parse_changes
from headrace.trainers.replay.diff import manifest_differences, positions_of, step_differences
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.facts import read_facts
from headrace.trainers.replay.offsets import Edge, parse_bound
from headrace.trainers.replay.replay import Replay
from headrace.trainers.replay.settings import ReplaySettings
from headrace.trainers.replay.steps import Outcome, Replayed
from headrace.trainers.replay.survey import Survey
from tests.trainers.make import RUN
from tests.trainers.pipeline import (
    loop,
    produce,
    run_until,
    synthetic,
    trained_at_least,
    training,
    triplets,
    window_settings,
)
from tests.trainers.replay.traffic import GROUP, assembled

pytestmark = pytest.mark.kafka
Make = Callable[..., Path]
STEPS = 20
REWARDS = """
def words(trajectory):
    assert len(trajectory.spans) == 2
    return 0.1 * len(trajectory.text.split())
"""


class Replays:
    """Replays of one run, each under a prefix of its own."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.surveys: list[tuple[Survey, Outcome]] = []

    def target(self, name: str) -> Settings:
        return self.settings.model_copy(update={"prefix": f"{self.settings.prefix}-{name}"})

    def __call__(self, name: str, *, dry_run: bool = False, **told: Any) -> tuple[Outcome, list[Replayed]]:
        done: list[Replayed] = []
        self.surveys.clear()
        replay = Replay(
            self.settings,
            self.target(name),
            ReplaySettings(run_id=RUN, checkpoints=self.folder / name, **told),
        )
        outcome = replay.run(lambda found, will: self.surveys.append((found, will)), done.append, dry_run=dry_run)
        return outcome, done

    def differences(self, name: str) -> tuple[list[str], list[dict[str, Any]]]:
        """As `trainer diff` tells them."""
        one, other = history_of(self.settings, RUN), history_of(self.target(name), RUN)
        assert one.manifest is not None
        assert other.manifest is not None
        facts = read_facts(self.settings, positions_of(one)), read_facts(self.target(name), positions_of(other))
        return manifest_differences(one.manifest, other.manifest), list(step_differences(one, other, facts))


def delete(settings: Settings, topic: str) -> None:
    """As retention does."""
    name = settings.topic(topic)
    everything = [TopicPartition(name, partition, -1) for partition in partition_ids(settings, name)]
    admin = make_admin(settings, "test")
    for future in cast("Any", admin).delete_records(everything).values():
        future.result(10)


def test_recorded_windows_with_members_that_only_count_in_the_baseline(
    settings: Settings, make_model: Make, tmp_path: Path
) -> None:
    """An adapter's run, bit for bit; and what retention took is said before anything is written."""
    arithmetic = GrpoSettings(lora=LoraSettings(rank=4, alpha=8), kl="k3", kl_beta=0.05)
    records = synthetic(range(8))
    for number, record in enumerate(records):
        if number % 4 == 3:  # stale from the third window on, and then only part of their groups' baselines
            continue
        record.policy_version = record.triplets[0].policy_version = VersionRange(min=9, max=9)
    produce(settings, records)
    window = window_settings(max_staleness=1)
    run_until(
        settings,
        loop(settings, make_model(), tmp_path, window=window, arithmetic=arithmetic),
        trained_at_least(16 + 12),
    )
    _, steps = training(settings)
    assert any(d.reason == "stale" for s in steps for d in s.window.dropped)
    replay = Replays(settings, tmp_path)
    with pytest.raises(ReplayError, match=r"records that 32 trajectories .* --recorded trains"):
        replay("first")  # nobody has assembled them
    outcome, done = replay("first", recorded=True)
    assert [d.identical for d in done] == [True] * len([s for s in steps if s.window.samples])
    assert not outcome.offline
    (manifest,), again = training(replay.target("first"))
    assert manifest.parent is not None
    assert (manifest.parent.run_id, manifest.offline) == (RUN, False)
    assert sum(len(d.samples) for s in again for d in s.window.dropped if d.reason == "stale") == 4
    manifests, differences = replay.differences("first")
    assert manifests == []
    assert [(d["samples"], d["weights"], d["metrics"]) for d in differences] == [(True, True, [])] * 4
    with pytest.raises(ReplayError, match=f"there is a run {RUN} under prefix"):
        replay("first", recorded=True)
    target = replay.target("first")
    with pytest.raises(SettingsError, match="a replay, whose optimizer is not kept"):
        run_until(target, loop(target, tmp_path, tmp_path, window=window), lambda _: False)
    with pytest.raises(SettingsError, match="a prefix of its own"):
        Replay(settings, settings, ReplaySettings(run_id=RUN, checkpoints=tmp_path / "same"))
    delete(settings, "triplets")
    with pytest.raises(ReplayError, match=r"32 of 32 trajectories are not in the log any more .* 4 steps from 1 to 4"):
        replay("late", recorded=True)


def test_a_run_is_made_again_from_its_spans(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    """Twenty steps whose trajectories are assembled anew, some with late rewards, by an assembler of other settings."""
    assembled(settings, range(2 * STEPS), AssemblySettings(reward_policy="final_only", conversations=True))
    arithmetic = GrpoSettings(credit="own")  # so that it counts which call has which reward
    run_until(
        settings,
        loop(settings, make_model(), tmp_path, arithmetic=arithmetic, max_steps=STEPS),
        trained_at_least(2 * STEPS * GROUP),
    )
    _, steps = training(settings)
    trained = [s for s in steps if s.window.samples]
    log = triplets(settings)
    assert any(log[p.partition, p.offset].revision for s in trained for p in s.window.samples)
    replay = Replays(settings, tmp_path)

    outcome, done = replay("same")
    assert [d.identical for d in done] == [True] * STEPS
    assert not outcome.otherwise
    ((survey, _),) = replay.surveys
    assert survey.whole
    manifests, differences = replay.differences("same")
    assert manifests == []
    assert [(d["samples"], d["weights"]) for d in differences] == [(True, True)] * STEPS

    outcome, done = replay("end", start=parse_bound(f"step:{STEPS}", "--from"))  # from weights and optimizer on disk
    assert [(d.step, d.identical) for d in done] == [(STEPS, True)]
    assert not outcome.offline
    with pytest.raises(ReplayError, match=r"the log knows no run no .*; it has run-1"):
        Replay(replay.target("same"), settings, ReplaySettings(run_id="no", checkpoints=tmp_path)).run(print, print)

    file = tmp_path / "replayed_rewards.py"
    file.write_text(REWARDS)
    outcome, done = replay("other", reward=f"{file}:words", changes=parse_changes(["agent_match=coder"]), until=3)
    assert outcome.offline
    assert outcome.ess is not None
    assert [d.samples for d in done] == [2 * GROUP] * 3
    assert all(d.identical is None and d.ess is not None and 1.0 <= d.ess <= d.samples + 1e-9 for d in done)
    (manifest,), offline = training(replay.target("other"))
    assert manifest.offline
    assert json.loads(manifest.settings)["replay"] == {
        "prefix": settings.prefix,
        "until": 3,
        "reward": f"{file}:words",
        "assembler": {"agent_match": "coder"},
    }
    assert offline[-1].metrics["ess/total"] == outcome.ess
    assert offline[-1].staleness == {}
    assert not any(name.startswith(("staleness/", "mismatch/")) for name in offline[-1].metrics)
    made = triplets(replay.target("other"))
    assert {(len(t.triplets), t.triplets[0].agent_name) for t in made.values()} == {(1, "coder")}
    assert {round(t.final_reward or 0.0, 6) for t in made.values()} <= {0.1, 0.2, 0.3}
    target = replay.target("other")
    with pytest.raises(SettingsError, match="an offline replay, and no trainer goes on with it"):
        run_until(target, loop(target, tmp_path, tmp_path), lambda _: False)
    manifests, differences = replay.differences("other")
    assert any(line.startswith("settings.replay: None, ") for line in manifests)
    assert differences[0]["trajectories"]["tokens"] == 2 * GROUP
    assert differences[0]["trajectories"]["rewards"] > 0

    delete(settings, "spans")
    names = sorted({log[p.partition, p.offset].rollout_id for s in trained for p in s.window.samples})
    with pytest.raises(ReplayError, match=f"spans of {len(names)}"):
        replay("gone")
    ((survey, _),) = replay.surveys
    assert sorted(survey.sourceless.values()) == names
    outcome, done = replay("gone", allow_missing=True, until=2)
    assert [d.identical for d in done] == [True, True]


def test_offsets_of_the_log(settings: Settings) -> None:
    produce(settings, synthetic(range(4)))
    topic = settings.topic("triplets")
    ends = {p: end for (_, p), end in end_offsets(make_admin(settings, "test"), [(topic, p) for p in range(3)]).items()}
    starts = dict.fromkeys(ends, 0)

    def places(text: str, edge: Edge = "from") -> dict[int, int]:
        return dict(places_of(settings, parse_bound(text, "--from"), edge).offsets)

    assert places("earliest") == starts
    assert places("latest") == ends
    assert places("2020-01-01") == starts
    assert places("2120-01-01T00:00:00") == ends
    busy = max(ends, key=lambda p: ends[p])
    assert places(f"{busy}:1") == {**starts, busy: 1}
    assert places(f"{busy}:1", "to") == {**ends, busy: 1}
    assert places_of(settings, parse_bound("step:4", "--from"), "from").step == 4
    with pytest.raises(InvalidValueError, match=r"--to 7:0: .* has no partition 7, but 0 to 2"):
        places("7:0", "to")
    with pytest.raises(InvalidValueError, match=f"partition {busy} of .* ends at offset {ends[busy]}"):
        places(f"{busy}:{ends[busy] + 1}")
