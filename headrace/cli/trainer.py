"""`headrace trainer`: learn from rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, print_ready, settings_of
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_algorithms import apo, baseline, custom, fast
from headrace.cli.trainer_diff import diff
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
    Threads,
    WeightDecay,
)
from headrace.cli.trainer_sft import sft
from headrace.cli.trainer_verl import verl

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
    max_row_tokens: Annotated[int, typer.Option(min=2, help="Longer rows are over-long.")] = 32768,
    over_long: Annotated[str, typer.Option(help="And they: drop, or cut behind a whole response.")] = "drop",
    window_samples: Annotated[int | None, typer.Option(min=1, help="Or so many samples of complete groups.")] = None,
    thin_below: Annotated[int, typer.Option(min=1, help="Fewer members with a reward make a group thin.")] = 2,
    thin: Annotated[str, typer.Option(help="What becomes of a thin group: train or drop.")] = "train",
    zero_variance: Annotated[
        str | None, typer.Option(help="And of one whose rewards are equal: train or drop (train; dapo: drop).")
    ] = None,
    require_reward: Annotated[
        list[str] | None, typer.Option(help="A reward that members wait for (may be given again).")
    ] = None,
    ungrouped: Annotated[
        str, typer.Option(help="Samples without a group: drop, or a window, running or value baseline.")
    ] = "drop",
    skip_solved: Annotated[float | None, typer.Option(help="Drop groups with so high a mean reward (none).")] = None,
    curriculum: Annotated[
        str | None,
        typer.Option(metavar="MODULE_OR_FILE:FUNCTION", help="Gets a complete group; its text is a reason to drop it."),
    ] = None,
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
    lr: LearningRate = 1e-3,
    entropy: Entropy = 0.02,
    weight_decay: WeightDecay = 0.0,
    max_grad_norm: MaxGradNorm = 1.0,
    level: Level = "trajectory",
    dtype: Dtype = "float32",
    packing: Annotated[bool, typer.Option(help="Rows lie one behind the other instead of padded.")] = False,
    micro_batch_tokens: Annotated[int, typer.Option(min=1, help="Most tokens in the model at once.")] = 16384,
    goal: Goal = None,
    goal_samples: GoalSamples = 200,
    max_steps: MaxSteps = None,
    keep: Keep = 6,
    seed: Seed = 0,
    threads: Threads = 1,
    ranks: Annotated[int, typer.Option(min=1, help="Processes that share each step, with so many threads each.")] = 1,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Train with GRPO or a relative of it until stopped.

    Prints one JSON line when it has joined, and a line a step on stderr.

    A run that has reached its goal, or its last step, stays and decides what still arrives (`run_finished`).
    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer grpo --model ./model --run run-1 --policy policy --goal 0.9
    """
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry_url)
    import torch

    from headrace.streams.runner.loading import load_object
    from headrace.trainers.grpo.algorithm import Grpo
    from headrace.trainers.grpo.following import ranks_of
    from headrace.trainers.grpo.settings import check_window, settings_of_objective, window_policies
    from headrace.trainers.loop import TrainerLoop
    from headrace.trainers.models.loading import wait_for_model
    from headrace.trainers.settings import RunSettings
    from headrace.trainers.window_settings import WindowSettings

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
        dtype=dtype,
    )
    windows = WindowSettings(
        run_id=run,
        policy=policy,
        groups=window_groups,
        samples=window_samples,
        seconds=window_seconds,
        group_size=group_size,
        group_timeout_seconds=group_timeout,
        incomplete=incomplete,
        thin_below=thin_below,
        thin=thin,
        zero_variance=zero_variance or window_policies(objective).get("zero_variance", "train"),
        require_rewards=tuple(require_reward or ()),
        ungrouped=ungrouped,
        skip_solved=skip_solved,
        curriculum=curriculum,
        max_staleness=max_staleness,
        accept_external=accept_external,
    )
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
        lr=lr,
        entropy=entropy,
        weight_decay=weight_decay,
        max_grad_norm=max_grad_norm,
        level=level,
        dtype=dtype,
        packing=packing,
        micro_batch_tokens=micro_batch_tokens,
        max_row_tokens=max_row_tokens,
        over_long=over_long,
    )
    check_window(windows, arithmetic)
    looks = None if curriculum is None else load_object(curriculum, "my_curriculum.py:skip_solved")
    if not wait_for_model(model, wait_model, stop):
        return
    with ranks_of(arithmetic, ranks, threads) as together:
        algorithm = Grpo(arithmetic, policy, together)
        TrainerLoop(settings, run_settings, windows, algorithm, curriculum=looks).run(
            stop, lambda facts: print_ready("trainer", **facts)
        )


for command in (sft, verl, custom, apo, baseline, fast, diff):
    app.command()(command)
