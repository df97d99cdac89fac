"""What every trainer command does once it knows what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.options import calm_collector, print_ready

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from headrace.cli.trainer_flags import PipelineFlags
    from headrace.trainers.algorithm import Algorithm
    from headrace.trainers.settings import RunSettings
    from headrace.trainers.window_settings import WindowSettings


def seed_torch(run: RunSettings) -> None:
    """Threads and seed of a trainer whose steps torch takes in this process."""
    import torch

    torch.set_num_threads(run.threads)
    torch.manual_seed(run.seed)  # pyright: ignore[reportUnknownMemberType]


def run_trainer(
    stop: threading.Event,
    pipeline: PipelineFlags,
    run: RunSettings,
    windows: WindowSettings,
    algorithm: AbstractContextManager[Algorithm],
    *,
    wait_model: float,
    **options: Any,
) -> None:
    """Trains until `stop` is set; prints the ready line when it has joined.

    Args:
        algorithm: entered before the model is waited for, so that what it starts gets ready meanwhile.
        wait_model: seconds to wait for the base weights.
        options: of `TrainerLoop`.
    """
    from headrace.trainers.loop import TrainerLoop
    from headrace.trainers.models.loading import wait_for_model

    settings = pipeline.settings()
    with algorithm as entered:
        if wait_for_model(run.model, wait_model, stop):
            calm_collector()
            loop = TrainerLoop(settings, run, windows, entered, **options)
            loop.run(stop, lambda facts: print_ready("trainer", **facts))
