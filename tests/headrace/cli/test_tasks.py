"""`headrace tasks produce` on a real broker."""

import json
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.records import Task, TrainingStep, Window
from headrace.streams.codec import Codec
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def tasks(settings: Settings) -> dict[str, Task]:
    topic = settings.topic("tasks")
    codec = Codec(settings)
    messages = read_topic(settings, topic, partition_ids(settings, topic), client_id="test")
    return {t.rollout_id: t for t in (codec.decode_as(Task, m.value()) for m in messages)}


def write(path: Path, *lines: Any) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_every_field_of_a_line_reaches_the_task(asking: Any, settings: Settings, tmp_path: Path) -> None:
    line = {
        "input": {"q": "α", "n": [1, 2.5, None]},
        "rollout_id": "tenant/α β",
        "group_id": "g",
        "mode": "val",
        "resources_id": "res",
        "config": {"timeout_seconds": 3, "max_attempts": 2, "retry_condition": ["timeout"]},
        "metadata": {"k": "v"},
    }
    file = write(tmp_path / "tasks.jsonl", line, {"input": "plain"}, {"input": 3, "group_id": "g"})
    (out,) = asking.json("tasks", "produce", file, "--mode", "train", "--json")
    found = tasks(settings)
    assert out == {"produced": 3, "rollout_ids": out["rollout_ids"]}
    assert set(out["rollout_ids"]) == set(found)
    task = found["tenant/α β"]
    assert json.loads(task.input) == line["input"]
    assert (task.mode, task.resources_id, task.metadata) == ("val", "res", {"k": "v"})
    assert (task.config.timeout_seconds, task.config.max_attempts, task.config.retry_condition) == (3.0, 2, ["timeout"])
    assert (task.group_id, task.group_size, task.sample_index, task.attempt) == ("g", 2, 0, 1)
    plain, third = (found[i] for i in out["rollout_ids"][1:])
    assert (plain.mode, plain.group_id, plain.group_size) == ("train", None, 1)
    assert (third.group_id, third.group_size, third.sample_index) == ("g", 2, 1)


def test_group_size_makes_groups(asking: Any, settings: Settings) -> None:
    (out,) = asking.json("tasks", "produce", "-", "--group-size", "3", stdin='{"input": 1}\n\n{"input": 2}')
    groups: dict[str | None, list[Task]] = defaultdict(list)
    for task in tasks(settings).values():
        groups[task.group_id].append(task)
    assert out["produced"] == 6
    assert len(groups) == 2
    for members in groups.values():
        assert sorted(m.sample_index for m in members) == [0, 1, 2]
        assert {m.group_size for m in members} == {3}
        assert len({m.input for m in members}) == 1


def test_nothing_of_a_bad_file_is_produced_unless_told(
    headrace: Any, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CLAIM_CHECK", "off")  # a value above the limit has no other way
    file = write(tmp_path / "tasks.jsonl", {"input": 1}, {"input": 2, "mod": "train"}, {"input": "x" * 17_000_000})
    done = headrace("tasks", "produce", file)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{file}:2: mod: is unknown" in done.stderr
    assert f"{file}:3: input: a Task of 170000" in done.stderr
    assert "Traceback" not in done.stderr
    assert tasks(settings) == {}
    done = headrace("tasks", "produce", file, "--skip-bad")
    assert done.returncode == 0
    assert f"skipped {file}:2: mod" in done.stderr
    assert json.loads(done.stdout)["rollout_ids"] == list(tasks(settings))
    assert headrace("tasks", "produce", str(tmp_path / "none.jsonl")).returncode == 1


async def test_follow_feeds_a_run_until_its_goal(headrace: Any, settings: Settings, tmp_path: Path) -> None:
    file = write(tmp_path / "tasks.jsonl", *({"input": n} for n in range(3)))
    flags = ("--follow", "run", "--group-size", "2", "--window", "4", "--max-staleness", "1", "--json")
    process = headrace.start("tasks", "produce", file, *flags)
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready["ready"] == "feeder"
    producer = AckedProducer(settings, "test")
    await producer.send(
        TrainingStep(
            run_id="run",
            step=1,
            policy="p",
            policy_version=1,
            window=Window(),
            metrics={"goal_reached": 1.0},
            started_at=0,
            ended_at=0,
        )
    )
    await producer.close()
    out = json.loads(process.stdout.readline())
    assert process.wait(90) == 0
    found = tasks(settings)
    assert out == {"produced": 8, "run_id": "run"}
    assert len(found) == 8
    assert {t.mode for t in found.values()} == {"train"}


def test_follow_ends_cleanly_on_a_signal(headrace: Any, settings: Settings, tmp_path: Path) -> None:
    file = write(tmp_path / "tasks.jsonl", {"input": 1})
    process = headrace.start("tasks", "produce", file, "--follow", "run", "--window", "5", "--max-staleness", "0")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["ready"] == "feeder"
    process.send_signal(signal.SIGTERM)
    out = json.loads(process.stdout.readline())
    assert process.wait(90) == 0
    assert out["produced"] == len(tasks(settings))
