"""Waiting for a model directory that another process is making."""

from __future__ import annotations

import time
from pathlib import Path

from headrace.streams.errors import HeadraceError

POLL_SECONDS = 0.02


class ModelMissingError(HeadraceError):
    """The model directory did not appear in time, or holds no model."""


def await_model(directory: Path, seconds: float) -> None:
    """Returns when the directory is there; it appears whole, by one rename.

    Raises:
        ModelMissingError: it did not within the time given.
    """
    end = time.monotonic() + seconds
    while not (directory / "config.json").exists():
        if time.monotonic() >= end:
            raise ModelMissingError(_missing(directory))
        time.sleep(POLL_SECONDS)


def _missing(directory: Path) -> str:
    if directory.is_dir():
        return f"{directory} is no Hugging Face model directory: it has no config.json"
    return f"no model at {directory}: make one with `headrace model create {directory}`, or give a longer --wait-model"
