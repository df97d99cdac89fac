"""`headrace trainer verl`: policy-gradient steps that verl's workers take on Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, print_ready, settings_of
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_flags import (
    Dtype,
    Entropy,
    Goal,
    GoalSamples,
    Keep,
    LearningRate,
    Level,
    MaxGradNorm,
    MaxSteps,
    Seed,
    WeightDecay,
)


def verl(
    model: Annotated[Path, typer.Option(help="Hugging Face directory of the base weights.")],
    run: Annotated[str, typer.Option(help="Name of the run; the same again goes on where it stopped.")],
    policy: Annotated[str, typer.Option(help="Name under which weights are published.")] = "policy",
    checkpoints: Annotated[Path, typer.Option(help="Where versions are written; engines must see it too.")] = Path(
        "checkpoints"
    ),
    wait_model: Annotated[float, typer.Option(min=0, help="Seconds to wait for --model to appear.")] = 0.0,
    workers: Annotated[int, typer.Option(min=1, help="Workers of verl (FSDP2) that share each step.")] = 1,
    device: Annotated[str, typer.Option(help="Of the workers: cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch in each worker.")] = 1,
    ray_network: Annotated[
        str, typer.Option(help="Ray in a private network namespace, or on the interfaces of the host.")
    ] = "private",
    window_groups: Annotated[int, typer.Option(min=1, help="Complete groups a window.")] = 10,
    window_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Or fewer, when one has waited for so long (never).")
    ] = None,
    group_size: Annotated[int | None, typer.Option(min=1, help="Samples a group (what its tasks say).")] = None,
    group_timeout: Annotated[float, typer.Option(min=0.001, help="Seconds until an incomplete group closes.")] = 300.0,
    max_staleness: Annotated[int, typer.Option(min=0, help="Most versions a sample may be behind.")] = 3,
    accept_external: Annotated[bool, typer.Option(help="Train on traffic that nobody enqueued.")] = False,
    zero_variance: Annotated[str, typer.Option(help="Groups with equal rewards: train or drop.")] = "train",
    ungrouped: Annotated[str, typer.Option(help="Samples without a group: drop, window or running.")] = "drop",
    max_row_tokens: Annotated[int, typer.Option(min=2, help="Longer rows are over-long.")] = 32768,
    over_long: Annotated[str, typer.Option(help="And they: drop, or cut behind a whole response.")] = "drop",
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
    lr: LearningRate = 1e-3,
    entropy: Entropy = 0.02,
    weight_decay: WeightDecay = 0.0,
    max_grad_norm: MaxGradNorm = 1.0,
    level: Level = "trajectory",
    dtype: Dtype = "float32",
    micro_batch_tokens: Annotated[int, typer.Option(min=1, help="Most tokens in a worker's model at once.")] = 16384,
    goal: Goal = None,
    goal_samples: GoalSamples = 200,
    max_steps: MaxSteps = None,
    keep: Keep = 6,
    seed: Seed = 0,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Train with verl's workers on Ray until stopped; windows, checkpoints and publishing are those of `grpo`.

    Needs the environment of `make setup-verl`. Prints one JSON line when it has joined, and a line a step on stderr.

    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer verl --model ./model --run run-1 --policy policy --goal 0.9
    """
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry_url)
    from headrace.trainers.grpo.settings import GrpoSettings, check_window
    from headrace.trainers.loop import TrainerLoop
    from headrace.trainers.models.loading import wait_for_model
    from headrace.trainers.settings import RunSettings
    from headrace.trainers.verl.algorithm import Verl
    from headrace.trainers.verl.process import verl_process
    from headrace.trainers.verl.settings import VerlSettings, check_objective
    from headrace.trainers.window_settings import WindowSettings

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
        dtype=dtype,
    )
    windows = WindowSettings(
        run_id=run,
        policy=policy,
        groups=window_groups,
        seconds=window_seconds,
        group_size=group_size,
        group_timeout_seconds=group_timeout,
        zero_variance=zero_variance,
        ungrouped=ungrouped,
        max_staleness=max_staleness,
        accept_external=accept_external,
    )
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
        lr=lr,
        entropy=entropy,
        weight_decay=weight_decay,
        max_grad_norm=max_grad_norm,
        level=level,  # pyright: ignore[reportArgumentType]
        dtype=dtype,  # pyright: ignore[reportArgumentType]
        micro_batch_tokens=micro_batch_tokens,
        max_row_tokens=max_row_tokens,
        over_long=over_long,
    )
    where = VerlSettings(
        workers=workers,
        device=device,
        advantages=advantages_by,
        correction=correction,
        network=ray_network,
        threads=threads,
    )
    check_window(windows, objective)
    check_objective(objective, where)
    # Ray and verl take their time: they start while the model is made.
    with verl_process(objective, where) as process:
        if not wait_for_model(model, wait_model, stop):
            return
        algorithm = Verl(objective, where, policy, process)
        TrainerLoop(settings, run_settings, windows, algorithm).run(stop, lambda facts: print_ready("trainer", **facts))
