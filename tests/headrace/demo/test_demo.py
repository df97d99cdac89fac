"""The main job, whole: everything is started, a model learns, and the topics show that nothing was lost."""

import json
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.processes import COMMAND, put_away, start
from tests.waiting import until

KEYS = {
    "run_id", "bootstrap", "kafka_version", "task", "engine", "seed", "seconds", "steps", "samples", "reward_first",
    "reward_last", "policy_version", "lost", "trained_twice",
}  # fmt: skip
GRACE_SECONDS = 60
START_SECONDS = 120


def left_running(folder: Path) -> list[str]:
    """Command lines of living processes that name the demo's folder."""
    lines: list[str] = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line and process.pid != psutil.Process().pid:
            lines.append(line)
    return lines


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_the_demo_learns_and_loses_nothing(tmp_path: Path) -> None:
    run = subprocess.run(
        [COMMAND, "demo", "--seed", "1", "--json", "--out", str(tmp_path)], capture_output=True, text=True, timeout=560
    )
    assert run.returncode == 0, run.stderr[-3000:]
    line = json.loads(run.stdout.splitlines()[-1])
    assert set(line) == KEYS
    assert line["kafka_version"] == "4.4.0"
    assert line["lost"] == line["trained_twice"] == 0
    assert line["reward_first"] <= 0.25
    assert line["reward_last"] >= 0.9
    assert line["policy_version"] >= line["steps"] >= 10
    assert json.loads((tmp_path / "curve.json").read_text())["points"][-1]["reward"] > 0.8
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert left_running(tmp_path) == []


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("started", ["broker", "engine"])
def test_a_signal_leaves_nothing_running(tmp_path: Path, started: str) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    demo = start("demo", "--out", str(tmp_path), **quiet)
    try:
        until((tmp_path / "logs" / f"{started}.log").exists, START_SECONDS)
        demo.terminate()
        assert demo.wait(90) == 130
        until(lambda: not left_running(tmp_path), GRACE_SECONDS, what="something is left running")
    finally:
        put_away(demo)
