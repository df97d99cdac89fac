"""The main job, whole: everything is started, a model learns, and the topics show that nothing was lost."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

COMMAND = str(Path(sys.executable).parent / "headrace")
KEYS = {
    "run_id", "bootstrap", "kafka_version", "task", "engine", "seed", "seconds", "steps", "samples", "reward_first",
    "reward_last", "policy_version", "lost", "trained_twice",
}  # fmt: skip
GRACE_SECONDS = 20
START_SECONDS = 60


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
@pytest.mark.timeout(300)
def test_the_demo_learns_and_loses_nothing(tmp_path: Path) -> None:
    run = subprocess.run(
        [COMMAND, "demo", "--seed", "1", "--json", "--out", str(tmp_path)], capture_output=True, text=True, timeout=280
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


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(120)
@pytest.mark.parametrize("started", ["broker", "engine"])
def test_a_signal_leaves_nothing_running(tmp_path: Path, started: str) -> None:
    demo = subprocess.Popen([COMMAND, "demo", "--out", str(tmp_path)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + START_SECONDS
    while not (tmp_path / "logs" / f"{started}.log").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    demo.terminate()
    assert demo.wait(40) == 130
    deadline = time.monotonic() + GRACE_SECONDS
    while left_running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left_running(tmp_path) == []
