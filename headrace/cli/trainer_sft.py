"""`headrace trainer sft`, and `headrace traces export`: what went well, imitated here or elsewhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, print_json, print_ready, settings_of
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_flags import Keep, LearningRate, MaxGradNorm, MaxSteps, Seed, Threads, WeightDecay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.schemas.records import Trajectory
    from headrace.trainers.rows import Level
    from headrace.trainers.sft.export import Row


def sft(
    model: Annotated[Path, typer.Option(help="Hugging Face directory of the base weights.")],
    run: Annotated[str, typer.Option(help="Name of the run; the same again goes on where it stopped.")],
    policy: Annotated[str, typer.Option(help="Name under which weights are published.")] = "policy",
    checkpoints: Annotated[Path, typer.Option(help="Where versions are written; engines must see it too.")] = Path(
        "checkpoints"
    ),
    wait_model: Annotated[float, typer.Option(min=0, help="Seconds to wait for --model to appear.")] = 0.0,
    min_reward: Annotated[
        float | None, typer.Option(help="Least final reward of what is imitated; default: all is.")
    ] = None,
    best_of_group: Annotated[
        int | None, typer.Option(min=1, help="Of each complete group only so many, the best; windows are groups then.")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Trajectories a window, or groups.")] = 32,
    window_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Or fewer, when one has waited for so long (never).")
    ] = None,
    group_timeout: Annotated[float, typer.Option(min=0.001, help="Seconds until an incomplete group closes.")] = 300.0,
    require_reward: Annotated[
        list[str] | None,
        typer.Option(help="Wait for rewards of these names, such as a grader's, until --group-timeout."),
    ] = None,
    accept_external: Annotated[bool, typer.Option(help="Learn from traffic that nobody enqueued.")] = False,
    accept_other_runs: Annotated[bool, typer.Option(help="Learn from what other runs asked for.")] = False,
    recorded: Annotated[
        str, typer.Option(help="Whose recorded token ids are used: own, always or never; else text is rendered.")
    ] = "own",
    lr: LearningRate = 1e-4,
    weight_decay: WeightDecay = 0.0,
    max_grad_norm: MaxGradNorm = 1.0,
    aggregation: Annotated[
        str, typer.Option(help="How token losses add up: token_mean, rollout_mean, row_mean or token_sum.")
    ] = "token_mean",
    level: Annotated[str, typer.Option(help="Rows an answer (transition) or a conversation (trajectory).")] = (
        "trajectory"
    ),
    max_row_tokens: Annotated[int, typer.Option(min=2, help="Longer rows are dropped.")] = 32768,
    max_steps: MaxSteps = None,
    keep: Keep = 6,
    seed: Seed = 0,
    threads: Threads = 1,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Fine-tune on trajectories with a high reward until stopped; prints one JSON line when it has joined.

    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer sft --model ./model --run sft-1 --min-reward 1.0 --accept-other-runs
    """
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry_url)
    import torch

    from headrace.trainers.loop import TrainerLoop
    from headrace.trainers.models.loading import wait_for_model
    from headrace.trainers.settings import RunSettings
    from headrace.trainers.sft.algorithm import Sft
    from headrace.trainers.sft.settings import SftSettings
    from headrace.trainers.sft.windows import ImitationWindows, ImitationWindowSettings

    torch.set_num_threads(threads)
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    run_settings = RunSettings(
        run_id=run,
        policy=policy,
        model=model.absolute(),
        checkpoints=checkpoints,
        seed=seed,
        keep=keep,
        max_steps=max_steps,
        threads=threads,
    )
    windows = ImitationWindowSettings(
        run_id=run,
        policy=policy,
        groups=window,
        seconds=window_seconds,
        group_timeout_seconds=group_timeout,
        require_rewards=tuple(require_reward or ()),
        accept_external=accept_external,
        accept_other_runs=accept_other_runs,
        min_reward=min_reward,
        by_group=best_of_group is not None,
    )
    arithmetic = SftSettings(
        lr=lr,
        weight_decay=weight_decay,
        max_grad_norm=max_grad_norm,
        best_of_group=best_of_group,
        recorded=recorded,
        aggregation=aggregation,
        level=cast("Level", level),
        max_row_tokens=max_row_tokens,
    )
    if not wait_for_model(model, wait_model, stop):
        return
    TrainerLoop(settings, run_settings, windows, Sft(arithmetic, policy), windows_type=ImitationWindows).run(
        stop, lambda facts: print_ready("trainer", **facts)
    )


def export(
    directory: Annotated[Path, typer.Argument(help="Folder to write; it must not hold a dataset yet.")],
    min_reward: Annotated[float | None, typer.Option(help="Least final reward; default: all are written.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="Only of this mode; may be given several times.")] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Token sequences with labels instead of messages.")] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Write trajectories as a Hugging Face dataset of Parquet; prints how many rows, and what was left out.

    Messages need an assembler that was started with --conversations. Needs pyarrow: pip install 'headrace[parquet]'.

    Example: headrace traces export ./dataset --min-reward 1.0 --mode train
    """
    from headrace.trainers.sft.export import (
        chosen,
        conversation_rows,
        newest_trajectories,
        token_rows_of,
        write_dataset,
    )

    settings = settings_of(bootstrap, prefix, registry_url)
    dropped: Counter[str] = Counter()
    count = 0

    def rows(trajectories: Iterator[Trajectory]) -> Iterator[Row]:
        nonlocal count
        for trajectory in trajectories:
            made = list(token_rows_of(trajectory) if tokens else conversation_rows(trajectory))
            if not made:
                dropped["no_triplets" if tokens else "no_conversations"] += 1
            count += bool(made)
            yield from made

    kept = chosen(newest_trajectories(settings), min_reward=min_reward, modes=mode or (), dropped=dropped)
    written = write_dataset(rows(kept), directory, tokens=tokens)
    print_json({"directory": str(directory), "rows": written, "trajectories": count, "dropped": dict(dropped)})
