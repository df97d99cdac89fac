"""`headrace demo`: the whole pipeline on this machine, learning a small task."""

import os
import shlex
import sys
import time
import uuid
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headrace.cli.options import Json, print_json
from headrace.demo.plan import Plan, task_named
from headrace.demo.tasks import TASKS
from headrace.local.ports import free_port
from headrace.streams.environments import find_python

app = typer.Typer(add_completion=False)

DEFAULT_PORT = 9092
EXIT_INTERRUPTED = 130


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Of the model, the tasks' order and the trainer.")] = 0,
    engine: Annotated[str, typer.Option(help="builtin, or vllm after `make setup-vllm`.")] = "builtin",
    trainer: Annotated[str, typer.Option(help="grpo, or verl after `make setup-verl`.")] = "grpo",
    task: Annotated[str, typer.Option(help=f"One of: {', '.join(TASKS)}.")] = "pick-digit",
    out: Annotated[Path | None, typer.Option(help="Folder for curve, logs and checkpoints (demo-out/RUN).")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Hold the broker with its topics until Ctrl-C.")] = False,
    budget: Annotated[
        float | None, typer.Option(min=1, help="Seconds of learning after which the demo gives up (300; guess: 600).")
    ] = None,
    print_commands: Annotated[
        bool,
        typer.Option("--print-commands", help="Print what would be started, and write its tasks into --out."),
    ] = False,
    json_: Json = False,
) -> None:
    """Start everything on this machine and watch a model learn.

    Example: headrace demo --seed 1 --json
    """
    if engine not in ("builtin", "vllm"):
        raise typer.BadParameter("builtin or vllm", param_hint="--engine")
    if trainer not in ("grpo", "verl"):
        raise typer.BadParameter("grpo or verl", param_hint="--trainer")
    run_id = f"demo-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:4]}"
    folder = (out or Path("demo-out") / run_id).resolve()
    port = DEFAULT_PORT if print_commands else free_port()
    plan = Plan(folder, port, seed, task_named(task), engine, run_id, trainer=trainer)
    if print_commands:
        plan.write_dataset()
        for part in plan.all_parts():
            print(shlex.join(["headrace", *part.argv]))
        return
    for program in (engine, trainer):
        if program in ("vllm", "verl"):
            find_python(program, os.environ)  # or says at once that there is none
    _run(plan, plan.task.budget if budget is None else budget, keep=keep, json_=json_)


def _run(plan: Plan, budget: float, *, keep: bool, json_: bool) -> None:
    from headrace.demo.display import Display
    from headrace.demo.report import show
    from headrace.demo.run import Demo
    from headrace.local.processes import interrupt_on_sigterm

    interrupt_on_sigterm()
    display = Display(f"headrace demo: {plan.task.name}", plan.task.goal)
    running = Demo(plan, display, budget)
    try:
        with display:
            outcome = running.run()
        show(outcome, Console(stderr=True))
        if json_:
            print_json(outcome.line())
        if keep:
            print(f"Kafka goes on at {plan.bootstrap}; Ctrl-C ends it.", file=sys.stderr)
            running.hold()
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        running.stop()
    shortfall = outcome.shortfall()
    if shortfall is not None:
        print(f"headrace: {shortfall}", file=sys.stderr)
        raise typer.Exit(1)
