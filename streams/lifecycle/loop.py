"""Lifecycle as a processor of the transactional loop: tasks and attempts in; rollouts, retries and timer events out."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from headrace.schemas.records import AttemptEvent, ErrorInfo, Record, RolloutState, Task
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.messages import MessageMaker, OutMessage
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.kafka.rereading import Rereader
from headrace.streams.kafka.transactional import LogEntry, Output, Processor, TopicPartitionKey
from headrace.streams.lifecycle.machine import (
    Change,
    Rollout,
    apply_event,
    apply_task,
    from_facts,
    from_task,
)
from headrace.streams.lifecycle.store import Held, PartitionStore, Reread, retry_of
from headrace.streams.lifecycle.timers import OPEN_TOO_LONG, UNRESPONSIVE, Limits, event_of, overdue, silent
from headrace.streams.settings import Settings
from headrace.streams.task_facts import NO_INPUT, facts_of

log = logging.getLogger(__name__)

EXTERNAL = "external"
TOO_LARGE = "too_large"
UNKNOWN_ROLLOUT = "unknown_rollout"
TASK_MISSING = ErrorInfo(type="task_missing", message="the task of the rollout can no longer be read")


class LifecycleProcessor(Processor):
    """Keeps the state of every rollout and publishes it.

    Of the changes that one rollout goes through between two transactions only the last is published: the rollouts
    topic is compacted, and its readers want to know how a rollout stands.
    """

    name = "lifecycle"
    topics = ("tasks", "attempts")
    gap_seconds = 0.25  # nobody waits for these states within milliseconds
    fetch_pause_ms = 40

    def __init__(self, settings: Settings, worker_id: str) -> None:
        super().__init__()
        self._settings = settings
        self._worker_id = worker_id
        self._limits = Limits.of(settings.lease, settings.max_open)
        self._message = MessageMaker(settings)
        self._codec = Codec(settings)
        self._admin = make_admin(settings, f"{self.name}-{worker_id}")
        self._rereader = Rereader(settings, f"{self.name}-{worker_id}")
        self._stores: dict[int, PartitionStore] = {}
        self._rereads: list[tuple[int, Reread]] = []
        self._timer_events: list[tuple[int, AttemptEvent]] = []
        self._since = 0

    # -- partitions

    def restore(self, partitions: Sequence[int]) -> None:
        topic = self._settings.topic("rollouts")
        stores = {p: PartitionStore(p) for p in partitions}
        starts = {(topic, p): BEGINNING for p in partitions}
        for message in read_to_end(self._settings, starts, client_id=f"{self.name}-restore"):
            if message.value() is None:
                continue  # removed long after its end: nothing of it comes any more
            store = stores[message.partition() or 0]
            store.restore(self._codec.decode_as(RolloutState, message.value()))
        self._stores |= stores

    def drop(self, partitions: Iterable[int]) -> None:
        gone = set(partitions)
        for partition in gone:
            self._stores.pop(partition, None)
        self._rereads = [r for r in self._rereads if r[0] not in gone]
        self._timer_events = [e for e in self._timer_events if e[0] not in gone]

    # -- reading

    def read(self, record: Record, entry: LogEntry) -> None:
        store = self._stores[entry.partition]
        if isinstance(record, Task):
            self._read_task(store, record, entry)
        else:
            self._read_event(store, cast(AttemptEvent, record), entry)

    def _read_task(self, store: PartitionStore, task: Task, entry: LogEntry) -> None:
        self.count("tasks")
        rollout = store.open.get(task.rollout_id)
        if rollout is not None:
            if apply_task(rollout, task, entry.offset).state:
                store.state_changed(rollout)
            return
        if task.rollout_id in store.ended:
            self.count("tasks_of_ended")
            return
        rollout = from_task(task, entry.offset, entry.at)
        store.put(rollout)
        store.state_changed(rollout)
        held = store.held.pop(task.rollout_id, None)
        if held is not None:
            for event, where in held.events:
                self._apply(store, rollout, event, where)

    def _read_event(self, store: PartitionStore, event: AttemptEvent, entry: LogEntry) -> None:
        self.count("events")
        rollout_id = event.rollout_id
        rollout = store.open.get(rollout_id)
        if rollout is None:
            if rollout_id in store.ended:
                self.count("events_of_ended")
                return
            held = store.held.get(rollout_id)
            if held is not None:
                held.events.append((event, entry))
                return
            if event.task is None or event.task.origin != EXTERNAL:
                store.held[rollout_id] = Held([(event, entry)])
                return
            rollout = from_facts(rollout_id, event.task, entry.at)
            store.put(rollout)
        self._apply(store, rollout, event, entry)

    def _apply(self, store: PartitionStore, rollout: Rollout, event: AttemptEvent, entry: LogEntry) -> None:
        change = apply_event(rollout, event, entry.offset, entry.at)
        if change.state:
            store.state_changed(rollout)
        elif change.sign:
            store.sign_changed(rollout, entry)
        if change.retry:
            self._rereads.append((store.number, Reread(rollout, change.task_offset)))
        elif change.cancel:
            self._cancel(store, rollout, change)
        if event.type == "heartbeat":
            if silent(rollout, entry.at, self._since):
                self._fire(store, rollout, UNRESPONSIVE, entry.at)
        elif event.type == "activity" and (fired := store.fired.get(event.rollout_id)) is not None:
            fired.discard((UNRESPONSIVE, event.attempt_id))

    def _cancel(self, store: PartitionStore, rollout: Rollout, change: Change) -> None:
        latest = rollout.latest
        event = AttemptEvent(
            rollout_id=rollout.state.rollout_id,
            attempt=latest.attempt if latest is not None else 1,
            delivery=latest.delivery if latest is not None else 1,
            type="cancelled",
            final=True,
            complete=latest is None,
            worker_id=self._worker_id,
            at=rollout.state.cancel_requested_at or 0,
        )
        self._write_end(store, rollout, event, change.task_offset)

    def _write_end(self, store: PartitionStore, rollout: Rollout, event: AttemptEvent, task_offset: int | None) -> None:
        if event.final and not rollout.state.attempts:  # no `started` has told the facts of the task
            self._rereads.append((store.number, Reread(rollout, task_offset, event)))
        else:
            self._timer_events.append((store.number, event))

    # -- events of rollouts without a task

    @property
    def waiting(self) -> bool:
        return any(store.held for store in self._stores.values())

    def advance(self, positions: Mapping[TopicPartitionKey, int], now: int) -> None:
        """Decides on held events once the tasks partition is read to the end that was noted after they came."""
        unasked = [s.number for s in self._stores.values() if any(h.until is None for h in s.held.values())]
        if unasked:
            topic = self._settings.topic("tasks")
            ends = end_offsets(self._admin, [(topic, p) for p in unasked])
            for partition in unasked:
                for held in self._stores[partition].held.values():
                    if held.until is None:
                        held.until = ends[topic, partition]
        for store in self._stores.values():
            if store.held:
                self._decide_held(store, positions.get(("tasks", store.number), 0))

    def _decide_held(self, store: PartitionStore, position: int) -> None:
        for rollout_id, held in list(store.held.items()):
            if held.until is None or position < held.until:
                continue
            del store.held[rollout_id]
            rollout: Rollout | None = None
            for event, entry in held.events:
                if rollout is None and event.task is not None:
                    rollout = from_facts(rollout_id, event.task, entry.at)
                    store.put(rollout)
                if rollout is None:
                    self.refuse(entry, UNKNOWN_ROLLOUT, f"no task of rollout {rollout_id} in the tasks topic")
                else:
                    self._apply(store, rollout, event, entry)

    # -- timers

    def restart_timers(self, now: int) -> None:
        self._since = now
        for store in self._stores.values():
            store.fired.clear()

    def tick(self, now: int) -> None:
        for store in self._stores.values():
            store.publish_old_signs(now)
            for rollout in store.oldest_open():
                if overdue(rollout, now, self._since, self._limits) != OPEN_TOO_LONG:
                    break
                self._fire(store, rollout, OPEN_TOO_LONG, now)
            for rollout in store.running.values():
                kind = overdue(rollout, now, self._since, self._limits)
                if kind is not None:
                    self._fire(store, rollout, kind, now)

    def _fire(self, store: PartitionStore, rollout: Rollout, kind: str, now: int) -> None:
        event = event_of(kind, rollout, now, self._worker_id)
        fired = store.fired.setdefault(event.rollout_id, set())
        if (kind, event.attempt_id) in fired:
            return
        fired.add((kind, event.attempt_id))
        self.count(f"timer_{kind}")
        self._write_end(store, rollout, event, rollout.state.task_offset)

    # -- writing

    @property
    def ready(self) -> bool:
        if self._rereads or self._timer_events:
            return True
        return any(store.changed for store in self._stores.values())

    def collect(self, now: int) -> Output:
        messages: list[OutMessage] = []
        if self._rereads:
            messages += self._with_tasks(now)
        messages += [self._sized(event) for _, event in self._timer_events]
        self._timer_events = []
        for store in self._stores.values():
            messages += [self._sized(rollout.state) for rollout in store.changed.values()]
            store.changed.clear()
        self.count("states", len(messages))
        return Output(messages)

    def first_needed(self, topic: str, partition: int) -> int | None:
        return self._stores[partition].first_unpublished() if topic == "attempts" else None

    def _sized(self, record: Record) -> OutMessage:
        """A record says more than the task that it comes of, which may be as large as a record can be."""
        try:
            return self._message(record)
        except RecordTooLargeError as error:
            log.error("%s; what it has of the task's input or metadata is left out", error)
            self.count(TOO_LARGE)
            return self._message(_smaller(record))

    def _with_tasks(self, now: int) -> list[OutMessage]:
        topic = self._settings.topic("tasks")
        wanted: dict[tuple[str, int], set[int]] = {}
        for partition, reread in self._rereads:
            if reread.task_offset is not None:
                wanted.setdefault((topic, partition), set()).add(reread.task_offset)
        found = self._rereader.read(wanted)
        messages: list[OutMessage] = []
        for partition, reread in self._rereads:
            offset = reread.task_offset
            message = found.get((topic, partition, offset)) if offset is not None else None
            try:
                task = self._codec.decode_as(Task, message.value()) if message is not None else None
            except DecodeError:
                task = None
            messages.append(self._sized(self._answer(reread, task, now)))
        self._rereads = []
        return messages

    def _answer(self, reread: Reread, task: Task | None, now: int) -> Record:
        state = reread.rollout.state
        latest = reread.rollout.latest
        number = latest.attempt if latest is not None else 1
        if reread.event is not None:
            if task is not None:
                reread.event.task = facts_of(task, reread.task_offset)
            return reread.event
        if task is not None:
            self.count("retries")
            return retry_of(task, number + 1, now)
        return AttemptEvent(
            rollout_id=state.rollout_id,
            attempt=number + 1,
            type="failed",
            final=True,
            worker_id=self._worker_id,
            error=TASK_MISSING,
            at=now,
        )


def _smaller(record: Record) -> Record:
    if isinstance(record, AttemptEvent) and record.task is not None:
        return msgspec.structs.replace(record, task=msgspec.structs.replace(record.task, input=NO_INPUT))
    if isinstance(record, (RolloutState, Task)):
        return msgspec.structs.replace(record, metadata={})
    return record
