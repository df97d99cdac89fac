"""`headrace traces assemble`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.traces import app
from headrace.connectors.casedir.reader import CaseError

CASES = Path(__file__).parents[2] / "cases"


def test_json_is_one_object_on_one_line():
    result = CliRunner().invoke(app, ["assemble", str(CASES / "logprobs-misfit"), "--json"])
    assert result.exit_code == 0
    [line] = result.stdout.splitlines()
    answer = json.loads(line)
    assert set(answer) == {"trajectories", "rejected", "dead_letters", "counters", "calls"}
    [trajectory] = answer["trajectories"]
    assert trajectory["triplets"][1]["logprobs"] == [-0.5, -0.75]
    assert answer["counters"] == {"logprobs_misfit": 2}


def test_a_summary_for_people():
    result = CliRunner().invoke(app, ["assemble", str(CASES / "cut-stream")])
    assert result.exit_code == 0
    assert "ro-cut-stream" in result.stdout
    assert "incomplete_response" in result.stdout


def test_a_directory_without_traces_is_an_error(tmp_path: Path):
    result = CliRunner().invoke(app, ["assemble", str(tmp_path)])
    assert isinstance(result.exception, CaseError)


def test_wrong_settings_are_named(tmp_path: Path):
    (tmp_path / "events.jsonl").write_text("")
    (tmp_path / "case.json").write_text(json.dumps({"settings": {"reward_policy": "best"}}))
    result = CliRunner().invoke(app, ["assemble", str(tmp_path)])
    assert isinstance(result.exception, CaseError)
    assert "reward_policy" in str(result.exception)


@pytest.mark.parametrize("line", ["{", "[]", '{"topic": "rewards"}', '{"after_batch": 0}'])
def test_a_bad_line_is_named(tmp_path: Path, line: str):
    (tmp_path / "events.jsonl").write_text(line + "\n")
    result = CliRunner().invoke(app, ["assemble", str(tmp_path)])
    assert isinstance(result.exception, CaseError)
    assert "line 1" in str(result.exception)
