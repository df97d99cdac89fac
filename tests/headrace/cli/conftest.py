"""The command as a user runs it: a process, its output and its exit code."""

import importlib
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headrace.schemas.records import Record
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings
from tests.processes import COMMAND, Process, start, variables


class Command:
    """Runs `headrace` against one test's topics."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def environment(self) -> dict[str, str]:
        """Where the pipeline is, as a user would set it."""
        return variables(self.settings)

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

    def start(self, *arguments: str) -> Process:
        """A run that goes on."""
        return start(*arguments, env=self.environment)


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

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        """What a run came to; `exception` is a HeadraceError where the command would print it."""
        app = importlib.import_module(f"headrace.cli.{arguments[0]}").app
        return CliRunner().invoke(app, list(arguments[1:]), input=stdin)

    def json(self, *arguments: str, stdin: str = "") -> list[Any]:
        """The objects that a successful run prints."""
        done = self(*arguments, stdin=stdin)
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
def asking_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[Settings], Asking]:
    """Commands in this process, on given settings."""

    def make(settings: Settings) -> Asking:
        monkeypatch.setenv("HEADRACE_BOOTSTRAP", settings.bootstrap)
        monkeypatch.setenv("HEADRACE_PREFIX", settings.prefix)
        return Asking(settings)

    return make


@pytest.fixture
def asking(settings: Settings, asking_as: Callable[[Settings], Asking]) -> Asking:
    """Commands in this process, on topics of their own."""
    return asking_as(settings)
