"""`headrace processor grader`: a function that judges rollouts."""

import logging
from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal, settings_of


class Start(StrEnum):
    """Where a grader begins that has never run."""

    earliest = "earliest"
    latest = "latest"


def grader(
    function: Annotated[
        str, typer.Argument(metavar="MODULE_OR_FILE:FUNCTION", help="Takes a trajectory, gives a number or dimensions.")
    ],
    name: Annotated[str | None, typer.Option(help="Of the grader and its reward; default: the function's.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Trajectories at once.")] = 16,
    timeout: Annotated[float, typer.Option(min=0.01, help="Seconds that one try may take.")] = 60.0,
    retries: Annotated[int, typer.Option(min=0, help="Further tries of one that fails or hangs.")] = 2,
    dimension: Annotated[
        bool, typer.Option("--dimension", help="A number is a further dimension, not the primary reward.")
    ] = False,
    primary_key: Annotated[
        str | None, typer.Option(help="Of an answer with several dimensions: which is the primary reward.")
    ] = None,
    external: Annotated[
        bool, typer.Option("--external", help="Grade outside traffic too, which a judge's own calls may be.")
    ] = False,
    start: Annotated[Start, typer.Option("--from", help="Where a grader begins that has never run.")] = Start.earliest,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
) -> None:
    """Judge rollouts with a function (Faust): trajectories in, rewards out.

    Example: headrace processor grader my_graders.py:helpful --concurrency 8 --timeout 30
    """
    settings = settings_of(bootstrap, prefix, registry)
    own_name = name or function.rpartition(":")[2]

    async def main() -> None:
        from headrace.streams.graders.app import grader_app
        from headrace.streams.graders.child import GraderSetup
        from headrace.streams.graders.function import FunctionGrader
        from headrace.streams.graders.process import IsolatedFunction

        app = await grader_app(
            own_name,
            settings=settings,
            primary=not dimension,
            primary_key=primary_key,
            external=external,
            start=start.value,
            worker_id=worker_id,
        )
        setup = GraderSetup(function, app.rules, timeout, logging.getLogger().getEffectiveLevel())
        isolated = IsolatedFunction(setup, tries=retries + 1)
        try:
            await isolated.start()
            FunctionGrader(app, isolated, concurrency=concurrency)
            await app.serve(lambda worker: print_ready("grader", worker_id=worker, grader=own_name, function=function))
        finally:
            await isolated.close()

    run_until_signal(main())
