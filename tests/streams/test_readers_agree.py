"""The same records give the same states in every reader, whatever the order, the repeats and the crashes."""

from collections import Counter
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, Reward, RolloutState, Span, Task, TaskConfig, TaskFacts
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.ends import EndJudge, judge
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.lifecycle.machine import TERMINAL, fold
from headrace.streams.settings import load_settings
from headrace.streams.task_facts import facts_of
from tests.streams.memory_log import MemoryLog, MemoryLoop, settle

NO_TIMER = timedelta(days=300)
SETTINGS = load_settings(prefix="t", partitions=1, lease=NO_TIMER, max_open=NO_TIMER)
TASKS, OUTSIDE, STRAY = ("t0", "t1", "t2"), ("x0",), "stray"
ENDS = ("succeeded", "failed", "timeout", "lost", "cancelled", "unresponsive")


class World:
    """The log with lifecycle and assembler, and what writers know."""

    def __init__(self) -> None:
        self.log = MemoryLog(SETTINGS)
        self.lifecycle = MemoryLoop(self.log, lambda: LifecycleProcessor(SETTINGS, "l", self.log))
        self.assembler = MemoryLoop(self.log, lambda: AssemblyProcessor(SETTINGS, "a", log_reader=self.log))
        self.tasks: dict[str, Task] = {}
        self.started: set[str] = set()
        self.begun: set[str] = set()

    def offset_of(self, rollout_id: str, attempt: int) -> int | None:
        """Where the Task of an attempt stands: nothing happens to an attempt before."""
        tasks = [m for m in self.log.messages("tasks") if m.key() == rollout_id.encode()]
        return next((m.place for m in tasks if self.log.decode(m).attempt == attempt), None)

    def may_begin(self, rollout_id: str, attempt: int, delivery: int) -> bool:
        """Whether a delivery is under way, or may begin: the ones before it were lost, and no retry has begun."""
        verdict = judged(self.log).get(rollout_id)
        if verdict is None or f"{rollout_id}-{attempt}-{delivery}" in verdict.attempts:
            return True
        others = verdict.attempts.values()
        over = any(a.attempt == attempt and a.end is not None and a.end.type != "lost" for a in others)
        return not over and all(a.attempt <= attempt for a in others)

    def do(self, step: tuple[Any, ...]) -> None:
        """One step; one that no writer would take then is left out."""
        kind, *args = step
        getattr(self, f"_{kind}")(*args)

    def _task(self, rollout_id: str, max_attempts: int) -> None:
        task = Task(
            rollout_id=rollout_id,
            input="1",
            group_id="g",
            config=TaskConfig(max_attempts=max_attempts, retry_condition=["failed"]),
            enqueued_at=0,
        )
        self.tasks.setdefault(rollout_id, task)
        self.log.write(task)

    def _event(self, rollout_id: str, type_: str, attempt: int, delivery: int, final: bool) -> None:
        offset = self.offset_of(rollout_id, attempt)
        if rollout_id != STRAY and (offset is None or not self.may_begin(rollout_id, attempt, delivery)):
            return
        task = self.tasks.get(rollout_id)
        begun = rollout_id in self.begun
        if type_ == "started" or type_ in ENDS:
            self.begun.add(rollout_id)
        if type_ == "started":
            self.started.add(rollout_id)
        event = AttemptEvent(
            rollout_id=rollout_id,
            attempt_id=None if type_ == "cancel_requested" else f"{rollout_id}-{attempt}-{delivery}",
            attempt=attempt,
            delivery=delivery,
            type=type_,
            final=final and type_ in ENDS and type_ != "lost",
            complete=True,
            task=facts_of(task, offset) if task is not None and (type_ == "started" or not begun) else None,
            at=0,
        )
        self.log.write(event)

    def _span(self, rollout_id: str, number: int) -> None:
        if rollout_id in OUTSIDE or rollout_id in self.started:
            self.log.write(span(rollout_id, number))

    def _reward(self, rollout_id: str, number: int) -> None:
        if rollout_id in OUTSIDE or rollout_id in self.started:
            self.log.write(reward(rollout_id, number))

    def _life(self, rollout_id: str, attempt: int, delivery: int, end: str, final: bool) -> None:
        """A delivery as a runner writes it."""
        self._event(rollout_id, "started", attempt, delivery, False)
        self._span(rollout_id, attempt)
        self._reward(rollout_id, attempt)
        self._event(rollout_id, end, attempt, delivery, final)

    def _turn(self, name: str, most: int, crash: str) -> None:
        loop = self.lifecycle if name == "lifecycle" else self.assembler
        loop.read(most)
        loop.write(crash=crash)

    def _both(self) -> None:
        for loop in (self.lifecycle, self.assembler, self.lifecycle):
            loop.turn()

    def _wait(self, milliseconds: int) -> None:
        self.log.now_ms += milliseconds


def span(rollout_id: str, number: int) -> Span:
    return Span(rollout_id=rollout_id, source="otlp", trace_id="t", span_id=f"s{number}", name="chat", start=1, end=2)


def reward(rollout_id: str, number: int) -> Reward:
    return Reward(
        rollout_id=rollout_id, reward_id=f"r{number}", primary=True, value=float(number), source="agent", at=0
    )


SMALL = st.integers(1, 2)
TASK_ID = st.sampled_from(TASKS)
TURNS = st.tuples(
    st.just("turn"),
    st.sampled_from(("lifecycle", "assembler")),
    st.sampled_from((1, 3, 100)),
    st.sampled_from(("", "", "before", "within")),
)
LIFE = st.tuples(st.just("life"), TASK_ID, SMALL, SMALL, st.sampled_from(ENDS), st.booleans())
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("task"), TASK_ID, st.integers(1, 3)),
        LIFE,
        LIFE,
        st.tuples(
            st.just("event"),
            st.sampled_from((*TASKS, STRAY)),
            st.sampled_from(("started", "heartbeat", "activity", "cancel_requested", *ENDS)),
            SMALL,
            SMALL,
            st.booleans(),
        ),
        st.tuples(st.sampled_from(("span", "reward")), st.sampled_from((*TASKS, *OUTSIDE)), st.integers(0, 3)),
        TURNS,
        TURNS,
        st.just(("both",)),
        st.tuples(st.just("wait"), st.sampled_from((1, 1500, 61_000))),
    ),
    min_size=8,
    max_size=40,
)


def judged(log: MemoryLog) -> dict[str, EndJudge]:
    """The verdict on each rollout, as a runner comes to it."""
    events: dict[str, list[Any]] = {}
    for m in log.messages("attempts"):
        event: Any = log.decode(m)
        events.setdefault(event.rollout_id, []).append((m.offset(), event))
    return {rollout_id: judge(found) for rollout_id, found in events.items()}


def folded(log: MemoryLog) -> dict[str, RolloutState]:
    """Lifecycle's machine over the topics as they are."""
    tasks = [(m.offset(), m.timestamp()[1] * 1000, log.decode(m)) for m in log.messages("tasks")]
    events = [(m.offset(), m.timestamp()[1] * 1000, log.decode(m)) for m in log.messages("attempts")]
    return fold(tasks, events)


@hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_every_reader_comes_to_the_same_states(steps: list[tuple[Any, ...]]):
    world = World()
    log = world.log
    for rollout_id, max_attempts in (("t0", 1), ("t1", 3)):
        world.do(("task", rollout_id, max_attempts))
    for step in steps:
        world.do(step)
    settle(world.lifecycle, world.assembler)

    states = log.last("rollouts")
    verdicts = judged(log)
    assert states == {r: s for r, s in folded(log).items() if r != STRAY}
    assert set(states) >= set(world.tasks)
    closed = {r for r, verdict in verdicts.items() if verdict.closed}
    assert closed == {r for r, state in states.items() if state.status in TERMINAL}

    trajectories = log.records("triplets")
    assert Counter((t.rollout_id, t.revision) for t in trajectories) == Counter(
        {(t.rollout_id, t.revision): 1 for t in trajectories}
    )
    assert {t.rollout_id for t in trajectories if t.revision == 0} == closed
    for t in trajectories:
        verdict = verdicts[t.rollout_id]
        assert verdict.closing is not None
        chosen = verdict.chosen
        assert t.attempt_id == (chosen.attempt_id if chosen is not None else None)
        assert t.status == (chosen.end.type if chosen is not None and chosen.end is not None else verdict.closing.type)
        assert t.group_id == ("g" if t.rollout_id in TASKS and verdict.facts is not None else None)
    places = {m.offset(): log.decode(m) for m in log.messages("triplets")}
    refused = {key for reason, key in log.reasons() if reason == "unknown_target"}
    for rollout_id, memory in log.last("assembled").items():
        assert (memory.state == "closed") == (rollout_id in closed)
        if memory.state == "closed":
            assert places[memory.trajectory.offset].rollout_id == rollout_id
            assert places[memory.trajectory.offset].revision == memory.revision
            given = {r.reward_id for r in log.records("rewards") if r.rollout_id == rollout_id}
            assert rollout_id in refused or set(memory.reward_ids) == given
            assert len(memory.reward_ids) == len(set(memory.reward_ids))

    assert all(state.status in TERMINAL for rollout_id, state in states.items() if rollout_id in OUTSIDE)
    letters = Counter(log.reasons())
    assert all(reason in ("unknown_rollout", "unknown_target") for reason, _ in letters)
    strays = sum(m.key() == STRAY.encode() for m in log.messages("attempts"))
    assert letters["unknown_rollout", STRAY] == strays


ANY_EVENTS = st.builds(
    AttemptEvent,
    rollout_id=st.sampled_from(("r0", "r1")),
    attempt_id=st.sampled_from(("1", "1", "2", None)),
    attempt=SMALL,
    delivery=SMALL,
    type=st.sampled_from(("started", "heartbeat", "activity", "cancel_requested", *ENDS)),
    final=st.booleans(),
    complete=st.booleans(),
    task=st.sampled_from(
        (None, None, TaskFacts(group_id="g"), TaskFacts(offset=0, group_id="g"), TaskFacts(origin="external"))
    ),
    at=st.just(0),
)
ANY_TASKS = st.builds(
    Task,
    rollout_id=st.sampled_from(("r0", "r1")),
    input=st.just("1"),
    group_id=st.just("g"),
    attempt=SMALL,
    config=st.builds(TaskConfig, max_attempts=st.integers(1, 3), retry_condition=st.just(["failed"])),
    enqueued_at=st.just(0),
)
ANY_STEPS = st.lists(
    st.one_of(
        ANY_EVENTS,
        ANY_EVENTS,
        ANY_TASKS,
        st.builds(span, st.sampled_from(("r0", "r1")), SMALL),
        st.builds(reward, st.sampled_from(("r0", "r1")), SMALL),
        TURNS,
        st.sampled_from((1, 1500, 61_000)),
    ),
    max_size=30,
)


def any_event(type_: str, *, final: bool = True, task: TaskFacts | None = None, attempt_id: str | None = "1") -> Any:
    return AttemptEvent(rollout_id="r0", attempt_id=attempt_id, type=type_, final=final, task=task, at=0)


@example([any_event("succeeded")])
@example([any_event("cancelled", attempt_id=None)])
@example([any_event("started"), any_event("succeeded")])
@example([any_event("heartbeat", task=TaskFacts()), any_event("succeeded")])
@example([Task(rollout_id="r0", input="1", enqueued_at=0), any_event("succeeded")])
@example([any_event("succeeded"), Task(rollout_id="r0", input="1", enqueued_at=0), any_event("started")])
@hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANY_STEPS)
def test_a_terminal_state_is_a_trajectory_whatever_was_written(steps: list[Any]):
    world = World()
    log = world.log
    for step in steps:
        if isinstance(step, tuple):
            world.do(step)  # type: ignore[arg-type]
        elif isinstance(step, int):
            log.now_ms += step
        else:
            log.write(step)
    settle(world.lifecycle, world.assembler)

    states = {r: s for r, s in log.last("rollouts").items() if s.status in TERMINAL}
    trajectories = {t.rollout_id: t for t in log.records("triplets") if t.revision == 0}
    assert len(trajectories) == sum(t.revision == 0 for t in log.records("triplets"))
    assert trajectories.keys() == states.keys()
    assert trajectories.keys() == {r for r, verdict in judged(log).items() if verdict.closed}
