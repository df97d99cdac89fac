"""`headrace trainer fast`, and what the commands of algorithms say of mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headrace.cli.trainer import app
from headrace.streams.errors import HeadraceError, SettingsError

AGENT = """
from headrace import rollout

@rollout
async def agent(task, prompt_template):
    return float(prompt_template.format(x=task) == "is 3")
"""
ALGORITHM = """
from headrace import algorithm

@algorithm
async def tune(ctx, train_dataset, rounds=1):
    return rounds
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_agent.py").write_text(AGENT)
    (tmp_path / "my_algorithm.py").write_text(ALGORITHM)
    (tmp_path / "prompt.jinja").write_text("is {{ x }}")
    (tmp_path / "tasks.jsonl").write_text('{"input": 3}\n{"input": 4, "mode": "val"}\n')
    return tmp_path


def test_an_agent_is_tried_without_a_broker(folder: Path) -> None:
    command = ["fast", f"{folder}/my_agent.py:agent", f"{folder}/tasks.jsonl", "--samples", "2"]
    prompt = ["--prompt", f"{folder}/prompt.jinja", "--engine", "jinja"]
    done = CliRunner().invoke(app, [*command, *prompt])
    assert done.exit_code == 0, done.output
    *lines, report = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((r["task"], r["sample"], r["reward"]) for r in lines) == [
        (0, 0, 1.0), (0, 1, 1.0), (1, 0, 0.0), (1, 1, 0.0)
    ]  # fmt: skip
    assert (report["reward"], report["pass@2"], report["statuses"]) == (0.5, 0.5, {"succeeded": 4})
    failed = CliRunner().invoke(app, [*command, "--limit", "1"])
    assert failed.exit_code == 1
    assert "here --prompt and --base-url give resources" in json.loads(failed.stdout.splitlines()[0])["error"]


@pytest.mark.parametrize(
    ("arguments", "line", "word"),
    [
        (["--arg", "rounds=x"], '{"input": 1}', "is no JSON; a text needs quotes"),
        (["--arg", "rounds"], '{"input": 1}', "write NAME=JSON"),
        ([], '{"input": 1, "config": {"max_attempts": 2}}', "config: the algorithm decides it"),
        ([], '{"inputs": 1}', "inputs: is unknown"),
        ([], "", "has no tasks"),
    ],
)
def test_mistakes_are_said_before_anything_is_done(folder: Path, arguments: list[Any], line: str, word: str) -> None:
    (folder / "train.jsonl").write_text(line)
    command = ["custom", f"{folder}/my_algorithm.py:tune", "--run", "r", "--train", f"{folder}/train.jsonl"]
    done = CliRunner().invoke(app, [*command, *arguments])
    assert done.exit_code != 0
    told = str(done.exception) if isinstance(done.exception, HeadraceError) else " ".join(done.output.split())
    assert word in told.replace(" │ │ ", " ")


def test_what_is_no_algorithm_is_said(folder: Path) -> None:
    done = CliRunner().invoke(app, ["custom", f"{folder}/my_agent.py:agent", "--run", "r"])
    assert isinstance(done.exception, SettingsError)
    assert "decorate it with @headrace.algorithm" in str(done.exception)
