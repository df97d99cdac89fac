"""A small scenario through the command, with its checks."""

import json
import subprocess

import pytest

from tests.processes import COMMAND


@pytest.mark.slow
@pytest.mark.kafka
def test_a_scenario_is_run_and_checked() -> None:
    run = subprocess.run(
        [COMMAND, "bench", "store", "--scenario", "large", "--tasks", "40", "--json"],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    line = json.loads(run.stdout)
    assert line["tasks"] == 40
    assert line["failed"] == line["untold"] == line["wrong_reward"] == line["missing_spans"] == line["doubled"] == 0
    assert line["spans_per_second"] > 0
    assert line["seconds"] >= line["ideal_seconds"] > 0
