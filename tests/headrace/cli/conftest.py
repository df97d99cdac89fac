"""The command as a user runs it: a process, its output and its exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
