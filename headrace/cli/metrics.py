"""`headrace metrics`: a run's figures, for TensorBoard or as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_ready, settings_of
from headrace.cli.signals import stop_on_signal

if TYPE_CHECKING:
    from headrace.trainers.metrics.sinks import Sink

app = typer.Typer(add_completion=False)


@app.command()
def metrics(
    run: Annotated[str, typer.Option(help="The training run.")],
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write event files into DIR/RUN; those of before are replaced.")
    ] = None,
    passed: Annotated[float, typer.Option(help="Least reward of a solved validation task, for pass@k.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Write what there is, and end.")] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    json_: Json = False,
) -> None:
    """Write a run's metrics as they come, from its first step on: the log has them all.

    Example: headrace metrics --run run-1 --tensorboard ./tensorboard
    """
    if tensorboard is None and not json_:
        raise typer.BadParameter("say where to: --tensorboard DIR, --json, or both")
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry)
    from headrace.streams.errors import SettingsError
    from headrace.trainers.metrics.follower import MetricsFollower
    from headrace.trainers.metrics.sinks import JsonSink, TensorBoardSink

    sinks: list[Sink] = []
    if tensorboard is not None:
        directory = tensorboard / run
        sinks.append(TensorBoardSink(directory))
    if json_:
        sinks.append(JsonSink(sys.stdout))
    follower = MetricsFollower(settings, run, sinks, passed=passed)
    found = follower.run(stop, lambda: None if json_ else print_ready("metrics", run_id=run), once=once)
    if once and not found:
        raise SettingsError(f"the log has no figures of run {run} under prefix {settings.prefix!r}; is the name right?")
