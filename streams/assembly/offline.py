"""The assembler without Kafka: the same functions over a log in memory and a clock that is told to move.

For replaying recorded traces, for tests, and as the plainest account of what the Kafka loop does with each record.
"""

from collections import Counter

import msgspec

from headrace.schemas.records import AttemptEvent, Reward, Span, Task, TaskFacts, Trajectory
from headrace.streams.assembly.closing import Closing, Step
from headrace.streams.assembly.drop import LATE
from headrace.streams.assembly.recognise import is_model_call
from headrace.streams.assembly.records import Positions, RolloutRecords
from headrace.streams.assembly.segments import ends_the_rollout, segment, segment_of_reward
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble
from headrace.streams.assembly.values import span_attributes
from headrace.streams.ends import Verdict, is_end, retry_follows
from headrace.streams.task_facts import facts_of

UNKNOWN_TARGET = "unknown_target"
SESSION_IDLE_SECONDS = 600.0
FAR_BEYOND_SECONDS = 100_000.0


class OfflineRollout(msgspec.Struct):
    """A rollout between its first record and its last revision."""

    records: RolloutRecords
    closing: Closing | None = None
    limit: Positions | None = None  # set once closed
    trajectory: Trajectory | None = None
    external: bool = False
    assumed: bool = False  # no event has told the facts of the task
    last_activity: int = 0  # milliseconds

    @property
    def closed(self) -> bool:
        return self.trajectory is not None


class OfflineAssembler:
    """Takes records in the order of arrival; trajectories stand in `rollouts` once they are closed.

    The clock stands still but for `advance`. Arrival is the log's order.
    """

    def __init__(self, settings: AssemblySettings) -> None:
        self.settings = settings
        self.rollouts: dict[str, OfflineRollout] = {}
        self.tasks: dict[str, Task] = {}
        self.counters: Counter[str] = Counter()
        self.now = 0  # milliseconds
        self._next = 0  # one sequence of offsets, and of append times for the order
        self._segments: dict[str, int] = {}

    def add_task(self, task: Task) -> None:
        """Of several tasks with one id the first is the task; retries only repeat it."""
        self.tasks.setdefault(task.rollout_id, task)

    def add_event(self, event: AttemptEvent, *, judged: bool = True) -> None:
        """Take an attempt event. `judged` is false where nobody has set `final`: the task's retry rule does."""
        task = self.tasks.get(event.rollout_id)
        if not judged:
            config = task.config if task is not None else None
            event.final = config is None or not retry_follows(
                event.type, event.attempt, config.max_attempts, config.retry_condition
            )
        rollout = self._rollout(event.rollout_id)
        begun = bool(rollout.records.judge.attempts)
        if event.task is None and not begun and (event.type == "started" or is_end(event)):
            # Recorded traces may leave them to the Task.
            event.task = self._assumed_facts(event.rollout_id)
            rollout.assumed = True
        offset = self._offset()
        if rollout.records.add_event(event, offset, offset) is Verdict.CLOSES:
            rollout.closing = Closing(self.now, event.complete)
            self._settle(rollout)

    def add_span(self, span: Span) -> None:
        """Take a span. A trace that names no rollout is an external one at once; of a rollout id that nobody enqueued
        that is known once it was idle."""
        rollout = self._rollout(self._segment(span))
        offset = self._offset()
        if span.rollout_id == span.trace_id and not rollout.external and self._unknown(rollout):
            self._open_external(rollout)
        if not rollout.records.add_span(span, offset, offset):
            return
        rollout.last_activity = self.now
        if rollout.closed:
            if is_model_call(span, span_attributes(span)):
                self.counters[LATE] += 1
        elif rollout.external and span.parent_id is None:
            self._end_external(rollout)

    def add_reward(self, reward: Reward) -> None:
        """Take a reward. A late one makes a revision; one for a rollout that nobody knows is counted."""
        name = segment_of_reward(reward, self._segments.get(reward.rollout_id, 1))
        rollout = self.rollouts.get(name)
        if rollout is None:
            if reward.rollout_id not in self.tasks:
                self.counters[UNKNOWN_TARGET] += 1
                return
            rollout = self._rollout(name)
        offset = self._offset()
        new = rollout.records.add_reward(reward, offset, offset)
        if rollout.external and ends_the_rollout(reward):
            self._end_external(rollout)
        if not new or rollout.trajectory is None:
            return
        if rollout.limit is not None and reward.attempt_id in (None, rollout.trajectory.attempt_id):
            rollout.limit = Positions(rollout.limit.spans, self._next)
            rollout.trajectory = self._assemble(rollout, rollout.trajectory.revision + 1)

    def advance(self, seconds: float) -> None:
        """Move the clock and close what is due."""
        self.now += round(seconds * 1000)
        for rollout in list(self.rollouts.values()):
            if self.now - rollout.last_activity >= SESSION_IDLE_SECONDS * 1000:
                if self._unknown(rollout):
                    self._open_external(rollout)
                if rollout.external:
                    self._end_external(rollout)
            self._settle(rollout)

    def finish(self) -> None:
        """Move the clock far beyond every wait."""
        self.advance(FAR_BEYOND_SECONDS)
        self.advance(FAR_BEYOND_SECONDS)

    def _settle(self, rollout: OfflineRollout) -> None:
        closing = rollout.closing
        if closing is None or rollout.closed:
            return
        read = Positions(self._next, self._next)
        while True:
            step = closing.step(rollout.records, read, self.now, self.settings.settle_seconds)
            if step is Step.BARRIER:
                closing.set_barrier(read, rollout.records)
                continue
            if step is Step.CLOSE:
                rollout.limit = closing.barrier
                rollout.trajectory = self._assemble(rollout, 0)
            return

    def _assemble(self, rollout: OfflineRollout, revision: int) -> Trajectory:
        rollout_id = rollout.records.rollout_id
        if rollout.assumed:
            rollout.records.judge.facts = self._assumed_facts(rollout_id)
            rollout.external = rollout_id not in self.tasks
        return assemble(
            rollout.records,
            self.settings,
            assembled_at=self.now * 1000,
            limit=rollout.limit,
            revision=revision,
            counters=self.counters,
        )

    def _assumed_facts(self, rollout_id: str) -> TaskFacts:
        task = self.tasks.get(rollout_id)
        return facts_of(task) if task is not None else TaskFacts(origin="external")

    def _rollout(self, rollout_id: str) -> OfflineRollout:
        rollout = self.rollouts.get(rollout_id)
        if rollout is None:
            rollout = self.rollouts[rollout_id] = OfflineRollout(RolloutRecords(rollout_id), last_activity=self.now)
        return rollout

    def _offset(self) -> int:
        self._next += 1
        return self._next - 1

    def _current(self, rollout_id: str) -> str:
        return segment(rollout_id, self._segments.get(rollout_id, 1))

    def _segment(self, span: Span) -> str:
        """The segment a span belongs to; after the close of an external rollout a new trace opens the next one."""
        last = self._segments.get(span.rollout_id, 1)
        current = self.rollouts.get(self._current(span.rollout_id))
        if current is None or not (last > 1 or (current.external and current.closed)):
            return span.rollout_id
        for number in range(1, last + 1):
            earlier = segment(span.rollout_id, number)
            known = self.rollouts[earlier].records.spans.values()
            if any(other.record.trace_id == span.trace_id for other in known):
                return earlier
        if current.closed:
            self._segments[span.rollout_id] = last + 1
        return self._current(span.rollout_id)

    def _unknown(self, rollout: OfflineRollout) -> bool:
        """Whether nobody has enqueued or started the rollout, though spans of it came."""
        records = rollout.records
        return not records.judge.attempts and not rollout.closing and records.rollout_id not in self.tasks

    def _open_external(self, rollout: OfflineRollout) -> None:
        rollout.external = True
        rollout_id = rollout.records.rollout_id
        named = [s.record.attempt_id for s in rollout.records.spans.values() if s.record.attempt_id is not None]
        sessions = [s.record.session_id for s in rollout.records.spans.values() if s.record.session_id is not None]
        self.add_event(
            AttemptEvent(
                rollout_id=rollout_id,
                attempt_id=named[0] if named else f"{rollout_id}-1",
                type="started",
                task=TaskFacts(origin="external", session_id=sessions[0] if sessions else None),
                at=self.now * 1000,
            )
        )

    def _end_external(self, rollout: OfflineRollout) -> None:
        attempt = rollout.records.judge.latest
        if rollout.closing is not None or attempt is None:
            return
        self.add_event(
            AttemptEvent(
                rollout_id=rollout.records.rollout_id,
                attempt_id=attempt.attempt_id,
                attempt=attempt.attempt,
                type="succeeded",
                final=True,
                at=self.now * 1000,
            )
        )
