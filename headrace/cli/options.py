"""Options that every command which joins a pipeline has, and how facts are printed."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from headrace.streams.settings import Settings, load_settings

Bootstrap = Annotated[str | None, typer.Option("--bootstrap", help="Kafka's HOST:PORT [HEADRACE_BOOTSTRAP].")]
Prefix = Annotated[str | None, typer.Option("--prefix", help="First part of all topic names [HEADRACE_PREFIX].")]
Registry = Annotated[str | None, typer.Option("--registry-url", help="Schema registry's URL [HEADRACE_REGISTRY].")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout, nothing else.")]
WorkerId = Annotated[str | None, typer.Option("--worker-id", help="A stable name for this process.")]

log = logging.getLogger(__name__)

LEFT_SECONDS = 3.0
TABLE_WIDTH = 240  # columns, where no terminal says how many there are


def settings_of(bootstrap: str | None, prefix: str | None, registry: str | None = None, **more: Any) -> Settings:
    """The settings of a command with its flags."""
    return load_settings(bootstrap=bootstrap, prefix=prefix, registry=registry, **more)


def print_json(value: Any) -> None:
    """One JSON object on a line of stdout, at once and whole."""
    sys.stdout.flush()
    left = memoryview(json.dumps(value, ensure_ascii=False).encode() + b"\n")
    # Unbuffered (PYTHONUNBUFFERED), stdout writes once: a signal may cut a long line short, and the rest would be lost.
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def print_table(table: Any) -> None:
    """A rich table or tree, cut to a terminal's width; elsewhere as wide as it needs to be."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else TABLE_WIDTH).print(table)


def print_ready(part: str, **facts: Any) -> None:
    """The one line by which a long-running command says that it works."""
    print_json({"ready": part, **facts})


GC_YOUNG_OBJECTS = 20_000  # Python's default of 700 spends a tenth of a busy runner's CPU on collections


def calm_collector() -> None:
    """What is loaded by now is looked at no more, and what comes seldom: for a process that takes many records."""
    import gc

    gc.freeze()
    gc.set_threshold(GC_YOUNG_OBJECTS)


def run_until_signal(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine on uvloop; SIGTERM and SIGINT cancel it, and it ends by cleaning up."""
    import uvloop

    calm_collector()

    async def guarded() -> None:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
        await _end_what_is_left()

    uvloop.run(guarded())


async def _end_what_is_left() -> None:
    """Cancels tasks that users' code has left behind; one that swallows its cancellation must not keep the process."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return
    _, stubborn = await asyncio.wait(left, timeout=LEFT_SECONDS)
    if stubborn:
        log.warning("%d tasks do not end when they are cancelled; the process ends without them", len(stubborn))
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)  # all that was ours to clean up is done
