"""`headrace up`: all parts of a pipeline on this machine."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Json, print_json

if TYPE_CHECKING:
    from headrace.local.plan import PipelinePlan
    from headrace.local.supervisor import Supervisor

app = typer.Typer(add_completion=False)


@app.command()
def up(
    file: Annotated[Path, typer.Argument(help="Names the parts; `headrace up --example` prints one.")] = Path(
        "pipeline.toml"
    ),
    machine: Annotated[
        str | None, typer.Option(help="Start the parts that name this machine; default: those that name none.")
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a pipeline that works as it is.")] = False,
    print_commands: Annotated[
        bool, typer.Option("--print-commands", help="Print what would be started, and write the files that it reads.")
    ] = False,
    json_: Json = False,
) -> None:
    """Run the parts of a pipeline on this machine, until Ctrl-C: a log each, what ends starts again.

    With --json the first line says that all parts are ready, and a line follows for each part that ends or comes back.
    A second Ctrl-C ends everything at once.

    Example: headrace up --example > pipeline.toml && headrace up pipeline.toml
    """
    from headrace.local.pipeline import load_plan

    if example:
        sys.stdout.write((Path(__file__).parents[1] / "local" / "example.toml").read_text())
        return
    plan = load_plan(file, machine)
    if print_commands:
        _print_commands(plan)
        return
    from headrace.local.supervisor import Supervisor

    supervisor = Supervisor(plan, print_json if json_ else lambda facts: None)
    stop = _stop_on_signal(supervisor)
    supervisor.run(stop, _print_ready if json_ else _show)


def _print_commands(plan: PipelinePlan) -> None:
    plan.write_files()
    if plan.parts:
        print(shlex.join(["cd", str(plan.parts[0].part.folder)]))
    for planned in plan.parts:
        variables = [f"{name}={shlex.quote(value)}" for name, value in planned.part.environment.items()]
        print(" ".join([*variables, shlex.join(["headrace", *planned.part.argv])]))


def _print_ready(facts: dict[str, Any]) -> None:
    print_json({"ready": "pipeline", **facts})


def _show(facts: dict[str, Any]) -> None:
    from rich.table import Table

    from headrace.cli.options import print_table

    table = Table("part", "process", "state", "where", "log", title=f"{facts['prefix']} at {facts['bootstrap']}")
    for part in facts["parts"]:
        where = part.get("url") or part.get("endpoint") or part.get("bootstrap") or ""
        table.add_row(part["name"], str(part["pid"] or ""), part["state"], where, part["log"])
    for name in facts["elsewhere"]:
        table.add_row(name, "", "elsewhere", "", "")
    print_table(table)
    print("All parts are ready; Ctrl-C ends them.", file=sys.stderr, flush=True)


def _stop_on_signal(supervisor: Supervisor) -> threading.Event:
    stop = threading.Event()

    def handler(number: int, frame: object) -> None:
        if stop.is_set():
            supervisor.kill()
        stop.set()

    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
    return stop
