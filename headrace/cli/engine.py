"""`headrace engine`: OpenAI-compatible servers that load new weights while they serve."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Serve a model; new weights are loaded while it serves.", no_args_is_help=True)


class InFlight(StrEnum):
    """What becomes of unfinished requests when weights are swapped."""

    wait = "wait"
    keep = "keep"
    abort = "abort"


@app.callback()
def group() -> None:
    """Serve a model; new weights are loaded while it serves."""


@app.command()
def builtin(
    model: Annotated[Path, typer.Argument(help="A Hugging Face causal language model directory.")],
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    policy: Annotated[str, typer.Option(help="Policy served; also the model's name in requests.")] = "policy",
    seed: Annotated[int, typer.Option(help="Seed of requests that give none.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    max_batch: Annotated[int, typer.Option(min=1, help="Choices generated at the same time.")] = 128,
    wait_ms: Annotated[float, typer.Option(min=0, help="How long an idle engine gathers a burst of requests.")] = 4.0,
    in_flight: Annotated[
        InFlight,
        typer.Option(help="Unfinished requests at a swap: finish first, go on with the new weights, or end."),
    ] = InFlight.wait,
    wait_model: Annotated[float, typer.Option(min=0, help="Seconds to wait for MODEL to appear.")] = 0.0,
) -> None:
    """Serve with the small engine on torch, for laptops and CI; prints one JSON line when ready.

    Example: headrace engine builtin /tmp/model --port 8001 --policy policy
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    from headrace.connectors.engine.run import EngineOptions, ModelMissingError, run

    options = EngineOptions(model, port, policy, seed, threads, max_batch, wait_ms, in_flight.value, wait_model)
    try:
        run(options)
    except (ModelMissingError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
