"""`headrace bench`: a whole pipeline under a known load."""

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.bench.scenarios import SCENARIOS
from headrace.cli.options import Json, print_json

if TYPE_CHECKING:
    from headrace.bench.store import Result, StoreBench

app = typer.Typer(help="Measure a pipeline under a known load.", no_args_is_help=True, add_completion=False)
EXIT_INTERRUPTED = 130
TELL_EVERY = 10  # lines of progress where there is no terminal


@app.callback()
def group() -> None:
    """Measure a pipeline under a known load; it starts a broker and public commands of its own."""


@app.command()
def store(
    scenario: Annotated[str, typer.Option(help=f"One of {', '.join(SCENARIOS)}.")],
    tasks: Annotated[int | None, typer.Option(min=1, help="Fewer or more rollouts than the scenario has.")] = None,
    runners: Annotated[int, typer.Option(min=1, help="Processes that share the scenario's slots.")] = 1,
    assemblers: Annotated[int, typer.Option(min=1, help="Assembler processes.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Keep topics and logs here; default: a temporary folder.")] = None,
    json: Json = False,
) -> None:
    """Run one scenario of Agent Lightning's store benchmark, and check what it wrote; exit code 1 if that is wrong.

    `ceiling` is the rate at which all slots sleep all the time. `ideal_seconds` is the scenario's time if nothing but
    the agents' sleeps took any: above tasks / ceiling by what the end of each batch leaves empty.

    Example: headrace bench store --scenario minimal --tasks 1024 --json
    """
    if scenario not in SCENARIOS:
        raise typer.BadParameter(f"one of {', '.join(SCENARIOS)}", param_hint="--scenario")
    from headrace.bench.store import StoreBench
    from headrace.local.ports import free_port
    from headrace.local.processes import interrupt_on_sigterm

    chosen = SCENARIOS[scenario]
    if tasks is not None:
        chosen = replace(chosen, tasks=tasks)
    if runners > chosen.slots:
        raise typer.BadParameter(f"{chosen.slots} at most", param_hint="--runners")
    interrupt_on_sigterm()
    folder = out.resolve() if out is not None else Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    bench = StoreBench(chosen, folder, free_port(), runners=runners, assemblers=assemblers)
    try:
        result = _run(bench, chosen.tasks)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        bench.stop()
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
    if json:
        print_json(result.facts())
    else:
        _show(result)
    if not result.verdict.clean:
        raise typer.Exit(1)


def _run(bench: "StoreBench", tasks: int) -> "Result":
    if not sys.stderr.isatty():
        told = 0

        def tell(done: int) -> None:
            nonlocal told
            if done * TELL_EVERY // tasks > told:
                told = done * TELL_EVERY // tasks
                print(f"{done} of {tasks} rollouts", file=sys.stderr, flush=True)

        return bench.run(tell)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("rollouts", total=tasks)
        return bench.run(lambda done: progress.update(bar, completed=done))


def _show(result: "Result") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for name, value in result.facts().items():
        table.add_row(name, str(value).strip("{}"))
    Console().print(table)
