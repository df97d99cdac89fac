"""`headrace traces`: recorded traces, without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, print_json

app = typer.Typer(help="Assemble traces without a broker.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Assemble traces without a broker."""


@app.command()
def assemble(
    case: Annotated[Path, typer.Argument(help="Directory with otlp.jsonl, events.jsonl and case.json.")],
    json: Json = False,
) -> None:
    """Replay recorded traces and print the trajectories they make.

    Example: headrace traces assemble tests/cases/cut-stream --json
    """
    from headrace.cli.answers import replay_directory

    found = replay_directory(case)
    if json:
        print_json(found)
        return
    for trajectory in found["trajectories"]:
        typer.echo(
            f"{trajectory['rollout_id']}  {trajectory['status']}  triplets {len(trajectory['triplets'])}  "
            f"reward {trajectory['final_reward']}  dropped {trajectory['dropped']}"
        )
    typer.echo(f"refused {found['rejected']}  dead letters {found['dead_letters']}  counters {found['counters']}")
