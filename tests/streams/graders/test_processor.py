"""`headrace processor grader` on a real broker: killed and started again, with rollouts that fail it."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.records import Reward, Trajectory
from headrace.streams.graders.app import KIND
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.group_offsets import GroupOffsets
from headrace.streams.statistics.lags import group_lags, topic_ends

pytestmark = pytest.mark.kafka
GRADER = """
import os, pathlib, time

asked = pathlib.Path(os.environ["ASKED"])

def judge(trajectory):
    if trajectory.input == "fails":
        raise ValueError("no")
    if trajectory.input == "odd":
        return {"good": 1.0, "\\ud800": 1.0}
    if trajectory.input == "dies":
        os._exit(9)
    if trajectory.input == "none":
        return None
    if trajectory.input == "slow":
        with asked.open("a") as file:
            file.write("x")
        time.sleep(0.3)
    return len(trajectory.input)
"""


def trajectory(number: int, text: str, **fields: Any) -> Trajectory:
    return Trajectory(rollout_id=f"r{number}", status="succeeded", input=f'"{text}"', assembled_at=0, **fields)


def test_a_killed_grader_loses_no_rollout_and_none_is_graded_twice(
    log: Any,
    start_processor: Callable[..., Any],
    wait_for: Callable[[Callable[[], Any]], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, asked = tmp_path / "graders_here.py", tmp_path / "asked"
    file.write_text(GRADER)
    monkeypatch.setenv("ASKED", str(asked))
    options = (f"{file}:judge", "--concurrency", "4", "--retries", "0", "--timeout", "20")
    log.write(*(trajectory(n, "slow") for n in range(30)))
    first = start_processor("grader", "g1", *options)
    wait_for(lambda: asked.exists() and asked.stat().st_size >= 12)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    log.write(
        trajectory(30, "fails"),
        trajectory(31, "none"),
        trajectory(34, "odd"),
        trajectory(35, "dies"),
        trajectory(0, "slow", revision=1),
        trajectory(32, "slow", origin="external"),
    )
    log.write_raw("triplets", b"r33", b"no record")
    second = start_processor("grader", "g2", *options)

    def graded() -> set[str]:
        return {r.rollout_id for r in log.records("rewards")}

    wait_for(lambda: len(graded()) == 30)
    letters = wait_for(lambda: log.messages("triplets", dead=True)[3:] and log.messages("triplets", dead=True))
    assert sorted(parse(m).reason for m in letters) == [
        "grader_died",
        "grader_failed",
        "grader_failed",
        "unknown_framing",
    ]
    rewards: list[Reward] = log.records("rewards")
    ids: dict[str, set[str]] = {}
    for one in rewards:
        assert (one.source, one.name, one.value, one.primary) == ("grader", "judge", 4.0, True)
        ids.setdefault(one.rollout_id, set()).add(one.reward_id)
    assert ids == {f"r{n}": {f"grader/judge/r{n}"} for n in range(30)}
    again = Counter(one.reward_id for one in rewards)
    assert max(again.values()) <= 2  # what was in hand at the kill, or not committed yet

    settings, admin = log.settings, make_admin(log.settings)
    offsets = GroupOffsets(settings, "test-offsets")
    places = [(settings.topic("triplets"), p) for p in range(settings.partitions)]
    group = f"{KIND}.judge"
    wait_for(lambda: group_lags(offsets, [group], topic_ends(admin, places)[0]).get(group) == 0)
    offsets.close()
    second.send_signal(signal.SIGTERM)
    assert second.wait(90) == 0
