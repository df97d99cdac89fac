"""Where a replay begins."""

import json
from pathlib import Path

import msgspec
import pytest

from headrace.schemas.records import RunManifest, TrainerState, TrainingStep, Weights, Window
from headrace.trainers.checkpoint import Checkpoints, State
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.replay.beginning import algorithm_of, beginning_of, manifest_of
from headrace.trainers.replay.changes import Changes
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.settings import ReplaySettings
from tests.trainers.make import POLICY, RUN


def manifest(base: Path, algorithm: str = "grpo", **settings: object) -> RunManifest:
    arithmetic = {"algorithm": msgspec.to_builtins(GrpoSettings()) | settings, "window": {"groups": 2}}
    return RunManifest(
        run_id=RUN,
        algorithm=algorithm,
        policy=POLICY,
        settings=json.dumps(arithmetic),
        base_weights=Weights(policy=POLICY, version=0, weights_id="w", uri=str(base)),
        versions={"python": "2.7", "torch": "0.1", "nothing-of-this-name": "1"},
        created_at=0,
    )


def step(state: TrainerState | None) -> TrainingStep:
    return TrainingStep(
        run_id=RUN, step=9, policy=POLICY, policy_version=9, window=Window(), state=state, started_at=0, ended_at=0
    )


def test_with_the_base_weights_or_with_those_of_the_step_before(tmp_path: Path) -> None:
    known = manifest(tmp_path)
    assert beginning_of(known, None, from_base=False).exact
    offline = beginning_of(known, step(None), from_base=True)
    assert (offline.reached, offline.step, offline.exact) == (None, 0, False)
    weights = Weights(policy=POLICY, version=9, weights_id="w", uri=str(tmp_path))
    checkpoints = Checkpoints(tmp_path, RUN, keep=2)
    checkpoints.directory.mkdir()
    written = checkpoints.write_state(9, State({}, {"weights": msgspec.to_builtins(weights)}))
    found = beginning_of(known, step(written), from_base=False)
    assert (found.step, found.exact) == (9, True)
    assert found.reached is not None
    assert found.reached[0] == weights
    Path(written.uri).unlink()
    for state in (written, None):
        with pytest.raises(ReplayError, match="after step 9, whose weights and optimizer are not on disk any more"):
            beginning_of(known, step(state), from_base=False)
    with pytest.raises(ReplayError, match="base weights of run run-1 are gone"):
        beginning_of(manifest(tmp_path / "gone"), None, from_base=False)


def test_runs_that_replay_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="trained by sft; replay knows grpo"):
        algorithm_of(manifest(tmp_path, "sft"), None)
    with pytest.raises(ReplayError, match="several ranks"):
        algorithm_of(manifest(tmp_path, ranks=2), None)
    algorithm, window = algorithm_of(manifest(tmp_path), "transition")
    assert algorithm.settings()["level"] == "transition"
    assert window.groups == 2


def test_an_offline_run_says_what_it_has_changed(tmp_path: Path) -> None:
    first = manifest(tmp_path)
    begins = beginning_of(first, None, from_base=False)
    assert first.base_weights is not None
    told = ReplaySettings(run_id=RUN, into_run="other", checkpoints=tmp_path, changes=Changes(level="transition"))
    made = manifest_of(first, told, begins, first.base_weights, "headrace", offline=True)
    assert (made.run_id, made.offline, made.parent and made.parent.run_id) == ("other", True, RUN)
    settings = json.loads(made.settings)
    assert settings["replay"] == {"prefix": "headrace", "assembler": {"level": "transition"}}
    assert settings["algorithm"]["level"] == "transition"
    assert made.versions["nothing-of-this-name"] == "none"
    assert made.versions["python"] != "2.7"  # those of the process that trains it again
    same = manifest_of(
        first, ReplaySettings(run_id=RUN, checkpoints=tmp_path), begins, first.base_weights, "h", offline=False
    )
    assert (same.settings, same.offline) == (first.settings, False)
