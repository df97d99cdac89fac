"""The machine that kills, for CI: twenty kills with a short lease, nothing lost, nothing twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.alone
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(360)
def test_twenty_kills_cost_nothing(tmp_path: Path) -> None:
    flags = ("--kills", "20", "--seed", "1", "--gap", "2.5", "--lease", "9", "--drain", "120")
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *flags, "--out", str(tmp_path / "chaos")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr[-4000:]
    line = json.loads(done.stdout.splitlines()[-1])
    assert sum(line["kills"].values()) == 20
    assert (line["lost"], line["doubled"], line["violations"]) == (0, 0, {}), done.stderr[-4000:]
    assert line["tasks"] > 100
    assert line["trained"] > 50
    assert done.returncode == 0
