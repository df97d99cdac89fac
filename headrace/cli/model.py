"""`headrace model`: the small model of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import print_json
from headrace.demo.tasks import TASKS

app = typer.Typer(help="Make the small model that the demo trains.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Make the small model that the demo trains."""


@app.command()
def create(
    directory: Annotated[Path, typer.Argument(help="Where the model directory appears, whole, by one rename.")],
    task: Annotated[str, typer.Option(help=f"One of: {', '.join(TASKS)}.")] = "pick-digit",
    seed: Annotated[int, typer.Option(help="Seed of the weights and of the warm start.")] = 0,
    steps: Annotated[int, typer.Option(min=0, help="Warm-start steps on random answers; they teach the format.")] = 60,
) -> None:
    """Make a Llama of 0.2 M parameters with tokenizer and chat template; prints one JSON line.

    Example: headrace model create ./model --task pick-digit --seed 1
    """
    if task not in TASKS:
        raise typer.BadParameter(f"unknown task {task!r}; known: {', '.join(TASKS)}", param_hint="--task")
    from headrace.demo.tinymodel.create import create_model

    print_json(create_model(directory, TASKS[task], seed, steps).facts())
