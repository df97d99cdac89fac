"""Commands as users run them: started as processes, told apart by their ready line, ended with the test."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.streams.settings import Settings

COMMAND = str(Path(sys.executable).parent / "headrace")
END_SECONDS = 90.0
Process = subprocess.Popen[str]


def variables(settings: Settings, **more: str) -> dict[str, str]:
    """The environment of a command on a pipeline, as a user would set it."""
    registry = {"HEADRACE_REGISTRY": settings.registry} if settings.registry else {}
    return {
        **os.environ,
        "HEADRACE_BOOTSTRAP": settings.bootstrap,
        "HEADRACE_PREFIX": settings.prefix,
        **registry,
        **more,
    }


def start(*arguments: str, **options: Any) -> Process:
    """`headrace` with arguments; its log goes to stderr. `options` are those of Popen."""
    return subprocess.Popen([COMMAND, *arguments], **{"stdout": subprocess.PIPE, "text": True, **options})


def ready(process: Process) -> dict[str, Any]:
    """What a command says when it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"{process.args} did not start; its log is on stderr"
    return json.loads(line)


def end(process: Process, seconds: float = END_SECONDS) -> int:
    """The exit code after SIGTERM; what has not ended in time is killed."""
    process.terminate()
    try:
        return process.wait(seconds)
    finally:
        put_away(process)


def put_away(process: Process) -> None:
    """Kills what still runs."""
    process.kill()
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


@contextmanager
def running(settings: Settings, *arguments: str) -> Iterator[dict[str, Any]]:
    """A command on a pipeline for the block, and what it said; it ends with exit code 0."""
    process = start(*arguments, env=variables(settings))
    try:
        yield ready(process)
        assert end(process) == 0
    finally:
        put_away(process)
