"""The assembler as a processor of the transactional loop: attempts, spans, rewards in; triplets and assembled out."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from headrace.schemas.records import Assembled, AttemptEvent, LogPosition, Record, Reward, Span
from headrace.streams.assembly.closed import CLOSED, Assembler, Closed, leave_out
from headrace.streams.assembly.closing import Closing, Step
from headrace.streams.assembly.late import Revisions
from headrace.streams.assembly.memory import OpenRollout, PartitionMemory, restored
from headrace.streams.assembly.records import LoggedReward, Positions, RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.sources import SourceReader
from headrace.streams.codec import Codec
from headrace.streams.ends import Verdict
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.messages import MessageMaker, OutMessage
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.kafka.transactional import LogEntry, Output, Processor, TopicPartitionKey
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

OPEN, WAITING = "open", "waiting"
TOO_LARGE = "too_large"
NOT_FINITE = "not_finite"
LATE_AFTER_CLOSE = "late_after_close"


class AssemblyProcessor(Processor):
    """One Trajectory a closed rollout, and one more revision a late reward; each exactly once."""

    name = "assembler"
    topics = ("spans", "rewards", "attempts")  # what belongs to an attempt is read before its end
    gap_seconds = 0.03  # with the barrier, a fetch and the commit: a trajectory after some 30 ms
    fetch_pause_ms = 8

    def __init__(self, settings: Settings, worker_id: str, choices: AssemblySettings | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._choices = choices or AssemblySettings(settle_seconds=settings.settle.total_seconds())
        self._message = MessageMaker(settings)
        self._codec = Codec(settings)
        self._admin = make_admin(settings, f"{self.name}-{worker_id}")
        self._sources = SourceReader(settings, f"{self.name}-{worker_id}")
        self._assembler = Assembler(self._choices, self.count)
        self._revisions = Revisions(settings, self._sources, self._assembler)
        self._memories: dict[int, PartitionMemory] = {}
        self._written: list[Assembled] = []
        self._pending_barrier = False

    # -- partitions

    def restore(self, partitions: Sequence[int]) -> None:
        topic = self._settings.topic("assembled")
        memories = {p: PartitionMemory(p) for p in partitions}
        unfinished: dict[str, Assembled] = {}
        starts = {(topic, p): BEGINNING for p in partitions}
        for message in read_to_end(self._settings, starts, client_id=f"{self.name}-restore"):
            if message.value() is None:
                continue  # removed long after its close: nothing of it comes any more
            assembled = self._codec.decode_as(Assembled, message.value())
            if assembled.state == CLOSED:
                unfinished.pop(assembled.rollout_id, None)
                memories[message.partition() or 0].closed.add(assembled.rollout_id, message.offset() or 0)
            else:
                unfinished[assembled.rollout_id] = assembled
        found = self._sources.find((a.source for a in unfinished.values()), ("attempts",))
        for rollout_id, assembled in unfinished.items():
            records = RolloutRecords(rollout_id, assembled.source.partition)
            self._sources.add(records, assembled.source, found, ("attempts",))
            memories[assembled.source.partition].open[rollout_id] = restored(assembled, records)
        self._memories |= memories

    def drop(self, partitions: Iterable[int]) -> None:
        for partition in set(partitions):
            self._memories.pop(partition, None)
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
        if span.rollout_id in memory.closed:
            self.count(LATE_AFTER_CLOSE)
            return
        rollout = memory.rollout(span.rollout_id, entry)
        if entry.offset not in rollout.freed_spans and not rollout.records.add_span(
            span, entry.offset, entry.at // 1000
        ):
            self.count("duplicate_spans")

    def _read_reward(self, memory: PartitionMemory, reward: Reward, entry: LogEntry) -> None:
        self.count("rewards")
        if not math.isfinite(reward.value):
            self.refuse(entry, NOT_FINITE, f"reward {reward.reward_id} is {reward.value}")
        elif reward.rollout_id in memory.closed:
            memory.late.setdefault(reward.rollout_id, []).append(LoggedReward(reward, entry.offset, entry.at // 1000))
        else:
            rollout = memory.rollout(reward.rollout_id, entry)
            if entry.offset not in rollout.freed_rewards and not rollout.records.add_reward(
                reward, entry.offset, entry.at // 1000
            ):
                self.count("duplicate_rewards")

    def _read_event(self, memory: PartitionMemory, event: AttemptEvent, entry: LogEntry) -> None:
        self.count("events")
        rollout_id = event.rollout_id
        if rollout_id in memory.closed:
            self.count("events_of_closed")
            return
        rollout = memory.rollout(rollout_id, entry)
        verdict = rollout.records.add_event(event, entry.offset, entry.at // 1000)
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
        settle = self._choices.settle_seconds
        ask: dict[int, list[OpenRollout]] = {}
        self._pending_barrier = False
        for memory in self._memories.values():
            if memory.closing:
                read = Positions(positions["spans", memory.number], positions["rewards", memory.number])
                for rollout in list(memory.closing.values()):
                    if self._step(memory, rollout, read, now_ms, settle) is Step.BARRIER:
                        ask.setdefault(memory.number, []).append(rollout)
        if not ask:
            return
        ends = end_offsets(self._admin, [(self._settings.topic(t), p) for p in ask for t in ("spans", "rewards")])
        for number, rollouts in ask.items():
            memory = self._memories[number]
            barrier = Positions(
                ends[self._settings.topic("spans"), number], ends[self._settings.topic("rewards"), number]
            )
            read = Positions(positions["spans", number], positions["rewards", number])
            for rollout in rollouts:
                assert rollout.closing is not None
                rollout.closing.set_barrier(barrier, rollout.records)
                self._step(memory, rollout, read, now_ms, settle)

    def _step(self, memory: PartitionMemory, rollout: OpenRollout, read: Positions, now_ms: int, settle: float) -> Step:
        assert rollout.closing is not None
        step = rollout.closing.step(rollout.records, read, now_ms, settle)
        if step is Step.CLOSE:
            del memory.closing[rollout.records.rollout_id]
            memory.done.append(rollout)
        elif rollout.closing.barrier is not None:
            self._pending_barrier = True
        return step

    def tick(self, now: int) -> None:
        for memory in self._memories.values():
            memory.waiting.update(memory.open_too_long(now))
            if memory.closing:
                self._pending_barrier = True  # some may have settled

    # -- writing

    @property
    def ready(self) -> bool:
        return any(m.done or m.waiting or m.late for m in self._memories.values())

    def collect(self, now: int) -> Output:
        writing = [*self._collect_late(now), *self._collect_closed(now)]
        freed = self._collect_freed(now)
        if not (writing or freed):
            return Output()
        messages = [self._sized(w) for w in writing]

        def follow(positions: list[LogPosition]) -> list[OutMessage]:
            closed = [w.assembled(position, now) for w, position in zip(writing, positions, strict=True)]
            self._written = [*closed, *freed]
            return [self._message(assembled) for assembled in self._written]

        return Output(messages, follow)

    def committed(self, positions: list[LogPosition]) -> None:
        for assembled, position in zip(self._written, positions, strict=True):
            if assembled.state == CLOSED:
                self._memories[assembled.source.partition].closed.add(assembled.rollout_id, position.offset)
        self._written = []

    def first_needed(self, topic: str, partition: int) -> int | None:
        return self._memories[partition].first_needed(topic)

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
            written.append(
                Closed(trajectory, records.partition, [r.record.reward_id for r in records.rewards_before(limit)])
            )
            del memory.open[records.rollout_id]
            memory.release(records.rollout_id)
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
        self.count(LATE_AFTER_CLOSE, sum(span.offset >= limit.spans for span in records.spans.values()))

    def _reread(self, rollouts: Sequence[OpenRollout]) -> None:
        """Brings back the spans and rewards that were freed, in the log's order with those that came later."""
        topics = ("spans", "rewards")
        sources = [rollout.source() for rollout in rollouts]
        found = self._sources.find(sources, topics)
        for rollout, source in zip(rollouts, sources, strict=True):
            rollout.records.spans.clear()
            rollout.records.rewards.clear()
            self.count("source_missing", self._sources.add(rollout.records, source, found, topics))

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
            for rollout_id in memory.waiting:
                rollout = memory.open.get(rollout_id)
                if rollout is None or rollout.closing is not None:
                    continue
                latest = rollout.records.judge.latest
                ended = latest is not None and latest.end is not None
                freed.append(
                    Assembled(
                        rollout_id=rollout_id,
                        state=WAITING if ended else OPEN,
                        attempt_id=latest.attempt_id if latest is not None else None,
                        source=rollout.free(),
                        at=now,
                    )
                )
            for rollout_id in list(memory.waiting):
                memory.release(rollout_id)
        return freed

    def _sized(self, closed: Closed) -> OutMessage:
        try:
            return self._message(closed.trajectory)
        except RecordTooLargeError as error:
            log.error("%s: %s; its triplets are left out", closed.trajectory.rollout_id, error)
            self.count(TOO_LARGE)
            leave_out(closed.trajectory, TOO_LARGE)
            return self._message(closed.trajectory)
