"""Claim-check on a real broker: every way of writing, every reader, and the sweep of what nobody refers to."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.claim_check import decode, is_claim_check
from headrace.schemas.records import ResourcesUpdate, Reward, Span, Task, Trajectory
from headrace.streams.claims.sweep import sweep
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.kafka.clock import LogClock
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.producing import TaskProducer
from headrace.streams.resources import ResourceFollower
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka

LIMIT = 20_000
LARGE = "x" * 50_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "claims"


@pytest.fixture
def settings(make_settings: Callable[..., Settings], folder: Path) -> Settings:
    return make_settings(max_message_bytes=LIMIT, claim_check=str(folder))


def values(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "headrace-claims")


def reward(n: int, **fields: Any) -> Reward:
    return Reward(rollout_id="ro", reward_id=str(n), primary=True, value=1.0, source="agent", at=0, **fields)


def take_away(folder: Path) -> None:
    folder.rename(folder.with_name("away"))


def bring_back(folder: Path) -> None:
    folder.with_name("away").rename(folder)


async def test_asyncio_writers(settings: Settings, folder: Path, log: Any) -> None:
    producer = AckedProducer(settings, "test")
    large = Task(rollout_id="ro", input=LARGE, enqueued_at=0)
    await asyncio.gather(producer.send(large), producer.send(Task(rollout_id="small", input="1", enqueued_at=0)))
    (message,) = [m for m in log.messages("tasks") if m.key() == b"ro"]
    assert is_claim_check(message.value())
    assert log.decode(message) == large
    off = AckedProducer(settings.model_copy(update={"claim_check": "off"}), "test")
    with pytest.raises(RecordTooLargeError, match="HEADRACE_CLAIM_CHECK"):
        off.send(large)
    take_away(folder)
    await asyncio.to_thread(folder.write_text, "no folder")
    other = Task(rollout_id="other", input=LARGE + "y", enqueued_at=0)
    with pytest.raises(DeliveryError, match="there is no claim-check store"):  # there was one: it is waited for
        await producer.send(other)
    wrong = AckedProducer(settings, "test")
    with pytest.raises(RecordTooLargeError, match="cannot be"):
        await wrong.send(other)
    gone = AckedProducer(settings.model_copy(update={"claim_check": "http://127.0.0.1:9/claims"}), "test")
    with pytest.raises((DeliveryError, RecordTooLargeError), match="claim-check store"):
        await gone.send(large)
    for one in (producer, off, wrong, gone):
        await one.close()


def test_task_producers_and_followers(settings: Settings, log: Any) -> None:
    with TaskProducer(settings) as producer:
        rollout_id = producer.enqueue({"text": LARGE}, rollout_id="ro")
    (task,) = log.records("tasks")
    assert (task.rollout_id, len(task.input) > 50_000) == (rollout_id, True)
    log.write(ResourcesUpdate(resources_id="res", name=LARGE, version=1, resources={}, created_at=0))
    follower = ResourceFollower(settings, client_id="test").start()
    try:
        found = follower.get("res")
        assert found is not None
        assert found.name == LARGE
    finally:
        follower.close()


@pytest.fixture
def assembler(settings: Settings) -> Iterator[tuple[threading.Thread, Any]]:
    """A thread with the assembler, which the test starts, and its processor."""
    from headrace.streams.assembly.loop import AssemblyProcessor
    from headrace.streams.kafka.transactional import TransactionalLoop

    processor = AssemblyProcessor(settings, "w")
    loop = TransactionalLoop(settings, processor, "w")
    thread = threading.Thread(target=loop.run)
    yield thread, processor
    loop.stop()
    if thread.ident is not None:
        thread.join()


def test_transactions_and_a_store_that_is_away(
    settings: Settings, folder: Path, log: Any, assembler: tuple[threading.Thread, Any], wait_for: Any, make_event: Any
) -> None:
    """The partition waits for its store and loses nothing; a value that is gone is a dead letter with its name."""
    log.write(Span(rollout_id="lost", source="otlp", trace_id="a" * 32, span_id="c" * 16, name=LARGE, start=1, end=2))
    values(folder)[0].unlink()
    for rollout_id in ("ro", "other"):
        log.write(*make_event(rollout_id, LARGE))
    take_away(folder)
    thread, processor = assembler
    thread.start()
    wait_for(lambda: processor.counters.get("waited_for", 0) > 3)  # there are three, so one was asked for again
    bring_back(folder)
    trajectories = wait_for(lambda: len(found := log.records("triplets")) == 2 and found)
    assert {(t.rollout_id, t.input) for t in trajectories} == {("ro", f'"{LARGE}"'), ("other", f'"{LARGE}"')}
    (letter,) = wait_for(lambda: log.messages("spans", dead=True))
    assert (parse(letter).reason, is_claim_check(letter.value())) == ("claim_missing", True)
    assert log.messages("attempts", dead=True) == []


@pytest.fixture
def make_event() -> Callable[[str, str], list[Any]]:
    """The start of a rollout, with its input, and its end."""
    from headrace.schemas.records import AttemptEvent, TaskFacts

    def make(rollout_id: str, text: str) -> list[Any]:
        common: dict[str, Any] = {"rollout_id": rollout_id, "attempt_id": f"{rollout_id}-1", "attempt": 1, "at": 0}
        facts = TaskFacts(offset=0, input=f'"{text}"', mode="train")
        return [
            AttemptEvent(type="started", task=facts, **common),
            AttemptEvent(type="succeeded", final=True, complete=True, **common),
        ]

    return make


def test_a_trainer_reads_what_is_claimed(settings: Settings, folder: Path, log: Any) -> None:
    from headrace.trainers.reader import Reader
    from headrace.trainers.window import Windows, WindowSettings

    trajectory = Trajectory(rollout_id="ro", group_id="g", status="succeeded", input=LARGE, mode="val", assembled_at=0)
    log.write(trajectory)
    windows = Windows(WindowSettings(run_id="run", policy="p"))
    take_away(folder)
    reader = Reader(settings, "run", windows, LogClock())
    try:
        assert not any(reader.read() and windows.carrying for _ in range(5))
        bring_back(folder)
        for _ in range(100):
            reader.read()
            if windows.carrying:
                break
        assert [d.reason for d in windows.decisions().dropped] == ["mode"]
        assert reader.dead_letters == []
    finally:
        reader.close()


def test_the_sweep_deletes_what_no_record_refers_to(settings: Settings, folder: Path, log: Any) -> None:
    log.write(Task(rollout_id="kept", input=LARGE, enqueued_at=0))
    (kept,) = values(folder)
    log.write(reward(1, name=LARGE), reward(2, name=LARGE + "y"))
    for record in (Task(rollout_id="gone", input=LARGE + "z", enqueued_at=0), reward(3, name=LARGE + "z")):
        log._message(record)  # written to the store, and never sent
    (kept.parent / "half.part").write_bytes(b"half a value")
    stray = folder / "another-cluster" / settings.topic("tasks") / "ab" / ("ab" * 32)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"x")
    for path in values(folder):
        os.utime(path, (1, 1))

    def swept(**options: Any) -> dict[str, tuple[int, int, int]]:
        prefix = f"{settings.prefix}."
        found = sweep(settings, **options)
        return {s.topic.removeprefix(prefix): (s.values, s.old, s.deleted) for s in found if s.values}

    expected = {"tasks.v1": (3, 3, 2), "rewards.v1": (3, 3, 1)}
    assert swept(dry_run=True) == expected
    assert len(values(folder)) == 7
    assert swept() == expected
    assert len(values(folder)) == 4
    assert kept.exists()
    assert stray.exists()
    assert swept() == {"tasks.v1": (1, 1, 0), "rewards.v1": (2, 2, 0)}
    assert {decode(m.value()).bytes > LIMIT for m in log.messages("rewards")} == {True}
    assert len(log.records("rewards")) == 2
    log._message(Task(rollout_id="young", input=LARGE + "w", enqueued_at=0))
    assert swept()["tasks.v1"] == (2, 1, 0)
    assert swept(youngest=timedelta(0))["tasks.v1"] == (2, 2, 1)
