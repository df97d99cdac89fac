"""The trainer on a real broker."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from headrace.streams.codec import DecodeError
from headrace.streams.errors import EXIT_FENCED, FencedError, SettingsError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.group_offsets import GroupOffsets
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.streams.topics import dead_letter_topic
from headrace.trainers import checkpoint
from headrace.trainers.checkpoint import CheckpointError
from headrace.trainers.grpo.settings import GrpoSettings, settings_of_objective
from headrace.trainers.metrics.names import is_fixed, scalars
from headrace.trainers.models.lora import LoraSettings
from tests.processes import put_away, ready, start
from tests.trainers.make import POLICY, RUN
from tests.trainers.outcomes import assert_exact, published
from tests.trainers.pipeline import (
    decided,
    loop,
    produce,
    run_until,
    synthetic,
    trained_at_least,
    training,
    triplets,
    window_settings,
)

pytestmark = pytest.mark.kafka
Make = Callable[..., Path]
ROOT = Path(__file__).parents[2]


def test_windows_are_trained_and_published(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    produce(settings, synthetic(range(6)))
    run_until(settings, loop(settings, model, tmp_path), trained_at_least(24))
    steps = assert_exact(settings, model)
    assert [s.step for s in steps] == [1, 2, 3]
    assert steps[-1].decided == 24
    assert steps[-1].staleness == {"2": 8}
    # The log-probabilities are none of this model's: the weights that were trained are not those that have sampled.
    assert [s.metrics.get("mismatch/alarm") for s in steps] == [1.0, None, None]
    loops = {f"seconds/{phase}" for phase in ("read", "checkpoint", "publish", "step")}
    loops |= {"reward/recent", "idle/share", "outstanding", "reward/mean", "entropy"}
    assert loops <= set(steps[-1].metrics)
    assert all(is_fixed(name) for step in steps for name in scalars(step))
    assert sorted(p.name for p in Path(published(settings)[1].uri).iterdir()) == [
        "config.json",
        "manifest.json",
        "model.safetensors",
        "tokenizer_config.json",
    ]


@pytest.mark.parametrize(
    ("point", "arithmetic"),
    [
        ("before", GrpoSettings(lr=1e-3)),
        ("in", GrpoSettings(lr=1e-3, lora=LoraSettings(rank=4, alpha=8), kl="k3")),
        ("after", GrpoSettings(lr=1e-3)),
    ],
    ids=["before", "in-lora", "after"],
)
def test_killed_around_its_transaction(
    settings: Settings, make_model: Make, tmp_path: Path, point: str, arithmetic: GrpoSettings
) -> None:
    model = make_model()
    produce(settings, synthetic(range(8)))
    given = {
        "settings": {"bootstrap": settings.bootstrap, "prefix": settings.prefix, "partitions": settings.partitions},
        "model": str(model),
        "tmp": str(tmp_path),
        "arithmetic": asdict(arithmetic),
    }
    # The first publication with two records is that of the manifest.
    command = [sys.executable, "-m", "tests.trainers.dying", json.dumps(given), point, "3"]
    dead = subprocess.run(command, cwd=ROOT, timeout=300, check=False)
    assert dead.returncode == -signal.SIGKILL
    run_until(settings, loop(settings, model, tmp_path, arithmetic=arithmetic), trained_at_least(32))
    steps = assert_exact(settings, model, arithmetic)
    assert len(steps) == 4
    known = {w.uri for w in published(settings)} | {s.state.uri for s in steps if s.state}
    directory = tmp_path / "checkpoints" / RUN
    assert {str(p) for p in directory.iterdir()} <= known | {str(directory / "model-files")}


def test_a_store_that_is_full_or_gone_ends_the_trainer_where_it_stood(
    settings: Settings, make_model: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PPO, whose value head and proximal weights come back too."""
    model = make_model()
    arithmetic = settings_of_objective("ppo")
    produce(settings, synthetic(range(4)))

    def run(enough: int) -> None:
        run_until(settings, loop(settings, model, tmp_path, arithmetic=arithmetic), trained_at_least(enough))

    write, written = checkpoint._write, 0  # pyright: ignore[reportPrivateUsage]

    def full_at_last(path: Path, content: bytes) -> None:
        nonlocal written
        written += path.name == "model.safetensors"
        if written > 1:
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(checkpoint, "_write", full_at_last)
    with pytest.raises(CheckpointError, match="No space left on device"):
        run(16)
    monkeypatch.undo()
    store = tmp_path / "checkpoints"
    store.rename(tmp_path / "away")
    with pytest.raises(CheckpointError, match="gone"):
        run(16)
    assert [s.step for s in training(settings)[1] if s.window.samples] == [1]
    if store.exists():
        shutil.rmtree(store)
    (tmp_path / "away").rename(store)
    run(16)
    assert len(assert_exact(settings, model, arithmetic)) == 2


def test_timers_of_groups_begin_anew_when_a_trainer_comes_back(
    settings: Settings, make_model: Make, tmp_path: Path
) -> None:
    model = make_model()
    produce(settings, synthetic(range(1))[:3])
    window = window_settings(group_timeout_seconds=1.0, incomplete="drop")
    first = list(triplets(settings).values())
    assert len(first) == 3
    time.sleep(1.2)  # of log time; the group is older than its time-out before anybody reads it
    began = time.monotonic()
    run_until(settings, loop(settings, model, tmp_path, window=window), lambda steps: len(decided(steps)) >= 3)
    assert time.monotonic() - began >= 1.0
    assert {d.reason for s in training(settings)[1] for d in s.window.dropped} == {"group_timeout"}


def test_a_second_trainer_fences_the_first(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    joined, stop = threading.Event(), threading.Event()
    outcome: list[BaseException] = []

    def first() -> None:
        try:
            loop(settings, model, tmp_path).run(stop, lambda facts: joined.set())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert joined.wait(90)
    produce(settings, synthetic(range(2)))
    run_until(settings, loop(settings, model, tmp_path / "other"), trained_at_least(8))
    produce(settings, synthetic(range(2, 4)))
    thread.join(90)
    stop.set()
    assert isinstance(outcome[0], FencedError)
    run_until(settings, loop(settings, model, tmp_path / "other"), trained_at_least(16))
    assert_exact(settings, model)


def test_the_end_of_a_run(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    """At the goal what is held is dropped, and so is what comes, also after a restart."""
    model = make_model()
    produce(settings, synthetic(range(2), final_reward=1.0))
    produce(settings, synthetic(range(2, 3), final_reward=1.0)[:3])
    make = {"goal": 0.9, "goal_samples": 8}
    run_until(settings, loop(settings, model, tmp_path, **make), lambda steps: len(decided(steps)) >= 8)
    produce(settings, synthetic(range(3, 4)))
    run_until(settings, loop(settings, model, tmp_path, **make), lambda steps: len(decided(steps)) >= 15)
    steps = assert_exact(settings, model)
    assert [s.metrics.get("goal_reached") for s in steps if s.window.samples] == [1.0]
    assert {d.reason for s in steps for d in s.window.dropped} == {"run_finished"}
    assert steps[-1].decided == 15


def test_what_cannot_be_read_is_a_dead_letter_and_the_offsets_reach_the_end(
    settings: Settings, make_model: Make, tmp_path: Path
) -> None:
    model = make_model()
    produce(settings, synthetic(range(2)), raw=[b"poison"])
    produce(settings, synthetic(range(2, 3), mode="val"))
    run_until(settings, loop(settings, model, tmp_path), lambda steps: len(decided(steps)) >= 13)
    _, steps = training(settings)
    drops = Counter({d.reason: len(d.samples) for s in steps for d in s.window.dropped})
    assert drops == {"unreadable": 1, "mode": 4}
    topic = settings.topic("triplets")
    letters = [parse(m) for m in read_topic(settings, dead_letter_topic(topic), [0], client_id="test")]
    assert [(x.reason, x.value) for x in letters] == [("unknown_framing", b"poison")]
    offsets = GroupOffsets(settings, "test-offsets")
    partitions = [(topic, p) for p in partition_ids(settings, topic)]
    committed = offsets.committed(f"trainer.{RUN}", partitions)
    offsets.close()
    positions = {p.partition: p.next for p in steps[-1].window.position}
    assert {partition: offset for (_, partition), offset in committed.items()} == positions
    assert set(positions) <= set(partition_ids(settings, topic))
    assert all(p.finished == [] for p in steps[-1].window.position)


def test_other_settings_need_another_run(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    produce(settings, synthetic(range(2)))
    run_until(settings, loop(settings, model, tmp_path), trained_at_least(8))
    with pytest.raises(SettingsError, match=r"algorithm\.lr was 0\.001, is 0\.01"):
        run_until(settings, loop(settings, model, tmp_path, lr=1e-2), lambda steps: False)


def test_a_publication_of_a_later_schema_is_not_passed_over(
    settings: Settings, make_model: Make, tmp_path: Path
) -> None:
    """Its version may be the newest: whoever cannot read it must not give the number to another."""
    model = make_model()
    producer = make_producer(settings, "test", linger_ms=0)

    def publish(policy: str) -> None:
        later = b"\xc3\x01" + bytes(8) + b"of a later version"
        producer.produce(settings.topic("resources"), later, f"{policy}-v7-0".encode())
        assert producer.flush(10) == 0

    publish("other")
    produce(settings, synthetic(range(2)))
    run_until(settings, loop(settings, model, tmp_path), trained_at_least(8))
    publish(POLICY)
    with pytest.raises(DecodeError, match=r"unknown_schema.*upgrade this trainer"):
        run_until(settings, loop(settings, model, tmp_path), lambda steps: False)
    assert len(decided(training(settings)[1])) == 8


def test_the_command(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    """Ready line, a window, exit code 0 on SIGTERM, and 78 for the one that was taken over."""
    model = make_model()
    command = ("trainer", "grpo", "--model", str(model), "--run", RUN, "--policy", POLICY, "--window-groups", "2")
    command += ("--checkpoints", str(tmp_path / "c"), "--bootstrap", settings.bootstrap, "--prefix", settings.prefix)
    first = start(*command)
    second = None
    try:
        assert ready(first) == {
            "ready": "trainer", "run_id": RUN, "policy": POLICY, "step": 0, "version": 0
        }  # fmt: skip
        second = start(*command)
        assert ready(second)["ready"] == "trainer"
        produce(settings, synthetic(range(2)))
        assert first.wait(90) == EXIT_FENCED
        second.terminate()
        assert second.wait(90) == 0
    finally:
        for process in (first, second):
            if process is not None:
                put_away(process)
    assert Counter(decided(training(settings)[1])) == Counter(list(triplets(settings)))
