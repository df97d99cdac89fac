"""The external rollouts of the partitions at hand: who is unstarted, who has been idle, and what is to be written."""

from collections.abc import Collection, Mapping
from datetime import timedelta

from headrace.schemas.records import AttemptEvent, Span
from headrace.streams.assembly.external import (
    ACTIVITY_SECONDS,
    ORIGIN,
    Step,
    Unstarted,
    activity_of,
    end_of,
    ends_the_trace,
    start_of,
)
from headrace.streams.assembly.memory import OpenRollout, PartitionMemory
from headrace.streams.ends import Verdict
from headrace.streams.kafka.log_reader import LogReader, Partition
from headrace.streams.kafka.transactional import LogEntry


class ExternalRollouts:
    """Keeps `unstarted` and `external` of the memories, and collects events.

    Attributes:
        unknown: rollouts of which only rewards came: nobody knows them.
    """

    def __init__(self, log: LogReader, worker_id: str, idle: timedelta) -> None:
        self._log = log
        self._worker_id = worker_id
        self._idle = int(idle.total_seconds() * 1e6)
        self._since = 0
        self._due: list[tuple[PartitionMemory, OpenRollout, AttemptEvent]] = []
        self.unknown: list[tuple[PartitionMemory, OpenRollout]] = []

    def restart_timers(self, now: int) -> None:
        """Idle times begin anew."""
        self._since = now

    def drop(self, partitions: Collection[int]) -> None:
        """Forgets what was to be written for partitions."""
        self._due = [due for due in self._due if due[0].number not in partitions]
        self.unknown = [u for u in self.unknown if u[0].number not in partitions]

    @property
    def ready(self) -> bool:
        """Whether there is something to write or to refuse."""
        return bool(self._due or self.unknown)

    def take(self) -> list[AttemptEvent]:
        """The events to be written, but for those of rollouts that were found ended meanwhile."""
        due, self._due = self._due, []
        return [event for _, rollout, event in due if rollout.closing is None]

    # -- what is read

    def read_span(self, memory: PartitionMemory, rollout: OpenRollout, span: Span, entry: LogEntry) -> None:
        """A new span of an open rollout."""
        self.read_record(memory, rollout, entry)
        if ends_the_trace(span):
            rollout.root_status = span.status.code
        if rollout.records.rollout_id in memory.external:
            self._alive(memory, rollout, entry.at)

    def read_record(self, memory: PartitionMemory, rollout: OpenRollout, entry: LogEntry) -> None:
        """A new span or reward of an open rollout."""
        rollout.seen_at = entry.at
        if rollout.unstarted is None and not rollout.records.judge.attempts and rollout.closing is None:
            rollout.unstarted = Unstarted(entry.at)
            memory.unstarted[rollout.records.rollout_id] = rollout

    def read_end_asked(self, memory: PartitionMemory, rollout: OpenRollout, entry: LogEntry) -> None:
        """Feedback of an open rollout that says that nothing more comes."""
        rollout.end_asked = True
        if rollout.records.rollout_id in memory.external:
            self._end(memory, rollout, entry.at)

    def read_event(
        self, memory: PartitionMemory, rollout: OpenRollout, event: AttemptEvent, verdict: Verdict, entry: LogEntry
    ) -> None:
        """An event that counts."""
        rollout_id = event.rollout_id
        if rollout.unstarted is not None:
            rollout.unstarted = None
            memory.unstarted.pop(rollout_id, None)
        if verdict is Verdict.CLOSES:
            memory.external.pop(rollout_id, None)
        elif verdict is Verdict.STARTED and event.task is not None and event.task.origin == ORIGIN:
            memory.external[rollout_id] = rollout
            self._alive(memory, rollout, entry.at)

    def _alive(self, memory: PartitionMemory, rollout: OpenRollout, now: int) -> None:
        if rollout.root_status is not None or rollout.end_asked:
            self._end(memory, rollout, now)
        elif rollout.seen_at and now - rollout.signed_at >= ACTIVITY_SECONDS * 1e6:
            rollout.signed_at = now
            self._due.append((memory, rollout, activity_of(rollout.records, self._worker_id, now)))

    def _end(self, memory: PartitionMemory, rollout: OpenRollout, now: int) -> None:
        if not rollout.ending:
            rollout.ending = True
            end = end_of(rollout.records, rollout.root_status, self._worker_id, now)
            self._due.append((memory, rollout, end))

    # -- what time tells

    def tick(self, memories: Collection[PartitionMemory], now: int) -> None:
        """Ends what has been idle for too long."""
        for memory in memories:
            for rollout in memory.external.values():
                if now - max(rollout.seen_at, self._since) > self._idle:
                    self._end(memory, rollout, now)

    def advance(self, memories: Collection[PartitionMemory], positions: Mapping[Partition, int], now: int) -> bool:
        """Decides who is external, asking once for all ends that are needed; whether positions are waited for."""
        ask: dict[int, list[Unstarted]] = {}
        for memory in memories:
            for rollout in memory.unstarted.values():
                if self._step(memory, rollout, positions, now) is Step.BARRIER and rollout.unstarted is not None:
                    ask.setdefault(memory.number, []).append(rollout.unstarted)
        if ask:
            ends = self._log.ends([(topic, number) for number in ask for topic in ("attempts", "spans")])
            for number, unstarted in ask.items():
                for one in unstarted:
                    one.attempts, one.spans = ends["attempts", number], ends["spans", number]
            for memory in memories:
                for rollout in memory.unstarted.values():
                    self._step(memory, rollout, positions, now)
        return any(
            rollout.unstarted is not None and rollout.unstarted.attempts >= 0 and not rollout.unstarted.decided
            for memory in memories
            for rollout in memory.unstarted.values()
        )

    def _step(
        self, memory: PartitionMemory, rollout: OpenRollout, positions: Mapping[Partition, int], now: int
    ) -> Step:
        assert rollout.unstarted is not None
        step = rollout.unstarted.step(positions["attempts", memory.number], positions["spans", memory.number], now)
        if step is Step.DECIDE:
            rollout.unstarted.decided = True
            if rollout.records.spans:
                self._due.append((memory, rollout, start_of(rollout.records, self._worker_id, now)))
            else:
                self.unknown.append((memory, rollout))
        return step
