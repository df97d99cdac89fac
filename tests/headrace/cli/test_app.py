"""What holds for every command: help with an example, one clear line for bad input, no broker needed to say so."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.app import COMMANDS, load, main
from tests.processes import Process
from tests.processes import start as start_command

NO_BROKER = "127.0.0.1:1"


def leaves(command: Any) -> Iterator[Any]:
    """The commands below a command, itself if there are none."""
    below = getattr(command, "commands", {})
    for found in below.values():
        yield from leaves(found)
    if not below:
        yield command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    command = load(name)
    assert command.help
    for leaf in leaves(command):
        assert "Example: " in leaf.help, leaf.name
        options = [option for parameter in leaf.params for option in parameter.opts]
        assert not [option for option in options if "completion" in option]


def start(*arguments: str, folder: Path) -> Process:
    environment = {**os.environ, "HEADRACE_BOOTSTRAP": NO_BROKER}
    pipes = {"stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return start_command(*arguments, **pipes, env=environment, cwd=folder)


@pytest.fixture
def signals_as_before() -> Iterator[None]:
    """Commands in this process set handlers of their own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


GRPO = ("trainer", "grpo", "--model", "model", "--run", "run")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nope",), 2, "No such command"),
        (("runner", "nope.py:agent"), 1, "there is no file"),
        (("gateway", "--port", "99999"), 2, "65535"),
        (("processor", "assembler", "--agent-match", "("), 2, "no regular expression"),
        (("rollouts", "list", "--status", "nope"), 2, "succeeded, failed"),
        (("tasks", "produce", "missing.jsonl"), 1, "missing.jsonl: No such file"),
        ((*GRPO, "--objective", "nope"), 2, "choose one of grpo, dr_grpo"),
        (("feedback", "id", "nope"), 2, "must be a number"),
        (("tasks", "produce", "-", "--mode", "nope"), 2, "choose one of train, val, test"),
        (("keys", "list"), 2, "HEADRACE_GATEWAY_KEYS"),
    ],
)
def test_bad_input_is_named(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    signals_as_before: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", NO_BROKER)
    monkeypatch.setattr(sys, "argv", ["headrace", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, errors = capfd.readouterr()
    assert ended.value.code == code
    assert said in errors
    assert not out
    assert "Traceback" not in errors


def test_a_broken_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("bootstrap = [")
    process = start("topics", "list", folder=tmp_path)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.startswith(f"headrace: {tmp_path / 'headrace.toml'} is no TOML")


@pytest.mark.slow
def test_without_a_broker_every_command_says_so_and_ends(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"input": 1}\n')
    commands = [
        ("rollouts", "list"),
        ("tasks", "produce", "tasks.jsonl"),
        ("processor", "lifecycle"),
    ]
    processes = {command: start(*command, folder=tmp_path) for command in commands}
    for command, process in processes.items():
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 1, command
        assert "Traceback" not in errors, command
        assert errors.splitlines()[-1].startswith("headrace: no broker "), command
        assert "HEADRACE_BOOTSTRAP" in errors, command
