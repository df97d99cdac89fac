"""`headrace replay`: a run trained again from the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, settings_of
from headrace.cli.signals import stop_on_signal

app = typer.Typer(add_completion=False)


@app.command()
def replay(
    run: Annotated[str, typer.Argument(help="The run of `trainer grpo`, as the topics of --prefix know it.")],
    into: Annotated[str, typer.Option(metavar="PREFIX", help="Prefix of the topics that the new run is written to.")],
    checkpoints: Annotated[Path, typer.Option(help="Where its versions are written.")] = Path("replay-checkpoints"),
    until: Annotated[int | None, typer.Option(min=1, metavar="STEP", help="The last step to train (all).")] = None,
    keep: Annotated[int, typer.Option(min=2, help="Newest versions that stay on disk.")] = 2,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    json_: Json = False,
) -> None:
    """Train the windows of a run again, in their order and with its settings, and compare the weights of each step.

    Exit code 1: a step's weights differ from those of the first run.

    Example: headrace replay run-1 --into replay-1 --checkpoints ./replay
    """
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry)
    target = settings_of(bootstrap, into, registry)
    from headrace.trainers.replay.replay import Replay, Replayed

    different: list[int] = []
    steps = 0

    def told(done: Replayed) -> None:
        nonlocal steps
        steps += 1
        if done.identical is False:
            different.append(done.step)
        if json_:
            print_json(
                {"step": done.step, "version": done.version, "samples": done.samples, "identical": done.identical}
            )

    Replay(settings, target, run, checkpoints, until=until, keep=keep).run(told, stop.is_set)
    if json_:
        print_json({"run_id": run, "into": into, "steps": steps, "different": different})
    elif different:
        print(f"{len(different)} of {steps} steps have other weights, the first is step {different[0]}")
    else:
        print(f"{steps} steps, and the weights are the same bit for bit")
    if different:
        raise typer.Exit(1)
