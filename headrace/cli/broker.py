"""`headrace broker`: Kafka for one machine, and a schema registry if wanted."""

import logging
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from headrace.cli.options import print_json
from headrace.deploy.local.watch import Watch

app = typer.Typer(add_completion=False)
log = logging.getLogger(__name__)

CHECK_SECONDS = 0.1


class _StoppedError(Exception):
    """SIGINT or SIGTERM came."""


class _CommandWatch(Watch):
    """Shows the progress, and gives up when a signal came."""

    def __init__(self) -> None:
        self._stopped = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True

    def checkpoint(self) -> None:
        """Raises what the command catches."""
        if self._stopped:
            raise _StoppedError

    def progress(self, done: int, total: int) -> None:
        """One line that moves on a terminal, a line every ten files elsewhere."""
        if sys.stderr.isatty():
            print(
                f"\rfetching: {done} of {total} files ", end="\n" if done == total else "", file=sys.stderr, flush=True
            )
        elif done % 10 == 0 or done == total:
            log.info("fetched %d of %d files", done, total)


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
    watch = _CommandWatch()
    try:
        _prepare(registry, watch) if prepare else _run(port, data, registry, watch)
    except _StoppedError:
        log.info("stopped")


def _run(port: int, data: Path | None, registry: bool, watch: Watch) -> None:
    from headrace.deploy.local.broker import LocalKafka

    with LocalKafka(port=port, data=data, registry=registry, watch=watch) as kafka:
        print_json(
            {
                "bootstrap": kafka.bootstrap,
                "registry": kafka.registry_url,
                "version": kafka.version,
                "pid": kafka.pid,
            }
        )
        while True:
            watch.checkpoint()
            kafka.check()
            time.sleep(CHECK_SECONDS)


def _prepare(registry: bool, watch: Watch) -> None:
    from headrace.deploy.local.warm_up import prepare

    prepare(registry=registry, watch=watch)
