"""`headrace trainer`: learn from rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.flags import spread
from headrace.cli.lora_flags import LoraFlags
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_algorithms import apo, baseline, custom, fast
from headrace.cli.trainer_diff import diff
from headrace.cli.trainer_flags import GoalFlags, PipelineFlags, RunFlags, StepFlags, Threads, WindowFlags
from headrace.cli.trainer_process import run_trainer, seed_torch
from headrace.cli.trainer_sft import sft
from headrace.cli.trainer_verl import verl

if TYPE_CHECKING:
    from collections.abc import Generator

    from headrace.trainers.algorithm import Algorithm

app = typer.Typer(help="Learn from rollouts: weights, or prompts.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Learn from rollouts: weights, or prompts."""


@app.command()
@spread
def grpo(
    *,
    run: RunFlags,
    windows: WindowFlags,
    objective: Annotated[
        str,
        typer.Option(help="Named settings of what follows: grpo, dr_grpo, rloo, reinforce_pp, ppo, dapo, ..."),
    ] = "grpo",
    advantage: Annotated[
        str | None, typer.Option(help="grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline, reward or gae.")
    ] = None,
    credit: Annotated[str | None, typer.Option(help="Whose reward a call answers for: final, own or return.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Discount of return and gae (1).")] = None,
    gae_lambda: Annotated[float | None, typer.Option(help="Lambda of gae (1).")] = None,
    loss: Annotated[str | None, typer.Option(help="clip, gspo or reinforce.")] = None,
    ratio: Annotated[str | None, typer.Option(help="Against what: behaviour, or decoupled.")] = None,
    truncation: Annotated[float | None, typer.Option(help="Most that an importance weight counts (2).")] = None,
    clip_low: Annotated[float | None, typer.Option(help="Ratios are clipped below 1 minus this (0.2).")] = None,
    clip_high: Annotated[float | None, typer.Option(help="Ratios are clipped above 1 plus this (0.28).")] = None,
    dual_clip: Annotated[float | None, typer.Option(help="Bound of the loss of bad samples (none).")] = None,
    kl: Annotated[str | None, typer.Option(help="Divergence from the base weights: none, k1 or k3.")] = None,
    kl_beta: Annotated[float | None, typer.Option(help="Its coefficient (0.001).")] = None,
    kl_in: Annotated[str | None, typer.Option(help="Where it counts: reward or loss.")] = None,
    aggregation: Annotated[
        str | None, typer.Option(help="How token losses add up: rollout_mean, row_mean, token_mean or token_sum.")
    ] = None,
    token_divisor: Annotated[float | None, typer.Option(help="Length that divides a token_sum (none).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over a window (1).")] = None,
    mini_batches: Annotated[int | None, typer.Option(min=1, help="Optimizer steps a pass (1).")] = None,
    step: StepFlags,
    lora: LoraFlags,
    packing: Annotated[bool, typer.Option(help="Rows lie one behind the other instead of padded.")] = False,
    goal: GoalFlags,
    threads: Threads = 1,
    ranks: Annotated[int, typer.Option(min=1, help="Processes that share each step, with so many threads each.")] = 1,
    pipeline: PipelineFlags,
) -> None:
    """Train with GRPO or a relative of it until stopped.

    Prints one JSON line when it has joined, and a line a step on stderr.

    A run that has reached its goal, or its last step, stays and decides what still arrives (`run_finished`).
    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer grpo --model ./model --run run-1 --policy policy --goal 0.9
    """
    stop = stop_on_signal()
    from contextlib import contextmanager

    from headrace.trainers.grpo.algorithm import Grpo
    from headrace.trainers.grpo.following import ranks_of
    from headrace.trainers.grpo.settings import check_window, settings_of_objective, window_policies

    arithmetic = settings_of_objective(
        objective,
        advantage=advantage,
        credit=credit,
        gamma=gamma,
        gae_lambda=gae_lambda,
        loss=loss,
        ratio=ratio,
        truncation=truncation,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        kl=kl,
        kl_beta=kl_beta,
        kl_in=kl_in,
        aggregation=aggregation,
        token_divisor=token_divisor,
        epochs=epochs,
        mini_batches=mini_batches,
        packing=packing,
        lora=lora.settings(run.seed),
        **step.values(),
    )
    window_settings = windows.settings(run, **window_policies(objective))
    check_window(window_settings, arithmetic)
    run_settings = run.settings(threads=threads, dtype=step.dtype, **goal.values())
    seed_torch(run_settings)

    @contextmanager
    def algorithm() -> Generator[Algorithm]:
        with ranks_of(arithmetic, ranks, threads) as together:
            yield Grpo(arithmetic, run.policy, together)

    run_trainer(
        stop,
        pipeline,
        run_settings,
        window_settings,
        algorithm(),
        wait_model=run.wait_model,
        curriculum=windows.looks(),
    )


for command in (sft, verl, custom, apo, baseline, fast, diff):
    app.command()(command)
