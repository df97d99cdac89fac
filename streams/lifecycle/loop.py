"""Lifecycle as a processor of the transactional loop: tasks and attempts in; rollouts, retries and timer events out."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import cast

from headrace.schemas.records import AttemptEvent, Record, RolloutState, Task
from headrace.streams.ends import begins
from headrace.streams.errors import BrokerUnavailableError, RecordTooLargeError
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.messages import Message, MessageMaker, OutMessage
from headrace.streams.kafka.old_records import OldRecords
from headrace.streams.kafka.transactional import LogEntry, Output, Processor, TopicPartitionKey
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.lifecycle.answers import TaskAnswers, smaller
from headrace.streams.lifecycle.cleaning import TaskCleaner, unfinished_since
from headrace.streams.lifecycle.machine import (
    EXTERNAL,
    TERMINAL,
    Change,
    Rollout,
    apply_event,
    apply_task,
    from_facts,
    from_task,
)
from headrace.streams.lifecycle.store import Held, PartitionStore, Reread
from headrace.streams.lifecycle.timers import OPEN_TOO_LONG, UNRESPONSIVE, Limits, event_of, overdue, silent
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

TOO_LARGE = "too_large"
UNKNOWN_ROLLOUT = "unknown_rollout"
NO_TASK_FACTS = "no_task_facts"
STATUS = "status"
ROLLOUTS = "rollouts"


class LifecycleProcessor(Processor):
    """Keeps the state of every rollout and publishes it.

    Of the changes that one rollout goes through between two transactions only the last is published: the rollouts
    topic is compacted, and its readers want to know how a rollout stands.
    """

    name = "lifecycle"
    topics = ("tasks", "attempts")
    gap_seconds = 0.25  # nobody waits for these states within milliseconds
    fetch_pause_ms = 40

    def __init__(self, settings: Settings, worker_id: str, log_reader: LogReader | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._worker_id = worker_id
        self._limits = Limits.of(settings.lease, settings.max_open)
        self._log = log_reader or LogReader(settings, f"{self.name}-{worker_id}")
        self._message = MessageMaker(settings, partitions=partial(self._log.count, "tasks"))
        self._answers = TaskAnswers(settings, self._log, worker_id)
        self._cleaner = TaskCleaner(self._log, settings.retention)
        self._old = OldRecords(self._log, ROLLOUTS, settings.retention)
        self._stores: dict[int, PartitionStore] = {}
        self._rereads: list[tuple[int, Reread]] = []
        self._events: list[tuple[int, AttemptEvent]] = []  # to be written
        self._since = 0

    # -- partitions

    def restore(self, partitions: Sequence[int]) -> None:
        stores = {p: PartitionStore(p) for p in partitions}
        intake = Intake(self._settings, (ROLLOUTS,), self._log.count(ROLLOUTS))
        for message in self._log.whole(ROLLOUTS, partitions):
            try:
                _restore(stores[message.partition() or 0], message, intake)
            except RefusedError as refusal:
                self.refuse(LogEntry.of(ROLLOUTS, message), refusal.reason, str(refusal))
        for store in stores.values():
            store.restored()
        self._stores |= stores
        self._old.take(partitions)

    def drop(self, partitions: Iterable[int]) -> None:
        gone = set(partitions)
        for partition in gone:
            self._stores.pop(partition, None)
        self._old.drop(gone)
        self._rereads = [r for r in self._rereads if r[0] not in gone]
        self._events = [e for e in self._events if e[0] not in gone]

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
            if event.task is None or event.task.origin != EXTERNAL or not begins(event):
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
            self.count("retries")
            self._rereads.append((store.number, Reread(rollout, change.task_offset)))
        elif change.cancel:
            self._cancel(store, rollout, change)
        elif change.untold:
            self.refuse(entry, NO_TASK_FACTS, f"`{event.type}` comes first and does not say of which task it is")
        if event.type == "heartbeat":
            if silent(rollout, entry.at, self._since):
                self._fire(store, rollout, UNRESPONSIVE, entry.at)
        elif event.type == "activity" and (fired := store.fired.get(event.rollout_id)) is not None:
            fired.discard((UNRESPONSIVE, event.attempt_id))

    def _cancel(self, store: PartitionStore, rollout: Rollout, change: Change) -> None:
        latest, live = rollout.latest, rollout.live
        event = AttemptEvent(
            rollout_id=rollout.state.rollout_id,
            attempt_id=live.attempt_id if live is not None else None,
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
        if event.final and event.attempt_id is None:  # no `started` needs to have told the facts of the task
            self._rereads.append((store.number, Reread(rollout, task_offset, event)))
        else:
            self._events.append((store.number, event))

    # -- events of rollouts without a task

    @property
    def waiting(self) -> bool:
        return any(store.held for store in self._stores.values())

    def advance(self, positions: Mapping[TopicPartitionKey, int], now: int) -> None:
        """Decides on held events once the tasks partition is read to the end that was noted after they came."""
        unasked = [s.number for s in self._stores.values() if any(h.until is None for h in s.held.values())]
        if unasked:
            ends = self._log.ends([("tasks", p) for p in unasked])
            for partition in unasked:
                for held in self._stores[partition].held.values():
                    if held.until is None:
                        held.until = ends["tasks", partition]
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
                if rollout is None and event.task is not None and begins(event):
                    rollout = from_facts(rollout_id, event.task, entry.at)
                    store.put(rollout)
                if rollout is None:
                    self.refuse(entry, UNKNOWN_ROLLOUT, f"no task of rollout {rollout_id} in the tasks topic")
                else:
                    self._apply(store, rollout, event, entry)

    # -- time

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
        if self._old.due(now):
            self._look_for_old(now)
        if self._cleaner.due(now):
            self.count("tasks_deleted", self._cleaner.clean(self._stores.values(), now))

    def _fire(self, store: PartitionStore, rollout: Rollout, kind: str, now: int) -> None:
        event = event_of(kind, rollout, now, self._worker_id)
        fired = store.fired.setdefault(event.rollout_id, set())
        if (kind, event.attempt_id) in fired:
            return
        fired.add((kind, event.attempt_id))
        self.count(f"timer_{kind}")
        self._write_end(store, rollout, event, rollout.state.task_offset)

    def _look_for_old(self, now: int) -> None:
        """Ended rollouts are forgotten when no task that waits for a runner can repeat them any more."""
        found: dict[int, list[str]] = {}
        until = now
        try:
            until = unfinished_since(self._log, self._stores, now)
            for message in self._old.look(now, until):
                if message.value() is not None and _status(message) in TERMINAL:
                    found.setdefault(message.partition() or 0, []).append(
                        (message.key() or b"").decode("utf-8", "replace")
                    )
        except BrokerUnavailableError as error:
            log.warning("old records of rollouts stay for now: %s", error)
        for number, rollout_ids in found.items():
            self._stores[number].expire(rollout_ids, self._old.limit(until) // 1000)

    # -- writing

    @property
    def ready(self) -> bool:
        if self._rereads or self._events:
            return True
        return any(store.changed or store.removed for store in self._stores.values())

    def collect(self, now: int) -> Output:
        records: list[Record] = []
        if self._rereads:
            records += self._answers.make(self._rereads, now)
            self._rereads = []
        records += [event for _, event in self._events]
        self._events = []
        tombstones: list[OutMessage] = []
        for store in self._stores.values():
            records += [rollout.state for rollout in store.changed.values()]
            store.changed.clear()
            tombstones += [self._message.tombstone(RolloutState.SCHEMA, rollout_id) for rollout_id in store.removed]
            store.removed.clear()
        self.count("states", len(records))
        self.count("removed", len(tombstones))
        return Output([*map(self._sized, records), *tombstones])

    def first_needed(self, topic: str, partition: int) -> int | None:
        return self._stores[partition].first_unpublished() if topic == "attempts" else None

    def _sized(self, record: Record) -> OutMessage:
        """A record says more than the task that it comes of, which may be as large as a record can be."""
        try:
            return self._message(record)
        except RecordTooLargeError as error:
            log.error("%s; what it has of the task's input or metadata is left out", error)
            self.count(TOO_LARGE)
            return self._message(smaller(record))


def _status(message: Message) -> str | None:
    for name, value in message.headers() or ():
        if name == STATUS:
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return None


def _restore(store: PartitionStore, message: Message, intake: Intake) -> None:
    """Takes a record of the rollouts topic; of the many that have ended only key and header are looked at."""
    if message.value() is None:  # removed long after its end: nothing of it comes any more
        store.restore_removed(intake.text_of_key(ROLLOUTS, message))
    elif _status(message) in TERMINAL:
        store.restore_ended(intake.text_of_key(ROLLOUTS, message), message.timestamp()[1])
    else:
        store.restore(cast(RolloutState, intake.record(ROLLOUTS, message)))
