"""`headrace trainer`: learn from rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, print_ready, settings_of
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_algorithms import apo, baseline, custom, fast
from headrace.cli.trainer_sft import sft

app = typer.Typer(help="Learn from rollouts: weights, or prompts.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Learn from rollouts: weights, or prompts."""


@app.command()
def grpo(
    model: Annotated[Path, typer.Option(help="Hugging Face directory of the base weights.")],
    run: Annotated[str, typer.Option(help="Name of the run; the same again goes on where it stopped.")],
    policy: Annotated[str, typer.Option(help="Name under which weights are published.")] = "policy",
    checkpoints: Annotated[Path, typer.Option(help="Where versions are written; engines must see it too.")] = Path(
        "checkpoints"
    ),
    wait_model: Annotated[float, typer.Option(min=0, help="Seconds to wait for --model to appear.")] = 0.0,
    window_groups: Annotated[int, typer.Option(min=1, help="Complete groups a window.")] = 10,
    window_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Or fewer, when one has waited for so long (never).")
    ] = None,
    group_size: Annotated[int | None, typer.Option(min=1, help="Samples a group (what its tasks say).")] = None,
    group_timeout: Annotated[float, typer.Option(min=0.001, help="Seconds until an incomplete group closes.")] = 300.0,
    incomplete: Annotated[str, typer.Option(help="What becomes of such a group: train or drop.")] = "train",
    max_staleness: Annotated[int, typer.Option(min=0, help="Most versions a sample may be behind.")] = 3,
    accept_external: Annotated[bool, typer.Option(help="Train on traffic that nobody enqueued.")] = False,
    lr: Annotated[float, typer.Option(help="Learning rate of AdamW.")] = 1e-3,
    entropy: Annotated[float, typer.Option(min=0, help="Coefficient of the entropy bonus.")] = 0.02,
    clip_low: Annotated[float, typer.Option(help="Ratios are clipped below 1 minus this.")] = 0.2,
    clip_high: Annotated[float, typer.Option(help="Ratios are clipped above 1 plus this.")] = 0.28,
    weight_decay: Annotated[float, typer.Option(min=0, help="Weight decay of AdamW.")] = 0.0,
    max_grad_norm: Annotated[float, typer.Option(help="Gradients are scaled down to this norm.")] = 1.0,
    aggregation: Annotated[
        str, typer.Option(help="How token losses add up: rollout_mean, row_mean, token_mean or token_sum.")
    ] = "rollout_mean",
    credit: Annotated[str, typer.Option(help="Whose advantage a token gets: final.")] = "final",
    level: Annotated[str, typer.Option(help="Rows a call (transition) or a conversation (trajectory).")] = "trajectory",
    goal: Annotated[float | None, typer.Option(help="Mean reward at which the run ends.")] = None,
    goal_samples: Annotated[int, typer.Option(min=1, help="Over so many last samples.")] = 200,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Steps after which the run ends.")] = None,
    keep: Annotated[int, typer.Option(min=2, help="Newest versions that stay on disk.")] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Train with GRPO until stopped. Prints one JSON line when it has joined, and a line a step on stderr.

    A run that has reached its goal, or its last step, stays and decides what still arrives (`run_finished`).
    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer grpo --model ./model --run run-1 --policy policy --goal 0.9
    """
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry_url)
    import torch

    from headrace.trainers.grpo.algorithm import Grpo
    from headrace.trainers.grpo.settings import GrpoSettings
    from headrace.trainers.loop import TrainerLoop
    from headrace.trainers.models.loading import wait_for_model
    from headrace.trainers.rows import Level
    from headrace.trainers.settings import RunSettings
    from headrace.trainers.window import WindowSettings

    torch.set_num_threads(threads)
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    run_settings = RunSettings(
        run_id=run,
        policy=policy,
        model=model.absolute(),
        checkpoints=checkpoints,
        seed=seed,
        keep=keep,
        goal=goal,
        goal_samples=goal_samples,
        max_steps=max_steps,
        threads=threads,
    )
    windows = WindowSettings(
        run_id=run,
        policy=policy,
        groups=window_groups,
        seconds=window_seconds,
        group_size=group_size,
        group_timeout_seconds=group_timeout,
        incomplete=incomplete,
        max_staleness=max_staleness,
        accept_external=accept_external,
    )
    arithmetic = GrpoSettings(
        lr=lr,
        weight_decay=weight_decay,
        entropy=entropy,
        clip_low=clip_low,
        clip_high=clip_high,
        max_grad_norm=max_grad_norm,
        credit=credit,
        aggregation=aggregation,
        level=cast("Level", level),
    )
    if not wait_for_model(model, wait_model, stop):
        return
    TrainerLoop(settings, run_settings, windows, Grpo(arithmetic, policy)).run(
        stop, lambda facts: print_ready("trainer", **facts)
    )


for command in (sft, custom, apo, baseline, fast):
    app.command()(command)
