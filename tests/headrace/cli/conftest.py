"""The command as a user runs it: a process, its output and its exit code."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headrace.schemas.records import Record
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings

COMMAND = str(Path(sys.executable).parent / "headrace")


class Command:
    """Runs `headrace` against one test's topics."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def environment(self) -> dict[str, str]:
        """Where the pipeline is, as a user would set it."""
        return {
            **os.environ,
            "HEADRACE_BOOTSTRAP": self.settings.bootstrap,
            "HEADRACE_PREFIX": self.settings.prefix,
            **({"HEADRACE_REGISTRY": self.settings.registry} if self.settings.registry else {}),
        }

    def __call__(self, *arguments: str, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
        """A finished run."""
        return subprocess.run(
            [COMMAND, *arguments],
            input=stdin if isinstance(stdin, str) else stdin.decode(),
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=60,
            check=False,
        )

    def json(self, *arguments: str, stdin: str = "") -> list[Any]:
        """The objects that a successful run prints."""
        done = self(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A run that goes on."""
        return subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env=self.environment)


@pytest.fixture
def headrace(settings: Settings) -> Command:
    """The command on topics of its own."""
    return Command(settings)


@pytest.fixture
def make_headrace() -> Callable[[Settings], Command]:
    """The command on given settings."""
    return Command


class Asking:
    """Runs commands in this process, which is a second quicker each, against one test's topics."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, *arguments: str) -> Result:
        """What a run came to; `exception` is a HeadraceError where the command would print it."""
        app = importlib.import_module(f"headrace.cli.{arguments[0]}").app
        return CliRunner().invoke(app, list(arguments[1:]))

    def json(self, *arguments: str) -> list[Any]:
        """The objects that a successful run prints."""
        done = self(*arguments)
        assert done.exit_code == 0, (done.output, done.exception)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def write(self, *records: Record) -> None:
        """Writes records to their topics."""
        make, producer = MessageMaker(self._settings), make_producer(self._settings, "test", linger_ms=0)
        for record in records:
            message = make(record)
            producer.produce(message.topic, message.value, message.key)
        assert producer.flush(30) == 0


@pytest.fixture
def asking(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Commands in this process, on topics of their own."""
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", settings.bootstrap)
    monkeypatch.setenv("HEADRACE_PREFIX", settings.prefix)
    return Asking(settings)
