"""The state machine of rollouts and attempts: a pure function of the records of tasks and attempts.

States and transitions are Agent Lightning's store's. A rollout goes queuing -> preparing -> running -> succeeded or
failed; requeuing where a retry follows or a delivery was lost; cancelled by an event of that type. An attempt is
preparing until its first heartbeat, activity or end. Which ends count is `headrace.streams.ends`'s rule.

Times are append times of the log in microseconds, so the same log gives the same states.
"""

from collections.abc import Iterable

import msgspec

from headrace.schemas.records import AttemptEvent, AttemptState, RolloutState, Task, TaskFacts
from headrace.streams.ends import Attempt, EndJudge, Verdict, begins

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
"""Statuses of a rollout that nothing changes any more."""
WAITING = frozenset({"queuing", "requeuing"})
"""Statuses of a rollout that no runner has in hand."""
CLOSING_STATUS = {"succeeded": "succeeded", "cancelled": "cancelled"}  # every other final end: failed
EXTERNAL = "external"
"""Origin of rollouts that nobody enqueued: no runner has them in hand."""


class Rollout(msgspec.Struct):
    """A rollout as the log has it so far: the state that is published, and the judge of its ends."""

    state: RolloutState
    judge: EndJudge = msgspec.field(default_factory=EndJudge)

    @property
    def terminal(self) -> bool:
        return self.state.status in TERMINAL

    @property
    def live(self) -> AttemptState | None:
        """The latest attempt, if it has not ended."""
        latest = self.latest
        return latest if latest is not None and latest.ended_at is None else None

    @property
    def latest(self) -> AttemptState | None:
        """The attempt with the highest (attempt, delivery, offset)."""
        attempts = self.state.attempts
        if len(attempts) < 2:
            return attempts[0] if attempts else None
        return max(enumerate(attempts), key=lambda a: (a[1].attempt, a[1].delivery, a[0]))[1]


class Change(msgspec.Struct, frozen=True, gc=False):
    """What a record did to its rollout.

    Attributes:
        state: a transition that followers want to see.
        sign: only a time of the last heartbeat or activity.
        retry: the next attempt has to be enqueued (`task_offset` is that of the task which ran).
        cancel: a cancel was asked for, and no runner has the rollout in hand.
        untold: nothing; it should have told the facts of the task.
    """

    state: bool = False
    sign: bool = False
    retry: bool = False
    cancel: bool = False
    untold: bool = False
    task_offset: int | None = None


NOTHING = Change()
STATE = Change(state=True)
SIGN = Change(sign=True)
UNTOLD = Change(untold=True)


def from_task(task: Task, offset: int, at: int) -> Rollout:
    """The rollout of the first Task that is read of it."""
    state = RolloutState(
        rollout_id=task.rollout_id,
        status="queuing",
        mode=task.mode,
        resources_id=task.resources_id,
        config=task.config,
        metadata=task.metadata,
        task_offset=offset,
        group_id=task.group_id,
        group_size=task.group_size,
        sample_index=task.sample_index,
        run_id=task.run_id,
        enqueued_at=at,
    )
    state.applied.tasks = offset
    return Rollout(state)


def from_facts(rollout_id: str, facts: TaskFacts, at: int) -> Rollout:
    """The rollout of an event that carries the facts of a task which nobody enqueued."""
    return Rollout(
        RolloutState(
            rollout_id=rollout_id,
            status="queuing",
            mode=facts.mode,
            resources_id=facts.resources_id,
            task_offset=facts.offset,
            group_id=facts.group_id,
            group_size=facts.group_size,
            sample_index=facts.sample_index,
            run_id=facts.run_id,
            origin=facts.origin,
            enqueued_at=at,
        )
    )


def apply_task(rollout: Rollout, task: Task, offset: int) -> Change:
    """Folds a further Task of a known rollout: the retry that is waited for, or one that is not the task."""
    state = rollout.state
    if offset <= state.applied.tasks or state.task_offset is not None or rollout.terminal:
        return NOTHING
    if task.attempt != _awaited(rollout.latest):
        return NOTHING
    state.task_offset = state.applied.tasks = offset
    return STATE


def _awaited(latest: AttemptState | None) -> int:
    """The attempt whose Task a rollout without one waits for: it may have started before its Task is read."""
    if latest is None:
        return 1
    over = latest.ended_at is not None and latest.status != "lost"
    return latest.attempt + 1 if over else latest.attempt


def apply_event(rollout: Rollout, event: AttemptEvent, offset: int, at: int) -> Change:
    """Folds an attempt event."""
    if rollout.terminal:
        return NOTHING
    cancelled_before = rollout.judge.cancel_requested_at is not None
    verdict = rollout.judge.read(event, offset)
    if verdict is Verdict.IGNORED:
        return NOTHING
    if verdict is Verdict.UNTOLD:
        return UNTOLD
    if verdict is Verdict.STARTED:
        change = _started(rollout, event, at)
    elif verdict is Verdict.SIGN:
        change = _sign(rollout, event, at, cancelled_before)
    else:
        change = _ended(rollout, event, at, verdict is Verdict.CLOSES)
    if change is not NOTHING:
        rollout.state.applied.attempts = offset
    return change


def _attempt(rollout: Rollout, attempt_id: str | None) -> AttemptState | None:
    if attempt_id is None:
        return None
    for attempt in reversed(rollout.state.attempts):
        if attempt.attempt_id == attempt_id:
            return attempt
    return None


def _started(rollout: Rollout, event: AttemptEvent, at: int) -> Change:
    attempt = AttemptState(
        attempt_id=event.attempt_id,
        attempt=event.attempt,
        delivery=event.delivery,
        status="preparing",
        worker_id=event.worker_id,
        started_at=at,
    )
    rollout.state.attempts = [*rollout.state.attempts, attempt]
    if rollout.latest is attempt:
        state = rollout.state
        state.status = "preparing"
        if event.task is not None and event.task.offset is not None:
            state.task_offset = event.task.offset
            state.applied.tasks = max(state.applied.tasks, event.task.offset)
    return STATE


def _sign(rollout: Rollout, event: AttemptEvent, at: int, cancelled_before: bool) -> Change:
    state = rollout.state
    if event.type == "cancel_requested":
        if cancelled_before:
            return NOTHING
        state.cancel_requested_at = at
        nobody_runs_it = state.status in WAITING or state.origin == EXTERNAL
        return Change(state=True, cancel=nobody_runs_it, task_offset=state.task_offset)
    attempt = _attempt(rollout, event.attempt_id)
    if attempt is None or attempt.ended_at is not None:
        return NOTHING
    before = attempt.status
    if event.type == "unresponsive":
        attempt.status = "unresponsive"
    elif event.type == "activity":
        attempt.last_activity_at = at
        attempt.status = "running"
    elif event.type == "heartbeat":
        attempt.last_heartbeat_at = at
        if before == "preparing":
            attempt.status = "running"
    else:
        return NOTHING
    if attempt.worker_id is None:
        attempt.worker_id = event.worker_id
    if attempt.status == before:
        return SIGN
    if rollout.latest is attempt:
        state.status = "running"
    return STATE


def _ended(rollout: Rollout, event: AttemptEvent, at: int, closes: bool) -> Change:
    state = rollout.state
    attempt = _attempt(rollout, event.attempt_id)
    if attempt is None and event.attempt_id is not None:
        attempt = AttemptState(
            attempt_id=event.attempt_id,
            attempt=event.attempt,
            delivery=event.delivery,
            status=event.type,
            worker_id=event.worker_id,
        )
        state.attempts = [*state.attempts, attempt]
    if attempt is not None:
        attempt.status = event.type
        attempt.ended_at = at
        attempt.error = event.error
    if closes:
        state.status = CLOSING_STATUS.get(event.type, "failed")
        state.ended_at = at
        return STATE
    if attempt is None or rollout.latest is not attempt:
        return STATE
    state.status = "requeuing"
    task_offset = state.task_offset
    if state.cancel_requested_at is not None:
        return Change(state=True, cancel=True, task_offset=task_offset)
    if event.type == "lost":  # the runner that owns the partition starts the same task again
        return STATE
    state.task_offset = None  # until the retry's Task is read back
    return Change(state=True, retry=True, task_offset=task_offset)


def restored(state: RolloutState) -> Rollout:
    """The rollout of a state that was published, as it was when that was written."""
    judge = EndJudge(last_offset=state.applied.attempts, cancel_requested_at=state.cancel_requested_at)
    for index, a in enumerate(state.attempts):
        if a.attempt_id is None:
            continue
        attempt = Attempt(
            attempt_id=a.attempt_id,
            attempt=a.attempt,
            delivery=a.delivery,
            offset=index - len(state.attempts),  # before every offset that is still to come, in the order they came
            unresponsive=a.status == "unresponsive" and a.ended_at is None,
        )
        if a.started_at is not None:
            attempt.started = _event(state, a, "started", a.started_at)
        if a.ended_at is not None:
            attempt.end = _event(state, a, a.status, a.ended_at)
        judge.attempts[a.attempt_id] = attempt
    return Rollout(state, judge)


def _event(state: RolloutState, a: AttemptState, type_: str, at: int) -> AttemptEvent:
    return AttemptEvent(
        rollout_id=state.rollout_id,
        attempt_id=a.attempt_id,
        attempt=a.attempt,
        delivery=a.delivery,
        type=type_,
        worker_id=a.worker_id,
        error=a.error,
        at=at,
    )


def fold(
    tasks: Iterable[tuple[int, int, Task]], events: Iterable[tuple[int, int, AttemptEvent]]
) -> dict[str, RolloutState]:
    """The states of all rollouts of one partition: (offset, append time, record) of its tasks and its attempts."""
    rollouts: dict[str, Rollout] = {}
    later: list[tuple[int, Task]] = []
    for offset, at, task in tasks:
        if task.rollout_id in rollouts:
            later.append((offset, task))
        else:
            rollouts[task.rollout_id] = from_task(task, offset, at)
    retries: dict[str, list[tuple[int, Task]]] = {}
    for offset, task in later:
        retries.setdefault(task.rollout_id, []).append((offset, task))
    for offset, at, event in events:
        rollout = rollouts.get(event.rollout_id)
        if rollout is None:
            if event.task is None or not begins(event):
                continue
            rollout = rollouts[event.rollout_id] = from_facts(event.rollout_id, event.task, at)
        change = apply_event(rollout, event, offset, at)
        if change.retry:
            for task_offset, task in retries.get(event.rollout_id, []):
                apply_task(rollout, task, task_offset)
    return {rollout_id: rollout.state for rollout_id, rollout in rollouts.items()}
