"""Every transition of rollouts and attempts, a row each. docs/lifecycle.md has the same table in words.

An event is written `type` or `type@attempt` or `type@attempt.delivery`; whether an end is final is the retry rule's to
say, unless `!` (final) or `?` (not) stands behind it.
"""

import pytest

from headrace.schemas.records import AttemptEvent, Task, TaskConfig, TaskFacts
from headrace.streams.ends import ENDS, retry_follows
from headrace.streams.lifecycle.machine import Rollout, apply_event, apply_task, from_facts, from_task

NONE = TaskConfig(max_attempts=1)
FAILED = TaskConfig(max_attempts=2, retry_condition=["failed"])
TIMEOUT = TaskConfig(max_attempts=2, retry_condition=["timeout"])
SILENT = TaskConfig(max_attempts=2, retry_condition=["unresponsive"])

Row = tuple[str, TaskConfig, str, str, str]

# What it shows, the task's config, the events, the rollout's status before and after each, the attempts' in the end.
ROWS: list[Row] = [
    # an attempt begins
    ("a task waits", NONE, "", "queuing", ""),
    ("a start prepares", NONE, "started", "queuing preparing", "preparing"),
    ("the first heartbeat runs", NONE, "started heartbeat", "queuing preparing running", "running"),
    ("the first activity runs", NONE, "started activity", "queuing preparing running", "running"),
    (
        "further signs change nothing",
        NONE,
        "started heartbeat activity heartbeat",
        "queuing preparing running running running",
        "running",
    ),
    # it ends
    ("success while preparing", NONE, "started succeeded", "queuing preparing succeeded", "succeeded"),
    ("failure while preparing", NONE, "started failed", "queuing preparing failed", "failed"),
    ("success", NONE, "started heartbeat succeeded", "queuing preparing running succeeded", "succeeded"),
    ("failure", NONE, "started heartbeat failed", "queuing preparing running failed", "failed"),
    ("timeout", NONE, "started heartbeat timeout", "queuing preparing running failed", "timeout"),
    ("timeout while preparing", NONE, "started timeout", "queuing preparing failed", "timeout"),
    # silence without a retry is a mark
    ("silence is a mark", NONE, "started heartbeat unresponsive", "queuing preparing running running", "unresponsive"),
    ("silence while preparing", NONE, "started unresponsive", "queuing preparing running", "unresponsive"),
    ("activity lifts the mark", NONE, "started unresponsive activity", "queuing preparing running running", "running"),
    (
        "a heartbeat does not",
        NONE,
        "started unresponsive heartbeat",
        "queuing preparing running running",
        "unresponsive",
    ),
    (
        "who was silent may succeed",
        NONE,
        "started unresponsive succeeded",
        "queuing preparing running succeeded",
        "succeeded",
    ),
    ("who was silent may fail", NONE, "started unresponsive failed", "queuing preparing running failed", "failed"),
    (
        "who was silent may time out",
        NONE,
        "started unresponsive timeout",
        "queuing preparing running failed",
        "timeout",
    ),
    ("who was silent may be lost", NONE, "started unresponsive lost", "queuing preparing running requeuing", "lost"),
    # a retry
    ("a failure that is retried", FAILED, "started failed", "queuing preparing requeuing", "failed"),
    ("a timeout that is retried", TIMEOUT, "started timeout", "queuing preparing requeuing", "timeout"),
    (
        "silence that is retried is an end",
        SILENT,
        "started unresponsive",
        "queuing preparing requeuing",
        "unresponsive",
    ),
    ("another reason is not retried", FAILED, "started timeout", "queuing preparing failed", "timeout"),
    (
        "the retry starts",
        FAILED,
        "started failed started@2",
        "queuing preparing requeuing preparing",
        "failed preparing",
    ),
    (
        "the retry succeeds",
        FAILED,
        "started failed started@2 succeeded@2",
        "queuing preparing requeuing preparing succeeded",
        "failed succeeded",
    ),
    (
        "attempts are used up",
        FAILED,
        "started failed started@2 failed@2",
        "queuing preparing requeuing preparing failed",
        "failed failed",
    ),
    # what has ended is not revived: the reference's rollout leaves its queue when a span comes late
    (
        "a retry is not undone by activity",
        FAILED,
        "started failed activity",
        "queuing preparing requeuing requeuing",
        "failed",
    ),
    ("nor by a heartbeat", FAILED, "started failed heartbeat", "queuing preparing requeuing requeuing", "failed"),
    (
        "a timeout is not revived",
        TIMEOUT,
        "started timeout activity",
        "queuing preparing requeuing requeuing",
        "timeout",
    ),
    (
        "nor silence that is retried",
        SILENT,
        "started unresponsive activity",
        "queuing preparing requeuing requeuing",
        "unresponsive",
    ),
    (
        "nor by its success",
        SILENT,
        "started unresponsive succeeded?",
        "queuing preparing requeuing requeuing",
        "unresponsive",
    ),
    # only the latest attempt moves the rollout
    (
        "an old attempt's sign",
        SILENT,
        "started unresponsive started@2 activity",
        "queuing preparing requeuing preparing preparing",
        "unresponsive preparing",
    ),
    (
        "an old attempt's end",
        NONE,
        "started started@2 failed?",
        "queuing preparing preparing preparing",
        "failed preparing",
    ),
    (
        "a final end closes from any attempt",
        NONE,
        "started started@2 succeeded!",
        "queuing preparing preparing succeeded",
        "succeeded preparing",
    ),
    # a lost delivery
    ("lost is no failure", NONE, "started lost", "queuing preparing requeuing", "lost"),
    ("the next delivery", NONE, "started lost started@1.2", "queuing preparing requeuing preparing", "lost preparing"),
    (
        "the lost one's end does not count",
        NONE,
        "started lost started@1.2 succeeded",
        "queuing preparing requeuing preparing preparing",
        "lost preparing",
    ),
    (
        "the next one's does",
        NONE,
        "started lost started@1.2 succeeded@1.2",
        "queuing preparing requeuing preparing succeeded",
        "lost succeeded",
    ),
    # cancelled
    ("cancelled while queuing", NONE, "cancelled@0!", "queuing cancelled", ""),
    ("cancelled while preparing", NONE, "started cancelled!", "queuing preparing cancelled", "cancelled"),
    (
        "cancelled while running",
        NONE,
        "started heartbeat cancelled!",
        "queuing preparing running cancelled",
        "cancelled",
    ),
    (
        "cancelled while requeuing",
        FAILED,
        "started failed cancelled@0!",
        "queuing preparing requeuing cancelled",
        "failed",
    ),
    ("cancelled while lost", NONE, "started lost cancelled@0!", "queuing preparing requeuing cancelled", "lost"),
    ("a request alone cancels nothing", NONE, "started cancel_requested@0", "queuing preparing preparing", "preparing"),
    # the end is the end: the reference starts attempts of finished rollouts
    ("two ends", NONE, "started succeeded failed", "queuing preparing succeeded succeeded", "succeeded"),
    ("crossing ends", NONE, "started timeout succeeded", "queuing preparing failed failed", "timeout"),
    (
        "a start after the end",
        NONE,
        "started succeeded started@2",
        "queuing preparing succeeded succeeded",
        "succeeded",
    ),
    (
        "a cancel after the end",
        NONE,
        "started succeeded cancelled@0!",
        "queuing preparing succeeded succeeded",
        "succeeded",
    ),
    ("activity after the end", NONE, "started failed activity", "queuing preparing failed failed", "failed"),
    # out of order
    ("an end before its start", NONE, "succeeded started", "queuing succeeded succeeded", "succeeded"),
    ("an end with a retry before its start", FAILED, "failed started", "queuing requeuing requeuing", "failed"),
    ("a sign before its start", NONE, "heartbeat started", "queuing queuing preparing", "preparing"),
    ("a repeated start", NONE, "started heartbeat started", "queuing preparing running running", "running"),
    ("given up before it started", NONE, "timeout@0!", "queuing failed", ""),
]


def event(text: str, config: TaskConfig) -> AttemptEvent:
    name, _, place = text.rstrip("!?").partition("@")
    attempt, _, delivery = place.partition(".")
    number = int(attempt or 1)
    final = not retry_follows(name, number, config.max_attempts, config.retry_condition)
    if text[-1] in "!?":
        final = text[-1] == "!"
    return AttemptEvent(
        rollout_id="ro",
        attempt_id=f"ro-{number}-{delivery or 1}" if number else None,
        attempt=number,
        delivery=int(delivery or 1),
        type=name,
        final=final and name in {*ENDS, "unresponsive"},
        task=TaskFacts(),
        at=0,
    )


@pytest.mark.parametrize(("config", "events", "statuses", "attempts"), [pytest.param(*r[1:], id=r[0]) for r in ROWS])
def test_transition(config: TaskConfig, events: str, statuses: str, attempts: str):
    rollout = from_task(Task(rollout_id="ro", input="1", config=config, enqueued_at=0), 0, 10)
    seen = [rollout.state.status]
    for offset, text in enumerate(events.split()):
        change = apply_event(rollout, event(text, config), offset, 1000 + offset)
        if change.retry:  # lifecycle's own Task comes back
            apply_task(rollout, Task(rollout_id="ro", input="1", attempt=2, enqueued_at=0), 1)
        seen.append(rollout.state.status)
    assert " ".join(seen) == statuses
    assert " ".join(a.status for a in rollout.state.attempts) == attempts
    state = rollout.state
    assert (state.ended_at is not None) == (state.status in ("succeeded", "failed", "cancelled"))
    assert all((a.ended_at is not None) == (a.status in ENDS) for a in state.attempts if a.status != "unresponsive")


def running(origin: str = "task") -> Rollout:
    facts = TaskFacts(origin=origin)
    rollout = from_facts("ro", facts, 10) if origin == "external" else from_task(task(), 0, 10)
    apply_event(rollout, event("started", NONE), 0, 1000)
    return rollout


def task(**more: object) -> Task:
    return Task(rollout_id="ro", input="1", config=NONE, enqueued_at=0, **more)  # type: ignore[arg-type]


def test_a_repeated_task_never_touches_a_running_rollout():
    rollout = from_task(task(resources_id="pinned", mode="train"), 0, 10)
    apply_event(rollout, event("started", NONE), 0, 1000)
    assert not apply_task(rollout, task(resources_id="other", mode="val"), 1).state
    state = rollout.state
    assert (state.status, state.resources_id, state.mode, state.task_offset) == ("preparing", "pinned", "train", 0)


def test_who_cancels():
    """lifecycle what nobody has in hand, the runner what it runs."""
    request = event("cancel_requested@0", NONE)
    queuing = from_task(task(), 0, 10)
    assert apply_event(queuing, request, 0, 1000).cancel
    assert not apply_event(running(), request, 1, 1001).cancel
    assert apply_event(running("external"), request, 1, 1001).cancel
    lost = running()
    apply_event(lost, event("lost", NONE), 1, 1001)
    assert apply_event(lost, request, 2, 1002).cancel
    asked_first = running()
    apply_event(asked_first, request, 1, 1001)
    change = apply_event(asked_first, event("lost", NONE), 2, 1002)
    assert change.cancel
    assert not change.retry


def test_times_are_the_logs_whatever_a_record_says():
    rollout = from_task(task(), 0, 10)
    year = 365 * 24 * 3600 * 1_000_000
    for offset, (name, at) in enumerate([("started", -year), ("heartbeat", year), ("succeeded!", -year)]):
        one = event(name, NONE)
        one.at = 1_700_000_000_000_000 + at
        apply_event(rollout, one, offset, 1000 + offset)
    (attempt,) = rollout.state.attempts
    assert (attempt.started_at, attempt.last_heartbeat_at, attempt.ended_at) == (1000, 1001, 1002)
    assert rollout.state.ended_at == 1002


def test_a_retry_may_start_and_fail_before_its_task_is_read():
    """No order holds between topics; a start tells where its Task stands."""
    config = TaskConfig(max_attempts=3, retry_condition=["failed"])
    rollout = from_task(Task(rollout_id="ro", input="1", config=config, enqueued_at=0), 0, 10)
    apply_event(rollout, event("started", config), 0, 1000)
    assert apply_event(rollout, event("failed", config), 1, 1001).task_offset == 0
    start = event("started@2", config)
    start.task = TaskFacts(offset=4)
    apply_event(rollout, start, 2, 1002)
    change = apply_event(rollout, event("failed@2", config), 3, 1003)
    assert (change.retry, change.task_offset) == (True, 4)
    assert not apply_task(rollout, Task(rollout_id="ro", input="1", attempt=2, enqueued_at=0), 4).state
    assert apply_task(rollout, Task(rollout_id="ro", input="1", attempt=3, enqueued_at=0), 5).state


def test_a_start_that_tells_no_offset_waits_for_its_task():
    rollout = from_task(Task(rollout_id="ro", input="1", config=FAILED, enqueued_at=0), 0, 10)
    for offset, text in enumerate(("started", "failed", "started@2")):
        apply_event(rollout, event(text, FAILED), offset, 1000 + offset)
    assert not apply_task(rollout, task(), 3).state  # repeated by its client
    assert apply_task(rollout, task(attempt=2), 4).state
    assert rollout.state.task_offset == 4
