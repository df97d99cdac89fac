"""`headrace trainer verl`: policy-gradient steps that verl's workers take on Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.flags import spread
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_flags import GoalFlags, PipelineFlags, RunFlags, StepFlags, WindowFlags
from headrace.cli.trainer_process import run_trainer

if TYPE_CHECKING:
    from collections.abc import Generator

    from headrace.trainers.algorithm import Algorithm


@spread
def verl(
    *,
    run: RunFlags,
    workers: Annotated[int, typer.Option(min=1, help="Workers of verl (FSDP2) that share each step.")] = 1,
    device: Annotated[str, typer.Option(help="Of the workers: cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch in each worker.")] = 1,
    ray_network: Annotated[
        str, typer.Option(help="Ray in a private network namespace, or on the interfaces of the host.")
    ] = "private",
    windows: WindowFlags,
    advantage: Annotated[
        str, typer.Option(help="grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline or reward.")
    ] = "grpo",
    advantages_by: Annotated[str, typer.Option(help="Whose estimators: headrace, or verl (grpo, dr_grpo, rloo).")] = (
        "headrace"
    ),
    loss: Annotated[str, typer.Option(help="clip or gspo.")] = "clip",
    ratio: Annotated[
        str, typer.Option(help="Against what: behaviour, or decoupled with verl's rollout correction.")
    ] = "behaviour",
    correction: Annotated[str, typer.Option(help="Importance weights of a decoupled ratio: token or sequence.")] = (
        "token"
    ),
    truncation: Annotated[float, typer.Option(help="Most that an importance weight counts.")] = 2.0,
    clip_low: Annotated[float, typer.Option(help="Ratios are clipped below 1 minus this.")] = 0.2,
    clip_high: Annotated[float, typer.Option(help="Ratios are clipped above 1 plus this.")] = 0.28,
    dual_clip: Annotated[float | None, typer.Option(help="Bound of the loss of bad samples (none).")] = None,
    aggregation: Annotated[str, typer.Option(help="How token losses add up: token_mean, row_mean or token_sum.")] = (
        "token_mean"
    ),
    token_divisor: Annotated[float | None, typer.Option(help="Length that divides a token_sum.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over a window.")] = 1,
    mini_batches: Annotated[int, typer.Option(min=1, help="Optimizer steps a pass.")] = 1,
    step: StepFlags,
    goal: GoalFlags,
    pipeline: PipelineFlags,
) -> None:
    """Train with verl's workers on Ray until stopped; windows, checkpoints and publishing are those of `grpo`.

    Needs the environment of `make setup-verl`. Prints one JSON line when it has joined, and a line a step on stderr.

    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer verl --model ./model --run run-1 --policy policy --goal 0.9
    """
    stop = stop_on_signal()
    from contextlib import contextmanager

    from headrace.trainers.grpo.settings import GrpoSettings, check_window
    from headrace.trainers.verl.algorithm import Verl
    from headrace.trainers.verl.process import verl_process
    from headrace.trainers.verl.settings import VerlSettings, check_objective

    objective = GrpoSettings(
        advantage=advantage,
        loss=loss,
        ratio=ratio,
        truncation=truncation,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        aggregation=aggregation,
        token_divisor=token_divisor,
        epochs=epochs,
        mini_batches=mini_batches,
        **step.values(),
    )
    where = VerlSettings(
        workers=workers,
        device=device,
        advantages=advantages_by,
        correction=correction,
        network=ray_network,
        threads=threads,
    )
    window_settings = windows.settings(run)
    check_window(window_settings, objective)
    check_objective(objective, where)

    @contextmanager
    def algorithm() -> Generator[Algorithm]:
        with verl_process(objective, where) as process:
            yield Verl(objective, where, run.policy, process)

    run_trainer(
        stop,
        pipeline,
        run.settings(threads=threads, dtype=step.dtype, **goal.values()),
        window_settings,
        algorithm(),
        wait_model=run.wait_model,
        curriculum=windows.looks(),
    )
