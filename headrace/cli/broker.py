"""`headrace broker`: Kafka for one machine, and a schema registry if wanted."""

import logging
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from headrace.cli.options import print_json
from headrace.deploy.local.fetch import Report

app = typer.Typer(add_completion=False)
log = logging.getLogger(__name__)

CHECK_SECONDS = 0.2


class _Stopped(BaseException):
    """SIGINT or SIGTERM came; not an `Exception`, so that nothing on the way takes it for a failure."""


@app.command()
def broker(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 picks a free one.")] = 0,
    data: Annotated[Path | None, typer.Option(help="Keep topics here across runs; default: a temporary one.")] = None,
    registry: Annotated[bool, typer.Option("--registry", help="Start a schema registry too.")] = False,
    prepare: Annotated[bool, typer.Option("--prepare", help="Only fetch what is missing, warm up, and exit.")] = False,
) -> None:
    """Run Apache Kafka, one node on 127.0.0.1, until Ctrl-C; prints one JSON line when it is ready.

    Needs no Java on the machine. Environment: HEADRACE_CACHE (downloads), HEADRACE_JAVA_HOME (a Java 21 or newer),
    HEADRACE_BROKER_HEAP (512m), HEADRACE_BROKER_JAVA_OPTS, HEADRACE_OFFLINE=1 (never fetch).

    Example: headrace broker --port 9092 --data ./kafka-data --registry
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        _prepare(registry) if prepare else _run(port, data, registry)
    except _Stopped:
        log.info("stopped")


def _run(port: int, data: Path | None, registry: bool) -> None:
    from headrace.deploy.local.broker import LocalKafka

    with _progress() as report, LocalKafka(port=port, data=data, registry=registry, report=report) as kafka:
        print_json(
            {
                "bootstrap": kafka.bootstrap,
                "registry": kafka.registry_url,
                "version": kafka.version,
                "pid": kafka.pid,
            }
        )
        while True:
            kafka.check()
            time.sleep(CHECK_SECONDS)


def _prepare(registry: bool) -> None:
    from headrace.deploy.local.warm_up import prepare

    with _progress() as report:
        prepare(registry=registry, report=report)


def _stop(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _already_stopping)
    raise _Stopped


def _already_stopping(number: int, frame: FrameType | None) -> None:
    """A second signal must not interrupt the stopping."""


@contextmanager
def _progress() -> Generator[Report]:
    """A bar on a terminal, a line every ten files elsewhere."""
    if not sys.stderr.isatty():
        yield _log_every_tenth
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("fetching", visible=False)

        def move(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=done < total)

        yield move


def _log_every_tenth(done: int, total: int) -> None:
    if done % 10 == 0 or done == total:
        log.info("fetched %d of %d files", done, total)
