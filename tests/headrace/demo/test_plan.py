"""What the demo starts is public, and it prints just that."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
import typer

from headrace.cli.app import COMMANDS, load
from headrace.demo.plan import Plan, UnknownTaskError, task_named
from tests.processes import COMMAND


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(tmp_path, 9092, 1, task_named("pick-digit"), "builtin", "run-1")


def test_every_part_is_a_public_command_with_known_options(plan: Plan) -> None:
    for part in plan.all_parts():
        name, *rest = part.argv
        assert name in COMMANDS
        command = load(name)
        context = typer.Context(command, info_name=name)
        while hasattr(command, "commands"):
            sub, *rest = rest
            command = command.commands[sub]
            context = typer.Context(command, info_name=sub, parent=context)
        known = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        given = {word for word in rest if word.startswith("--")}
        assert given <= known, f"{part.name}: {given - known}"


def test_the_printed_commands_are_those_that_are_started(tmp_path: Path) -> None:
    printed = subprocess.run(
        [COMMAND, "demo", "--print-commands", "--out", str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    words = [shlex.split(line) for line in printed]
    assert all(w[0] == "headrace" for w in words)
    assert [w[1] for w in words].count("runner") == 2
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert {t["input"]["answer"] for t in tasks} == {str(d) for d in range(10)}


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UnknownTaskError, match="pick-digit"):
        task_named("chess")
