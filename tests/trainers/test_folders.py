"""Whose checkpoints a trainer may remove."""

from pathlib import Path

import pytest

from headrace.schemas.records import Weights
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import CheckpointError
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.history import History
from headrace.trainers.loop import _Session  # pyright: ignore[reportPrivateUsage]
from headrace.trainers.settings import RunSettings
from headrace.trainers.window import Windows
from tests.trainers.make import POLICY, RUN
from tests.trainers.pipeline import window_settings


def sweep(checkpoints: Path, published: Path) -> None:
    """What a trainer removes that comes back to a run whose base weights stand in `published`."""
    run = RunSettings(run_id=RUN, policy=POLICY, model=checkpoints, checkpoints=checkpoints)
    weights = Weights(policy=POLICY, version=0, weights_id="w", uri=str(published / RUN / f"base-{'a' * 32}"))
    session = _Session(Settings(), run, Windows(window_settings()), Grpo(GrpoSettings(), POLICY))
    session._sweep(History(published=[weights]))  # pyright: ignore[reportPrivateUsage]


def test_only_what_the_run_itself_has_left(tmp_path: Path) -> None:
    """Not the versions of a run of the same name under another prefix."""
    version = tmp_path / "a" / RUN / f"v000001-{'b' * 32}"
    version.mkdir(parents=True)
    with pytest.raises(CheckpointError, match="a run that these topics do not know"):
        sweep(tmp_path / "a", published=tmp_path / "b")
    assert version.is_dir()
    sweep(tmp_path / "c", published=tmp_path / "b")  # a new folder
    sweep(tmp_path / "a", published=tmp_path / "a")
    assert not version.exists()
