"""A pipeline of real processes: it works, what is killed comes back, and nothing stays behind."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

import headrace
from headrace.schemas.records import Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import describe
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings, load_settings
from tests.processes import put_away, ready, start
from tests.waiting import until

TASKS = 5


def part(pipeline: headrace.Pipeline, name: str) -> dict[str, Any]:
    return next(p for p in pipeline.facts()["parts"] if p["name"] == name)


def rewards(settings: Settings) -> list[float | None]:
    topic = settings.topic("triplets")
    codec = Codec(settings)
    messages = read_topic(settings, topic, range(len(describe(settings)[topic].partitions)), client_id="test")
    records = [codec.decode(m.value() or b"") for m in messages]
    return [r.final_reward for r in records if isinstance(r, Trajectory)]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_pipeline_works_brings_back_what_is_killed_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(
        "from headrace import LLM, rollout\n\n\n@rollout\nasync def agent(task, llm: LLM) -> float:\n"
        "    await llm.client().chat.completions.create(\n"
        "        model=llm.model, messages=[{'role': 'user', 'content': task}], max_tokens=2\n    )\n    return 0.5\n"
    )
    values = {
        "kafka": {"port": 0, "partitions": 1},
        "model": {"directory": "model", "steps": 0},
        "engine": {"model": "model"},
        "gateway": {},
        "lifecycle": {},
        "assembler": {},
        "runner": {"agent": "agent.py:agent"},
    }
    with headrace.up(values) as pipeline:
        pids = [p["pid"] for p in pipeline.facts()["parts"] if p["pid"]]
        first = part(pipeline, "runner")["pid"]
        os.kill(first, signal.SIGKILL)
        until(lambda: part(pipeline, "runner")["state"] == "running" and part(pipeline, "runner")["pid"] != first)
        settings = load_settings(bootstrap=pipeline.bootstrap, prefix=pipeline.prefix)
        with headrace.TaskProducer(settings) as producer:
            for number in range(TASKS):
                producer.enqueue(f"task {number}", mode="train")
        until(lambda: len(rewards(settings)) == TASKS)
        assert rewards(settings) == [0.5] * TASKS
        assert part(pipeline, "runner")["restarts"] == 1
        last = part(pipeline, "runner")["pid"]
    assert not any(psutil.pid_exists(pid) for pid in [*pids, last])
    assert (tmp_path / "pipeline" / "logs" / "runner.log").exists()


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_parts_die_with_a_command_that_is_killed(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text(
        f'prefix = "{settings.prefix}"\n[kafka]\nbootstrap = "{settings.bootstrap}"\n[gateway]\n'
    )
    up = start("up", str(tmp_path / "pipeline.toml"), "--json", stderr=subprocess.DEVNULL)
    try:
        said = ready(up)
        assert said["ready"] == "pipeline"
        (gateway,) = [p for p in said["parts"] if p["name"] == "gateway"]
        assert psutil.pid_exists(gateway["pid"])
        assert said["gateways"] == [gateway["url"]]
    finally:
        put_away(up)
    until(lambda: not psutil.pid_exists(gateway["pid"]))
