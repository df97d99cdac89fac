"""Lifecycle as a whole over a log in memory, on its clock."""

from datetime import timedelta
from typing import Any

import pytest

from headrace.schemas.records import AttemptEvent, Task, TaskConfig, TaskFacts
from headrace.streams.lifecycle import cleaning
from headrace.streams.lifecycle.cleaning import first_kept
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.settings import Settings, load_settings
from tests.streams.memory_log import MemoryLog, MemoryLoop

SETTINGS = load_settings(prefix="t", partitions=1)
DAY_MS = 24 * 3600 * 1000
R_MS = int(SETTINGS.retention.total_seconds() * 1000)


def lifecycle(settings: Settings = SETTINGS) -> tuple[MemoryLog, MemoryLoop]:
    log = MemoryLog(settings)
    return log, MemoryLoop(log, lambda: LifecycleProcessor(settings, "l", log))


def task(rollout_id: str = "ro", **config: Any) -> Task:
    return Task(rollout_id=rollout_id, input='"q"', group_id="g", config=TaskConfig(**config), enqueued_at=0)


def event(type: str, rollout_id: str = "ro", *, attempt: int = 1, delivery: int = 1, **more: Any) -> AttemptEvent:
    attempt_id = f"{rollout_id}-{attempt}-{delivery}" if attempt else None
    if type == "started":
        more.setdefault("task", TaskFacts())
    return AttemptEvent(
        rollout_id=rollout_id, attempt_id=attempt_id, attempt=attempt, delivery=delivery, type=type, at=0, **more
    )


def until_quiet(loop: MemoryLoop) -> None:
    while loop.turn():
        pass


def wait(log: MemoryLog, loop: MemoryLoop, seconds: float) -> None:
    log.now_ms += int(seconds * 1000)
    until_quiet(loop)


def status(log: MemoryLog, rollout_id: str = "ro") -> str:
    return log.last("rollouts")[rollout_id].status


def written(log: MemoryLog, type: str) -> list[AttemptEvent]:
    return [e for e in log.records("attempts") if e.type == type]


def test_a_timer_proposes_and_the_log_decides():
    log, loop = lifecycle()
    log.write(task(timeout_seconds=5.0), event("started"))
    until_quiet(loop)
    log.now_ms += 6000
    loop.turn()  # writes the timeout
    assert status(log) == "preparing"
    (end,) = written(log, "timeout")
    assert (end.final, end.error and end.error.type) == (True, "timeout")
    until_quiet(loop)
    assert status(log) == "failed"


def test_what_crosses_a_timer_wins_if_it_stands_first():
    log, loop = lifecycle()
    log.write(task(timeout_seconds=5.0), event("started"))
    until_quiet(loop)
    log.now_ms += 6000
    loop.read()
    log.write(event("succeeded", final=True, complete=True))
    loop.write()
    until_quiet(loop)
    assert status(log) == "succeeded"
    assert len(written(log, "timeout")) == 1


def test_timers_begin_anew_after_a_restart_and_one_event_is_written():
    log, loop = lifecycle()
    log.write(task(timeout_seconds=5.0), event("started"))
    until_quiet(loop)
    log.now_ms += 60_000
    loop.restart()
    until_quiet(loop)
    assert not written(log, "timeout")
    wait(log, loop, 4)
    assert not written(log, "timeout")
    wait(log, loop, 2)
    wait(log, loop, 20)
    assert len(written(log, "timeout")) == 1
    assert status(log) == "failed"


def test_no_timer_judges_before_all_is_read():
    log, loop = lifecycle()
    log.write(task(timeout_seconds=5.0), event("started"))
    until_quiet(loop)
    log.now_ms += 60_000
    log.write(event("heartbeat"), event("succeeded", final=True))
    loop.restart()
    for _ in range(4):
        loop.turn(1)
    until_quiet(loop)
    assert not [e for e in log.records("attempts") if e.worker_id == "l"]
    assert status(log) == "succeeded"


def test_a_lease_and_the_next_delivery():
    log, loop = lifecycle()
    log.write(task(), event("started"))
    until_quiet(loop)
    for _ in range(3):
        wait(log, loop, 20)
        log.write(event("heartbeat"))
    until_quiet(loop)
    assert not written(log, "lost")
    wait(log, loop, 31)
    (lost,) = written(log, "lost")
    assert (lost.final, lost.lost_reason, lost.attempt, lost.delivery) == (False, "lease", 1, 1)
    assert status(log) == "requeuing"
    assert len(log.records("tasks")) == 1
    log.write(event("started", delivery=2), event("succeeded", delivery=2, final=True))
    until_quiet(loop)
    assert status(log) == "succeeded"


def test_silence_while_heartbeats_come_then_revival():
    log, loop = lifecycle()
    log.write(task(unresponsive_seconds=15.0), event("started"))
    until_quiet(loop)
    for _ in range(4):
        wait(log, loop, 10)
        log.write(event("heartbeat"))
        until_quiet(loop)
    (mark,) = written(log, "unresponsive")
    assert mark.final
    state = log.last("rollouts")["ro"]
    assert (state.status, state.attempts[0].status) == ("running", "unresponsive")
    log.write(event("activity"))
    until_quiet(loop)
    assert log.last("rollouts")["ro"].attempts[0].status == "running"
    wait(log, loop, 16)
    log.write(event("heartbeat"))
    until_quiet(loop)
    assert len(written(log, "unresponsive")) == 2


def test_silence_that_is_retried():
    log, loop = lifecycle()
    log.write(task(unresponsive_seconds=15.0, max_attempts=2, retry_condition=["unresponsive"]), event("started"))
    until_quiet(loop)
    wait(log, loop, 16)
    log.write(event("heartbeat"))
    until_quiet(loop)
    assert status(log) == "requeuing"
    retry = log.records("tasks")[-1]
    assert (retry.attempt, retry.input, retry.group_id) == (2, '"q"', "g")
    assert log.last("rollouts")["ro"].task_offset == log.messages("tasks")[-1].offset()


def test_an_open_rollout_is_given_up_though_timers_began_anew():
    log, loop = lifecycle()
    log.write(task("queued"), task("runs"), event("started", "runs"))
    until_quiet(loop)
    for _ in range(23 * 120):
        log.now_ms += 30_000
        log.write(event("heartbeat", "runs"))
    until_quiet(loop)
    loop.restart()
    until_quiet(loop)
    for _ in range(181):
        wait(log, loop, 20)
        log.write(event("heartbeat", "runs"))
    until_quiet(loop)
    assert not written(log, "lost")
    for rollout_id in ("queued", "runs"):
        assert status(log, rollout_id) == "failed"
        (end,) = [e for e in written(log, "timeout") if e.rollout_id == rollout_id]
        assert (end.final, end.error and end.error.type) == (True, "open_too_long")
    (queued,) = [e for e in written(log, "timeout") if e.rollout_id == "queued"]
    assert queued.task == TaskFacts(offset=0, group_id="g", input='"q"')


def test_after_a_restart_the_oldest_is_given_up_first():
    log, loop = lifecycle(load_settings(prefix="t", partitions=1, max_open=timedelta(hours=1)))
    log.write(task("old"), event("started", "old"))
    until_quiet(loop)
    log.now_ms += 1_800_000
    log.write(event("heartbeat", "old"), task("young"), event("heartbeat", "old"))
    until_quiet(loop)
    log.write(event("activity", "old"))
    until_quiet(loop)
    loop.restart()
    wait(log, loop, 1_800)
    wait(log, loop, 31)
    assert [e.rollout_id for e in written(log, "timeout")] == ["old"]


def test_cancel_of_what_nobody_runs_is_written_at_once_with_its_facts():
    log, loop = lifecycle()
    request = event("cancel_requested", attempt=0)
    log.write(task(), request, request)
    until_quiet(loop)
    (end,) = written(log, "cancelled")
    assert (end.final, end.complete, end.attempt_id) == (True, True, None)
    assert end.task == TaskFacts(offset=0, group_id="g", input='"q"')
    assert status(log) == "cancelled"


def test_cancel_while_a_retry_is_enqueued():
    log, loop = lifecycle()
    log.write(task(max_attempts=2, retry_condition=["failed"]), event("started"), event("failed"))
    log.write(event("cancel_requested", attempt=0))
    until_quiet(loop)
    assert status(log) == "cancelled"
    assert len(written(log, "cancelled")) == 1


def test_cancel_of_an_external_rollout_ends_its_attempt():
    log, loop = lifecycle()
    log.write(event("started", task=TaskFacts(origin="external")), event("cancel_requested", attempt=0))
    until_quiet(loop)
    (attempt,) = log.last("rollouts")["ro"].attempts
    assert (status(log), attempt.status) == ("cancelled", "cancelled")
    assert attempt.ended_at is not None


def test_a_retry_whose_task_is_gone_fails():
    log, loop = lifecycle()
    log.write(task(max_attempts=2, retry_condition=["failed"]), event("started"))
    until_quiet(loop)
    log.delete_before("tasks", {0: 1})
    log.write(event("failed"))
    until_quiet(loop)
    assert status(log) == "failed"
    assert log.records("attempts")[-1].error.type == "task_missing"


def test_ends_before_their_task_wait_for_it_and_strays_are_refused():
    log, loop = lifecycle()
    log.write(event("succeeded", final=True, task=TaskFacts()), event("heartbeat", "stray"), task())
    loop.read(only="attempts")
    until_quiet(loop)
    assert status(log) == "succeeded"
    assert log.reasons() == [("unknown_rollout", "stray")]


def test_an_end_that_does_not_say_of_which_task_it_is_ends_nothing():
    log, loop = lifecycle()
    log.write(task(), event("succeeded", final=True), event("succeeded", "stray", final=True))
    until_quiet(loop)
    assert status(log) == "queuing"
    assert sorted(log.reasons()) == [("no_task_facts", "ro"), ("unknown_rollout", "stray")]


def test_an_end_without_an_attempt_tells_the_facts_of_a_task_that_is_gone():
    log, loop = lifecycle()
    log.write(task(), event("started"), event("lost"))
    until_quiet(loop)
    log.delete_before("tasks", {0: 1})
    log.write(event("cancel_requested", attempt=0))
    until_quiet(loop)
    assert status(log) == "cancelled"
    (end,) = written(log, "cancelled")
    assert (end.attempt_id, end.task) == (None, TaskFacts(group_id="g", input="null"))


def test_ten_thousand_duplicates_change_nothing():
    log, loop = lifecycle()
    log.write(task(), event("started"))
    until_quiet(loop)
    states = len(log.messages("rollouts"))
    for _ in range(10_000):
        log.write(event("started"))
    log.write(*([task()] * 1000))
    until_quiet(loop)
    assert len(log.messages("rollouts")) == states
    log.write(event("succeeded", final=True))
    until_quiet(loop)
    states = len(log.messages("rollouts"))
    for _ in range(10_000):
        log.write(event("failed", final=True))
    until_quiet(loop)
    assert len(log.messages("rollouts")) == states
    assert status(log) == "succeeded"
    assert not log.dead


def test_a_rollout_is_forgotten_long_after_its_end():
    log, loop = lifecycle()
    log.commits["runner"] = {"tasks": 2}
    log.write(task("old"), event("started", "old"), event("succeeded", "old", final=True))
    until_quiet(loop)
    log.now_ms += R_MS // 2
    log.write(task("young"), event("started", "young"), event("succeeded", "young", final=True))
    until_quiet(loop)
    assert set(log.last("rollouts")) == {"old", "young"}
    wait(log, loop, R_MS / 2000 + 60)
    assert set(log.last("rollouts")) == {"young"}
    tombstones = [m for m in log.messages("rollouts") if m.value() is None]
    assert [m.key() for m in tombstones] == [b"old"]
    loop.restart()
    wait(log, loop, 700)
    assert len([m for m in log.messages("rollouts") if m.value() is None]) == 1
    log.write(task("old"))  # whoever enqueues the id again has a new rollout
    until_quiet(loop)
    assert status(log, "old") == "queuing"
    wait(log, loop, 700)
    loop.restart()
    until_quiet(loop)
    assert status(log, "old") == "queuing"


def test_a_rollout_is_not_forgotten_while_a_task_that_may_repeat_it_waits():
    log, loop = lifecycle()
    log.write(task("a"), event("started", "a"), event("succeeded", "a", final=True), task("a"))
    until_quiet(loop)
    log.commits["runner"] = {"tasks": 1}  # busy with others for longer than anything is kept
    wait(log, loop, 3 * R_MS / 1000)
    assert status(log, "a") == "succeeded"
    log.commits["runner"] = {"tasks": 2}
    wait(log, loop, 700)
    assert "a" not in log.last("rollouts")


def test_old_tasks_are_deleted_below_what_anyone_needs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cleaning, "LOOK_SECONDS", 0)
    log, loop = lifecycle(load_settings(prefix="t", partitions=1, max_open=timedelta(days=30)))
    for rollout_id in ("a", "b", "c"):
        log.write(task(rollout_id))
    log.write(event("cancel_requested", "a", attempt=0), event("cancel_requested", "c", attempt=0))
    until_quiet(loop)
    log.now_ms += int(timedelta(days=40).total_seconds() * 1000)
    log.commits["runner"] = {"tasks": 0}
    loop.read()
    assert log.first.get("tasks", 0) == 0  # no runner has read them
    log.commits["runner"] = {"tasks": 3}
    loop.read()
    assert log.first["tasks"] == 1  # b is given up, but open until that is read: its Task is needed
    until_quiet(loop)
    log.write(task("d"))
    until_quiet(loop)
    assert log.first["tasks"] == 3
    assert log.messages("tasks")[0].offset() == 3


@pytest.mark.parametrize(
    ("committed", "open_task", "young", "expected"),
    [
        ({}, None, 9, 0),
        ({"runner": 7}, None, 9, 0),
        ({"runner": 7, "lifecycle": 8}, None, 9, 7),
        ({"runner": 7, "lifecycle": 8, "view": 5}, None, 9, 5),
        ({"runner": 7, "lifecycle": 8}, 4, 9, 4),
        ({"runner": 7, "lifecycle": 8}, 4, 3, 3),
    ],
)
def test_first_kept(committed: dict[str, int], open_task: int | None, young: int, expected: int):
    assert first_kept(committed, open_task, young) == expected
