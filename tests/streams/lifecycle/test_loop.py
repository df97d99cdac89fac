"""Lifecycle on real Kafka, as a process that is killed."""

import signal
from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from headrace.schemas.records import AttemptEvent, RolloutState, Task, TaskConfig, TaskFacts
from headrace.streams.codec import Codec
from headrace.streams.kafka import old_records
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.messages import OutMessage, size_of
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.lifecycle import cleaning
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.lifecycle.machine import TERMINAL, fold
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def task(n: int, **config: Any) -> Task:
    return Task(rollout_id=f"ro{n}", input=f'"{n}"', enqueued_at=1, group_id="g", config=TaskConfig(**config))


def event(n: int, type: str, *, attempt: int = 1, **more: Any) -> AttemptEvent:
    if type == "started":
        more.setdefault("task", TaskFacts())
    return AttemptEvent(rollout_id=f"ro{n}", attempt_id=f"ro{n}-{attempt}", attempt=attempt, type=type, at=2, **more)


def last_states(log: Any) -> dict[str, RolloutState]:
    """What a compacted rollouts topic keeps."""
    return {state.rollout_id: state for state in log.records("rollouts")}


def folded(log: Any) -> dict[str, RolloutState]:
    """The pure function over the topics as they are."""
    tasks: dict[int, list[Any]] = {}
    events: dict[int, list[Any]] = {}
    for topic, found in (("tasks", tasks), ("attempts", events)):
        for m in log.messages(topic):
            found.setdefault(m.partition(), []).append((m.offset(), m.timestamp()[1] * 1000, log.decode(m)))
    states: dict[str, RolloutState] = {}
    for partition in {*tasks, *events}:
        states |= fold(tasks.get(partition, []), events.get(partition, []))
    return states


def of(log: Any, n: int) -> RolloutState | None:
    return last_states(log).get(f"ro{n}")


def has_status(log: Any, n: int, status: str) -> Callable[[], bool]:
    def check() -> bool:
        state = of(log, n)
        return state is not None and state.status == status

    return check


def test_killed_in_the_middle_the_topic_equals_the_fold(log: Any, start_processor: Any, wait_for: Any):
    count = 240
    first = start_processor("lifecycle", "w")
    for start in range(0, count, 20):
        block = range(start, start + 20)
        log.write(*(task(n, max_attempts=2, retry_condition=["failed"]) for n in block))
        log.write(*(event(n, "started") for n in block), *(event(n, "heartbeat") for n in block))
        if start == 100:
            first.send_signal(signal.SIGKILL)
            first.wait()
        # Every fifth fails and is retried, every seventh stays open.
        log.write(
            *(
                event(n, "failed") if n % 5 == 0 else event(n, "succeeded", final=True, complete=True)
                for n in block
                if n % 7
            )
        )
    start_processor("lifecycle", "w")
    retried = [n for n in range(count) if n % 7 and n % 5 == 0]
    wait_for(lambda: sum(t.attempt == 2 for t in log.records("tasks")) == len(retried))
    log.write(*(event(n, "started", attempt=2) for n in retried))
    log.write(*(event(n, "succeeded", attempt=2, final=True) for n in retried[1:]))
    ended = count - len([n for n in range(count) if n % 7 == 0]) - 1
    wait_for(lambda: sum(s.status in TERMINAL for s in last_states(log).values()) == ended)
    states = wait_for(lambda: (found := last_states(log)) == folded(log) and found)
    assert len(states) == count
    assert states["ro7"].status == "running"
    assert states["ro1"].status == "succeeded"
    assert [a.status for a in states[f"ro{retried[1]}"].attempts] == ["failed", "succeeded"]
    assert sorted(t.rollout_id for t in log.records("tasks") if t.attempt == 2) == sorted(f"ro{n}" for n in retried)


def test_timers_write_events_that_count_when_read_back(log: Any, start_processor: Any, wait_for: Any):
    start_processor("lifecycle", "w")
    log.write(task(1, timeout_seconds=0.5), task(2, timeout_seconds=0.5, max_attempts=2, retry_condition=["timeout"]))
    log.write(event(1, "started"), event(2, "started"))
    wait_for(has_status(log, 1, "failed"))
    wait_for(lambda: any(t.attempt == 2 for t in log.records("tasks")))
    (first,) = of(log, 1).attempts  # type: ignore[union-attr]
    assert first.status == "timeout"
    assert first.error is not None
    assert first.error.type == "timeout"
    assert of(log, 2).status == "requeuing"  # type: ignore[union-attr]
    written = [e for e in log.records("attempts") if e.type == "timeout"]
    assert sorted((e.rollout_id, e.final) for e in written) == [("ro1", True), ("ro2", False)]
    (retry,) = (t for t in log.records("tasks") if t.attempt == 2)
    assert (retry.rollout_id, retry.input, retry.group_id) == ("ro2", '"2"', "g")


def test_a_cancelled_queuing_rollout_ends_with_the_facts_of_its_task(log: Any, start_processor: Any, wait_for: Any):
    start_processor("lifecycle", "w")
    log.write(task(1))
    log.write(AttemptEvent(rollout_id="ro1", attempt=0, type="cancel_requested", at=2))
    wait_for(has_status(log, 1, "cancelled"))
    end = log.records("attempts")[-1]
    assert (end.type, end.final, end.complete, end.attempt_id) == ("cancelled", True, True, None)
    assert end.task == TaskFacts(offset=0, group_id="g", input='"1"')
    assert has_status(log, 1, "cancelled")()


def test_a_task_as_large_as_a_record_blocks_nothing(make_settings: Callable[..., Settings], log_of: Any, wait_for: Any):
    settings = make_settings(max_message_bytes=100_000, claim_check="off")
    log = log_of(settings)
    most = 100_000 - size_of(OutMessage("", b"ro1", b""))
    room = most - 100
    encode = Codec(settings).encode
    worker_id = "w" * 100  # what lifecycle says more
    loop = TransactionalLoop(settings, LifecycleProcessor(settings, worker_id), worker_id)
    thread = Thread(target=loop.run)
    thread.start()
    try:
        large, much = task(1), task(2)
        large.metadata["text"] = "x" * room
        much.input = f'"{"x" * room}"'
        large.metadata["text"] += "x" * (most - len(encode(large)))
        much.input = f'"{"x" * (room + most - len(encode(much)))}"'
        log.write(large)
        cancel = event(2, "cancel_requested", attempt=0)
        log.write(much, cancel, task(3))
        wait_for(has_status(log, 3, "queuing"))
        wait_for(has_status(log, 1, "queuing"))
        assert of(log, 1).metadata == {}
        wait_for(has_status(log, 2, "cancelled"))
        (end,) = [e for e in log.records("attempts") if e.type == "cancelled"]
        assert end.task.input == "null"
    finally:
        loop.stop()
        thread.join()


def test_an_open_rollout_is_given_up(make_settings: Callable[..., Settings], log_of: Any, wait_for: Any):
    settings = make_settings(max_open=timedelta(seconds=2))
    log = log_of(settings)
    loop = TransactionalLoop(settings, LifecycleProcessor(settings, "w"), "w")
    thread = Thread(target=loop.run)
    thread.start()
    try:
        log.write(task(1))
        wait_for(has_status(log, 1, "failed"))
        end = log.records("attempts")[-1]
        assert (end.type, end.final, end.task.input) == ("timeout", True, '"1"')
        assert end.error.type == "open_too_long"
    finally:
        loop.stop()
        thread.join()


def test_an_event_before_its_task_waits_for_it_and_one_without_is_refused(
    log: Any, start_processor: Any, wait_for: Any
):
    log.write(event(1, "started"))
    log.write(event(2, "heartbeat"))
    log.write(event(3, "started", task=TaskFacts(origin="external", mode="val")))
    log.write(task(1))
    start_processor("lifecycle", "w")
    wait_for(has_status(log, 1, "preparing"))
    wait_for(has_status(log, 3, "preparing"))
    assert of(log, 3).origin == "external"  # type: ignore[union-attr]
    wait_for(lambda: log.messages("attempts", dead=True))
    letters = [parse(m) for m in log.messages("attempts", dead=True)]
    assert [(letter.reason, letter.key) for letter in letters] == [("unknown_rollout", b"ro2")]


class ShortLived(Settings):
    """Settings whose records are kept for two seconds."""

    @property
    def retention(self) -> timedelta:
        return timedelta(seconds=2)


def test_old_tasks_and_states_are_removed(log: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch, wait_for: Any):
    monkeypatch.setattr(cleaning, "LOOK_SECONDS", 0.5)
    monkeypatch.setattr(old_records, "LOOK_SECONDS", 0.5)
    short = ShortLived(**settings.model_dump())
    loop = TransactionalLoop(short, LifecycleProcessor(short, "w"), "w")
    thread = Thread(target=loop.run)
    thread.start()
    admin = make_admin(settings)

    def kept() -> int:
        partitions = {TopicPartition(settings.topic("tasks"), p): OffsetSpec.earliest() for p in range(3)}
        answers: Any = admin.list_offsets(partitions)
        firsts = [future.result().offset for future in answers.values()]
        return len(log.messages("tasks")) if any(firsts) else -1

    try:
        log.write(task(1), task(2), task(3))
        log.write(event(1, "cancel_requested", attempt=0), event(2, "started"))
        wait_for(has_status(log, 1, "cancelled"))
        runner = make_consumer(settings, "r", group="runner")
        ends = log.messages("tasks")
        runner.commit(
            offsets=[TopicPartition(m.topic(), m.partition(), m.offset() + 1) for m in ends], asynchronous=False
        )
        runner.close()
        wait_for(lambda: any(m.value() is None and m.key() == b"ro1" for m in log.messages("rollouts")))
        wait_for(lambda: kept() == 2)  # those of open rollouts
        log.write(event(2, "succeeded", final=True), event(3, "cancel_requested", attempt=0))
        wait_for(lambda: len({m.key() for m in log.messages("rollouts") if m.value() is None}) == 3)
        wait_for(lambda: kept() == 0)
    finally:
        loop.stop()
        thread.join()
