"""`headrace trainer sft`, and `headrace traces export`: what went well, imitated here or elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headrace.cli.flags import spread
from headrace.cli.lora_flags import LoraFlags
from headrace.cli.options import Bootstrap, Prefix, Registry, print_json, settings_of
from headrace.cli.signals import stop_on_signal
from headrace.cli.trainer_flags import (
    LearningRate,
    Level,
    OptimizerFlags,
    PipelineFlags,
    RunFlags,
    Threads,
    WaitFlags,
)
from headrace.cli.trainer_process import run_trainer, seed_torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.schemas.records import Trajectory
    from headrace.trainers.rows import Level as RowLevel
    from headrace.trainers.sft.export import Row


@dataclass(frozen=True, kw_only=True)
class SlowerOptimizerFlags(OptimizerFlags):
    """With a learning rate for imitation."""

    lr: LearningRate = 1e-4


@spread
def sft(
    *,
    run: RunFlags,
    min_reward: Annotated[
        float | None, typer.Option(help="Least final reward of what is imitated; default: all is.")
    ] = None,
    best_of_group: Annotated[
        int | None, typer.Option(min=1, help="Of each complete group only so many, the best; windows are groups then.")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Trajectories a window, or groups.")] = 32,
    waits: WaitFlags,
    accept_other_runs: Annotated[bool, typer.Option(help="Learn from what other runs asked for.")] = False,
    recorded: Annotated[
        str, typer.Option(help="Whose recorded token ids are used: own, always or never; else text is rendered.")
    ] = "own",
    optimizer: SlowerOptimizerFlags,
    lora: LoraFlags,
    aggregation: Annotated[
        str, typer.Option(help="How token losses add up: token_mean, rollout_mean, row_mean or token_sum.")
    ] = "token_mean",
    level: Level = "trajectory",
    max_row_tokens: Annotated[int, typer.Option(min=2, help="Longer rows are dropped.")] = 32768,
    threads: Threads = 1,
    pipeline: PipelineFlags,
) -> None:
    """Fine-tune on trajectories with a high reward until stopped; prints one JSON line when it has joined.

    Exit code 78: another trainer has taken over the run; do not restart this one.

    Example: headrace trainer sft --model ./model --run sft-1 --min-reward 1.0 --accept-other-runs
    """
    stop = stop_on_signal()
    from contextlib import nullcontext
    from dataclasses import asdict

    from headrace.trainers.sft.algorithm import Sft
    from headrace.trainers.sft.settings import SftSettings
    from headrace.trainers.sft.windows import ImitationWindows, ImitationWindowSettings

    windows = ImitationWindowSettings(
        run_id=run.run,
        policy=run.policy,
        groups=window,
        accept_other_runs=accept_other_runs,
        min_reward=min_reward,
        by_group=best_of_group is not None,
        **waits.waits(),
    )
    arithmetic = SftSettings(
        best_of_group=best_of_group,
        recorded=recorded,
        aggregation=aggregation,
        level=cast("RowLevel", level),
        max_row_tokens=max_row_tokens,
        lora=lora.settings(run.seed),
        **asdict(optimizer),
    )
    run_settings = run.settings(threads=threads)
    seed_torch(run_settings)
    run_trainer(
        stop,
        pipeline,
        run_settings,
        windows,
        nullcontext(Sft(arithmetic, run.policy)),
        wait_model=run.wait_model,
        windows_type=ImitationWindows,
    )


def export(
    directory: Annotated[Path, typer.Argument(help="Folder to write; it must not hold a dataset yet.")],
    min_reward: Annotated[float | None, typer.Option(help="Least final reward; default: all are written.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="Only of this mode; may be given several times.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Only what this run has asked for; may be given several times.")
    ] = None,
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

    kept = chosen(
        newest_trajectories(settings), min_reward=min_reward, modes=mode or (), runs=run or (), dropped=dropped
    )
    written = write_dataset(rows(kept), directory, tokens=tokens)
    print_json({"directory": str(directory), "rows": written, "trajectories": count, "dropped": dict(dropped)})
