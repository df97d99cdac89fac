"""Metrics under their fixed names, and what TensorBoard reads of them."""

import io
import json
from pathlib import Path

import pytest

from headrace.schemas.records import LogPosition, ResourcesUpdate, TrainingStep, Trajectory, VersionRange, Window
from headrace.trainers.metrics.names import is_fixed, scalars, times
from headrace.trainers.metrics.sinks import JsonSink, TensorBoardSink
from headrace.trainers.metrics.validations import KEPT_VERSIONS, QUIET_SECONDS, Validations


def step(**metrics: float) -> TrainingStep:
    return TrainingStep(
        run_id="run",
        step=7,
        policy="p",
        policy_version=9,
        window=Window(position=[], samples=[LogPosition(partition=0, offset=n) for n in range(4)]),
        metrics=metrics,
        staleness={"0": 3, "2": 1},
        started_at=1_000_000,
        ended_at=3_000_000,
    )


def test_a_step_has_its_metrics_its_histogram_and_its_idle_share() -> None:
    spent = {"seconds/train": 0.5, "seconds/read": 1.4}
    assert times(spent, 1_000_000, 3_000_000) == {"seconds/step": 2.0, "idle/share": 0.75}  # reading waits for a window
    assert times(spent, 3_000_000, 3_000_000) == {}
    found = scalars(step(**{"reward/mean": 0.5, "grad_norm": float("nan")}))
    assert found == {
        "reward/mean": 0.5,
        "samples": 4.0,
        "policy_version": 9.0,
        "staleness/0": 3.0,
        "staleness/2": 1.0,
    }
    assert all(is_fixed(name) for name in found)
    assert not is_fixed("rewards/mean")


def test_event_files_hold_what_was_written_and_replace_those_of_before(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    for _ in range(2):
        sink = TensorBoardSink(tmp_path)
        sink.write({"reward/mean": 0.25, "val/pass@2": 0.5}, 3, 1700.5)
        sink.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    events = [e for e in loader.EventFileLoader(str(file)).Load() if e.summary.value]
    assert [(e.step, e.wall_time) for e in events] == [(3, 1700.5)]
    assert [v.tag for v in events[0].summary.value] == ["reward/mean", "val/pass@2"]
    assert events[0].summary.value[0].tensor.float_val[0] == 0.25


def test_json_is_an_object_a_line() -> None:
    out = io.StringIO()
    sink = JsonSink(out)
    sink.write({"lr": 0.1}, 1, 2.0)
    sink.close()
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [{"step": 1, "time": 2.0, "lr": 0.1}]


def test_a_validation_is_told_once_it_is_quiet_and_anew_when_a_reward_comes_late() -> None:
    validations = Validations("run")
    validations.publication(
        ResourcesUpdate(resources_id="p-v5", name="p", version=5, resources={}, run_id="run", created_at=0)
    )

    def take(reward: float, revision: int, now: float, pinned: str = "p-v5", mode: str = "val") -> None:
        validations.trajectory(
            Trajectory(
                rollout_id="r",
                mode=mode,
                status="succeeded",
                final_reward=reward,
                resources_id=pinned,
                policy_version=VersionRange(min=5, max=6),
                revision=revision,
                assembled_at=0,
            ),
            now,
        )

    take(0.25, 0, 100.0)
    take(1.0, 0, 100.0, pinned="of another run")
    take(1.0, 0, 100.0, mode="train")
    assert validations.scores(100.0 + QUIET_SECONDS - 1) == []
    (first,) = validations.scores(100.0 + QUIET_SECONDS)
    assert (first.version, first.reward, first.exact) == (5, 0.25, 0.0)
    assert validations.scores(1000.0) == []
    take(0.75, 1, 1000.0)
    (second,) = validations.scores(1000.0 + QUIET_SECONDS)
    assert second.reward == 0.75
    for version in range(6, 6 + KEPT_VERSIONS):
        pinned = f"p-v{version}"
        validations.publication(
            ResourcesUpdate(resources_id=pinned, name="p", version=version, resources={}, run_id="run", created_at=0)
        )
        take(0.5, 0, 2000.0, pinned)
    assert len(validations.scores(2000.0 + QUIET_SECONDS)) == KEPT_VERSIONS
    take(0.0, 2, 3000.0)  # of a version that is told no more
    take(0.0, 1, 3000.0, "p-v6")
    (last,) = validations.scores(3000.0 + QUIET_SECONDS)
    assert (last.version, last.reward) == (6, 0.0)
