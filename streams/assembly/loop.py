"""The assembler as a processor of the transactional loop: attempts, spans, rewards in; triplets and assembled out."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import cast

from headrace.schemas.records import Assembled, AttemptEvent, LogPosition, Record, Reward, Span
from headrace.streams.assembly.barriers import Horizon, barriers_at
from headrace.streams.assembly.closed import CLOSED, Assembler, Closed, leave_out, leave_out_all
from headrace.streams.assembly.closing import Closing, Step
from headrace.streams.assembly.external import ORIGIN
from headrace.streams.assembly.late import Revisions
from headrace.streams.assembly.memory import OpenRollout, PartitionMemory
from headrace.streams.assembly.outside import ExternalRollouts
from headrace.streams.assembly.records import MEANT, LoggedReward, Positions, RolloutRecords
from headrace.streams.assembly.restoring import Restorer, state_of
from headrace.streams.assembly.segments import base_of, ends_the_rollout, number_of, pack_traces, unpack_traces
from headrace.streams.assembly.settings import AssemblySettings, settings_header
from headrace.streams.assembly.sources import SourceReader
from headrace.streams.ends import Verdict, begins, is_end
from headrace.streams.errors import BrokerUnavailableError, RecordTooLargeError
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.messages import MessageMaker, OutMessage
from headrace.streams.kafka.old_records import OldRecords
from headrace.streams.kafka.transactional import LogEntry, Output, Processor, TopicPartitionKey
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

TOO_LARGE = "too_large"
NOT_FINITE = "not_finite"
UNKNOWN_TARGET = "unknown_target"
LATE_AFTER_CLOSE = "late_after_close"


class AssemblyProcessor(Processor):
    """One Trajectory a closed rollout, and one more revision a late reward; each exactly once."""

    name = "assembler"
    topics = ("spans", "rewards", "attempts")  # what belongs to an attempt is read before its end
    gap_seconds = 0.03  # with the barrier, a fetch and the commit: a trajectory after some 30 ms
    fetch_pause_ms = 8

    def __init__(
        self,
        settings: Settings,
        worker_id: str,
        choices: AssemblySettings | None = None,
        log_reader: LogReader | None = None,
    ) -> None:
        super().__init__()
        self._choices = choices or AssemblySettings(settle_seconds=settings.settle.total_seconds())
        self._log = log_reader or LogReader(settings, f"{self.name}-{worker_id}")
        self._message = MessageMaker(settings, partitions=partial(self._log.count, "tasks"))
        self._sources = SourceReader(settings, self._log)
        self._assembler = Assembler(self._choices, self.count)
        self._headers = settings_header(self._choices)
        self._revisions = Revisions(settings, self._log, self._sources, self._assembler)
        self._restorer = Restorer(settings, self._log, self._sources)
        self._outside = ExternalRollouts(self._log, worker_id, settings.session_idle)
        self._old = OldRecords(self._log, "assembled", settings.retention)
        self._memories: dict[int, PartitionMemory] = {}
        self._written: list[Assembled] = []
        self._pending_barrier = False

    @property
    def memories(self) -> Mapping[int, PartitionMemory]:
        """What is known of each partition at hand."""
        return self._memories

    # -- partitions

    def restore(self, partitions: Sequence[int]) -> None:
        self._memories |= self._restorer.restore(partitions, self.refuse)
        self._old.take(partitions)

    def drop(self, partitions: Iterable[int]) -> None:
        gone = set(partitions)
        for partition in gone:
            self._memories.pop(partition, None)
        self._old.drop(gone)
        self._outside.drop(gone)
        self._written = []

    # -- reading

    def read(self, record: Record, entry: LogEntry) -> None:
        memory = self._memories[entry.partition]
        if isinstance(record, Span):
            self._read_span(memory, record, entry)
        elif isinstance(record, Reward):
            self._read_reward(memory, record, entry)
        else:
            self._read_event(memory, cast(AttemptEvent, record), entry)

    def _read_span(self, memory: PartitionMemory, span: Span, entry: LogEntry) -> None:
        self.count("spans")
        if memory.doubts(span):
            memory.doubtful.append((span, entry))
            return
        rollout = memory.rollout_of_span(span, entry)
        if rollout is None:
            self.count(LATE_AFTER_CLOSE)
        elif rollout.knows_span(entry.offset):
            return
        elif rollout.records.add_span(span, entry.offset, entry.at // 1000):
            self._outside.read_span(memory, rollout, span, entry)
        else:
            self.count("duplicate_spans")

    def _read_reward(self, memory: PartitionMemory, reward: Reward, entry: LogEntry) -> None:
        self.count("rewards")
        at = entry.at // 1000
        rollout_id = memory.segments.of_reward(reward)
        if not math.isfinite(reward.value):
            self.refuse(entry, NOT_FINITE, f"reward {reward.reward_id} is {reward.value}")
        elif memory.is_closed(rollout_id):
            if memory.doubts_before(reward):
                memory.doubtful.append((reward, entry))
            else:
                memory.late.setdefault(rollout_id, []).append(LoggedReward(reward, entry.offset, at))
        else:
            rollout = memory.rollout(rollout_id, entry)
            if rollout.knows_reward(entry.offset):
                return
            if rollout.records.add_reward(reward, entry.offset, at):
                self._outside.read_record(memory, rollout, entry)
            else:
                self.count("duplicate_rewards")
            if ends_the_rollout(reward):
                self._outside.read_end_asked(memory, rollout, entry)

    def _read_doubtful(self) -> None:
        """Reads what may belong to a next segment again, now with the traces of the segments before."""
        doubts = [memory for memory in self._memories.values() if memory.doubtful]
        places = {(memory.number, last): at for memory in doubts for last, at in memory.unread_traces().items()}
        former = self._revisions.former(places)
        for number, last in places:
            assembled = former.get((number, last))
            traces = unpack_traces(assembled.traces) if assembled is not None else {}
            self._memories[number].segments.remember(base_of(last), traces)
        for memory in doubts:
            for record, entry in memory.take_doubtful():
                self.read(record, entry)
            memory.in_order()

    def _read_event(self, memory: PartitionMemory, event: AttemptEvent, entry: LogEntry) -> None:
        self.count("events")
        if event.type != "started" and not is_end(event):
            return  # no trajectory tells of it
        rollout_id = event.rollout_id
        if memory.is_closed(rollout_id):
            self.count("events_of_closed")
            return
        if rollout_id not in memory.open and not begins(event):
            self.count("events_of_unknown")
            return
        rollout = memory.rollout(rollout_id, entry)
        verdict = rollout.records.add_event(event, entry.offset, entry.at // 1000)
        if verdict not in MEANT:
            return
        self._outside.read_event(memory, rollout, event, verdict, entry)
        if verdict is Verdict.CLOSES:
            rollout.closing = Closing.of(rollout.records)
            memory.closing[rollout_id] = rollout
            memory.waiting.discard(rollout_id)
        elif verdict is Verdict.COUNTS:
            memory.waiting.add(rollout_id)

    # -- closing

    @property
    def waiting(self) -> bool:
        return self._pending_barrier

    def advance(self, positions: Mapping[TopicPartitionKey, int], now: int) -> None:
        """Closes what has ended: asks for the barrier once for all that needs one, and looks who has reached it."""
        now_ms = now // 1000
        ask: dict[Horizon, list[OpenRollout]] = {}
        self._pending_barrier = self._outside.advance(self._memories.values(), positions, now)
        for memory in self._memories.values():
            if memory.closing:
                read = Positions(positions["spans", memory.number], positions["rewards", memory.number])
                far: Positions | None = None
                for rollout in list(memory.closing.values()):
                    barrier = rollout.closing.barrier if rollout.closing is not None else None
                    if barrier is not None and (barrier is far or not read.reaches(barrier)):
                        far = barrier  # shared by those of a batch: thousands, while a backlog is worked off
                        self._pending_barrier = True
                    elif self._step(memory, rollout, read, now_ms) is Step.BARRIER:
                        assert rollout.closing is not None
                        ask.setdefault((memory.number, rollout.closing.horizon(now_ms)), []).append(rollout)
        for horizon, barrier in barriers_at(self._log, ask).items():
            number = horizon[0]
            read = Positions(positions["spans", number], positions["rewards", number])
            for rollout in ask[horizon]:
                assert rollout.closing is not None
                rollout.closing.set_barrier(barrier, rollout.records)
                self._step(self._memories[number], rollout, read, now_ms)

    def _step(self, memory: PartitionMemory, rollout: OpenRollout, read: Positions, now_ms: int) -> Step:
        assert rollout.closing is not None
        step = rollout.closing.step(rollout.records, read, now_ms, self._choices.settle_seconds)
        if step is Step.CLOSE:
            del memory.closing[rollout.records.rollout_id]
            memory.done.append(rollout)
        elif rollout.closing.barrier is not None:
            self._pending_barrier = True
        return step

    # -- time

    def restart_timers(self, now: int) -> None:
        self._outside.restart_timers(now)

    def tick(self, now: int) -> None:
        memories = self._memories.values()
        self._outside.tick(memories, now)
        for memory in memories:
            memory.waiting.update(memory.open_too_long(now))
            if memory.closing or memory.unstarted:
                self._pending_barrier = True  # some may have settled
        if self._old.due(now):
            self._look_for_old(now)

    def _look_for_old(self, now: int) -> None:
        found: dict[int, list[tuple[str, int]]] = {}
        try:
            for message in self._old.look(now):
                if message.value() is not None and (key := message.key()) is not None:
                    found.setdefault(message.partition() or 0, []).append((key.decode(), message.offset() or 0))
        except BrokerUnavailableError as error:
            log.warning("old records of assembled stay for now: %s", error)
        for number, old in found.items():
            self.count("given_up", self._memories[number].expire(old))

    # -- writing

    @property
    def ready(self) -> bool:
        memories = self._memories.values()
        return self._outside.ready or any(m.done or m.waiting or m.late or m.removed or m.doubtful for m in memories)

    def collect(self, now: int) -> Output:
        self._read_doubtful()
        self._refuse_unknown()
        writing = [*self._collect_late(now), *self._collect_closed(now)]
        freed = self._collect_freed(now)
        messages = [self._sized(w) for w in writing]
        messages += map(self._message, self._outside.take())
        for memory in self._memories.values():
            messages += [self._message.tombstone(Assembled.SCHEMA, rollout_id) for rollout_id in memory.removed]
            memory.removed.clear()
        if not (writing or freed):
            return Output(messages)

        def follow(positions: list[LogPosition]) -> list[OutMessage]:
            closed = [w.assembled(at, now) for w, at in zip(writing, positions[: len(writing)], strict=True)]
            self._written = [*closed, *freed]
            return [self._message(assembled) for assembled in self._written]

        return Output(messages, follow)

    def committed(self, positions: list[LogPosition]) -> None:
        for assembled, position in zip(self._written, positions, strict=True):
            memory = self._memories[assembled.source.partition]
            if assembled.state == CLOSED:
                memory.closed.add(assembled.rollout_id, position.offset)
            elif (rollout := memory.open.get(assembled.rollout_id)) is not None:
                rollout.assembled = position.offset
        self._written = []

    def first_needed(self, topic: str, partition: int) -> int | None:
        return self._memories[partition].first_needed(topic)

    def _refuse_unknown(self) -> None:
        """Rewards of rollouts that nobody knows."""
        for memory, rollout in self._outside.unknown:
            unstarted, records = rollout.unstarted, rollout.records
            if unstarted is None:
                continue  # it was started meanwhile
            if records.spans:
                unstarted.decided = False
                continue
            offsets = [reward.offset for reward in records.rewards.values()]
            for entry in self._sources.entries("rewards", memory.number, offsets):
                self.refuse(entry, UNKNOWN_TARGET, f"nobody has started rollout {records.rollout_id}")
            memory.forget(records.rollout_id)
        self._outside.unknown.clear()

    def _collect_closed(self, now: int) -> list[Closed]:
        done = [(memory, rollout) for memory in self._memories.values() for rollout in memory.done]
        freed = [rollout for _, rollout in done if rollout.freed]
        if freed:
            self._reread(freed)
        written: list[Closed] = []
        for memory, rollout in done:
            records = rollout.records
            limit = rollout.closing.barrier if rollout.closing is not None else None
            trajectory = self._assembler(records, now, limit=limit)
            traces = memory.close_external(rollout, limit) if trajectory.origin == ORIGIN else b""
            reward_ids = [r.record.reward_id for r in records.rewards_before(limit)]
            written.append(Closed(trajectory, records.partition, reward_ids, traces))
            memory.forget(records.rollout_id)
            if limit is not None:
                self._past_the_barrier(memory, records, limit)
        for memory in self._memories.values():
            memory.done.clear()
        self.count("trajectories", len(written))
        return written

    def _past_the_barrier(self, memory: PartitionMemory, records: RolloutRecords, limit: Positions) -> None:
        """What was read already but stands beyond the barrier is late, like what is read later."""
        late = [reward for reward in records.rewards.values() if reward.offset >= limit.rewards]
        if late:
            memory.late.setdefault(records.rollout_id, []).extend(late)
        beyond = {span.offset: span.record for span in records.spans.values() if span.offset >= limit.spans}
        if beyond and memory.segments.has_closed(records.rollout_id):
            entries = self._sources.entries("spans", memory.number, beyond)
            memory.doubtful += [(beyond[entry.offset], entry) for entry in entries]
        else:
            self.count(LATE_AFTER_CLOSE, len(beyond))

    def _reread(self, rollouts: Sequence[OpenRollout]) -> None:
        """Brings back the records that were freed, in the log's order with those that came later."""
        sources = [rollout.source() for rollout in rollouts]
        found = self._sources.find(sources)
        for rollout, source in zip(rollouts, sources, strict=True):
            records = RolloutRecords(rollout.records.rollout_id, source.partition)
            self.count("source_missing", self._sources.add(records, source, found))
            if not records.judge.closed:  # its events are no longer kept
                records.judge = rollout.records.judge
            rollout.records = records

    def _collect_late(self, now: int) -> list[Closed]:
        late = {memory.number: memory.late for memory in self._memories.values() if memory.late}
        if not late:
            return []
        places = {
            (number, rollout_id): self._memories[number].closed.get(rollout_id) or 0
            for number, rewards in late.items()
            for rollout_id in rewards
        }
        revised = self._revisions.revise(late, places, now)
        for refusal in revised.refused:
            self.refuse(*refusal)
        for name, number in revised.counters.items():
            self.count(name, number)
        for number in late:
            self._memories[number].late = {}
        return revised.written

    def _collect_freed(self, now: int) -> list[Assembled]:
        freed: list[Assembled] = []
        for memory in self._memories.values():
            for rollout_id in list(memory.waiting):
                rollout = memory.open.get(rollout_id)
                if rollout is not None and rollout.closing is None:
                    latest = rollout.records.judge.latest
                    freed.append(
                        Assembled(
                            rollout_id=rollout_id,
                            state=state_of(latest),
                            attempt_id=latest.attempt_id if latest is not None else None,
                            segment=number_of(rollout_id),
                            traces=pack_traces(rollout.former),
                            source=rollout.free(),
                            at=now,
                        )
                    )
                    memory.release(rollout_id)
                memory.waiting.discard(rollout_id)
        return freed

    def _sized(self, closed: Closed) -> OutMessage:
        try:
            return self._message(closed.trajectory, self._headers)
        except RecordTooLargeError as error:
            log.error("%s: %s; its triplets are left out", closed.trajectory.rollout_id, error)
            self.count(TOO_LARGE)
            leave_out(closed.trajectory, TOO_LARGE)
        try:
            return self._message(closed.trajectory, self._headers)
        except RecordTooLargeError:
            leave_out_all(closed.trajectory)
            return self._message(closed.trajectory, self._headers)
