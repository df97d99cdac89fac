"""`headrace tasks`: ask for rollouts."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, WorkerId, print_json, print_ready, settings_of

if TYPE_CHECKING:
    from headrace.connectors.datasets import TaskLines
    from headrace.streams.producing import TaskProducer, TaskSpec
    from headrace.streams.producing.choosing import Chooser, SkipRule
    from headrace.streams.settings import Settings

app = typer.Typer(help="Produce tasks.", no_args_is_help=True, add_completion=False)
STDIN = "-"


@app.callback()
def group() -> None:
    """Produce tasks."""


@app.command()
def produce(
    file: Annotated[str, typer.Argument(help="JSON Lines: an object with `input` a line; - reads stdin.")],
    group_size: Annotated[int, typer.Option(min=1, help="Rollouts a line; they make one group.")] = 1,
    mode: Annotated[
        str | None, typer.Option(help="Of lines that name none: train, val or test; with --follow train.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option(help="Produce the good lines of a file with bad ones.")] = False,
    follow: Annotated[str | None, typer.Option(metavar="RUN", help="Feed this training run from the file.")] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Rollouts a training step (with --follow).")] = None,
    max_staleness: Annotated[int | None, typer.Option(min=0, help="Versions a sample may lag (with --follow).")] = None,
    seed: Annotated[int, typer.Option(help="Shuffles the file, every epoch anew (with --follow).")] = 0,
    shuffle: Annotated[bool, typer.Option(help="Or keep the file's order (with --follow).")] = True,
    skip_solved: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Pass over prompts whose last groups are solved: reward, or zero_variance."),
    ] = None,
    solved_reward: Annotated[float, typer.Option(help="Least mean reward of a solved group (rule reward).")] = 1.0,
    solved_groups: Annotated[int, typer.Option(min=1, help="So many last groups of a prompt have to be solved.")] = 2,
    revisit: Annotated[int, typer.Option(min=1, help="After so many epochs a solved prompt comes again.")] = 5,
    curriculum: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE_OR_FILE:FUNCTION", help="Gets each prompt's statistics; returns weights to draw by."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    worker_id: WorkerId = None,
    json: Json = False,
) -> None:
    """Produce a task for each line; prints {"produced": n, "rollout_ids": [...]}.

    A line has `input` and optionally rollout_id, group_id, mode, resources_id, config and metadata; lines that share a
    group_id make one group. Nothing of a file with a bad line is produced unless --skip-bad is given.

    With --follow the file is gone through again and again, so that (max-staleness + 1) windows of the run's rollouts
    are undecided at any time, until the run reaches its goal or the command is told to stop; it prints their number.
    --skip-solved and --curriculum choose among its lines by how their groups have ended.

    Example: echo '{"input": {"question": "2 + 3?"}}' | headrace tasks produce - --mode train --group-size 16
    """
    from headrace.streams.errors import SettingsError
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.producing import Bound, TaskFieldError, TaskProducer, check
    from headrace.streams.producing.choosing import SkipRule
    from headrace.streams.producing.specs import TaskSpec

    settings = settings_of(bootstrap, prefix, registry_url)
    try:
        check(TaskSpec(input="null", mode=mode))
    except TaskFieldError as error:
        raise typer.BadParameter(error.detail, param_hint="--mode") from error
    if follow is None and (window is not None or max_staleness is not None):
        raise typer.BadParameter("--window and --max-staleness need --follow RUN")
    if follow is None and (skip_solved is not None or curriculum is not None):
        raise typer.BadParameter("--skip-solved and --curriculum need --follow RUN")
    if skip_solved is not None and curriculum is not None:
        raise typer.BadParameter("give --skip-solved or --curriculum: a curriculum can skip by itself, with weight 0")
    if (window is None) != (max_staleness is None):
        raise typer.BadParameter(
            "give --window and --max-staleness together, or neither for those of the run's manifest"
        )
    rule = (
        None
        if skip_solved is None
        else SkipRule(rule=skip_solved, reward=solved_reward, groups=solved_groups, revisit=revisit)
    )
    if follow is not None and mode is None:
        mode = "train"
    specs = [spec for _, spec in _read(settings, file, group_size, mode, follow, skip_bad).specs]
    if not specs:
        raise SettingsError(f"{'stdin' if file == STDIN else file} has no tasks: an object with `input` a line")
    if follow is None:
        partition_ids(settings, settings.topic("tasks"))  # or says at once that there is no broker, or no topic
        with TaskProducer(settings) as producer:
            ids = _produce(producer, specs, group_size, mode)
        print_json({"produced": len(ids), "rollout_ids": ids})
    else:
        bound = None if window is None or max_staleness is None else Bound(window, max_staleness)
        order = seed if shuffle else None
        produced = _feed(
            settings,
            specs,
            follow,
            bound=bound,
            group_size=group_size,
            mode=mode,
            seed=order,
            chooser=_chooser(len(specs), order, rule, curriculum),
            worker_id=worker_id,
        )
        print_json({"produced": produced, "run_id": follow})


def _read(
    settings: Settings, file: str, group_size: int, mode: str | None, follow: str | None, skip_bad: bool
) -> TaskLines:
    from headrace.connectors.datasets import BadLinesError, read_task_lines
    from headrace.streams.errors import SettingsError
    from headrace.streams.kafka.messages import MessageMaker
    from headrace.streams.producing import TaskFieldError, tasks_of

    message = MessageMaker(settings)

    def accept(spec: TaskSpec) -> None:
        if spec.rollout_id is not None and group_size > 1:
            raise TaskFieldError("rollout_id", f"is one id for --group-size {group_size} rollouts; leave it out")
        for name, value in (("rollout_id", spec.rollout_id), ("group_id", spec.group_id)):
            if follow is not None and value is not None:
                raise TaskFieldError(name, "cannot come again in the next epoch of --follow; leave it out")
        (task,) = tasks_of([spec], lambda: 0, mode=mode, run_id=follow)
        message.check(message.whole(task), "a Task")

    try:
        with nullcontext(sys.stdin.buffer) if file == STDIN else open(file, "rb") as lines:
            stream: BinaryIO = lines
            found = read_task_lines(stream, "stdin" if file == STDIN else file, accept)
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    if found.bad and not skip_bad:
        raise BadLinesError(found.bad)
    for bad in found.bad:
        print(f"headrace: skipped {bad}", file=sys.stderr)
    return found


def _produce(producer: TaskProducer, specs: list[TaskSpec], group_size: int, mode: str | None) -> list[str]:
    from headrace.streams.kafka.clock import wall_us
    from headrace.streams.producing import tasks_of

    tasks = tasks_of(specs, wall_us, group_size=group_size, mode=mode)
    if not sys.stderr.isatty():
        return producer.produce(tasks)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("producing", total=len(specs) * group_size)
        return producer.produce(tasks, lambda n: progress.advance(bar, n))


def _chooser(size: int, seed: int | None, rule: SkipRule | None, curriculum: str | None) -> Chooser | None:
    from headrace.streams.producing.choosing import ByWeight, SkipSolved
    from headrace.streams.runner.loading import load_object

    if rule is not None:
        return SkipSolved(size, seed, rule)
    return None if curriculum is None else ByWeight(load_object(curriculum, "my_curriculum.py:weights"), seed)


def _feed(settings: Settings, specs: list[TaskSpec], run_id: str, **options: Any) -> int:
    import asyncio
    import signal

    import uvloop

    from headrace.streams.producing import Feeder

    async def main() -> int:
        loop = asyncio.get_running_loop()
        feeder = Feeder(settings, specs, run_id, **options)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, feeder.stop)
        ready: asyncio.Future[str] = loop.create_future()
        ready.add_done_callback(lambda f: print_ready("feeder", worker_id=f.result(), run_id=run_id))
        return await feeder.run(ready)

    return uvloop.run(main())
