"""The dispatcher: tasks and events in, starts and stops out. It knows no clock, no Kafka and no agent."""

from collections import deque
from collections.abc import Iterable

from headrace.schemas.records import AttemptEvent, Task
from headrace.streams.ends import EndJudge, Verdict
from headrace.streams.runner.dispatch.ended import EndedIds
from headrace.streams.runner.dispatch.ledger import Ledger
from headrace.streams.runner.dispatch.values import (
    Abandon,
    Cancel,
    Entry,
    Happened,
    LeaseOver,
    Start,
    State,
    Withdraw,
    attempt_id_of,
)

Action = Abandon | Cancel


class Dispatcher:
    """The tasks of the partitions that this runner owns, and the attempts that it has in hand, owned or not.

    A task is finished when a counting end of its attempt that is not `lost`, or the final end of its rollout, was read
    back from the attempts partition (`headrace.streams.ends`).
    """

    def __init__(self, worker_id: str | None = None) -> None:
        """`worker_id` is what this runner's own events carry."""
        self._worker_id = worker_id
        self._ledgers: dict[int, Ledger] = {}
        self._ready: deque[Entry] = deque()
        self._entries: dict[str, dict[int, Entry]] = {}  # by rollout_id and attempt
        self._judges: dict[str, EndJudge] = {}  # of open rollouts
        self._places: dict[str, int] = {}  # the partition of each judge
        self._signs: dict[str, int] = {}  # last sign of life of attempts elsewhere, microseconds since the epoch
        self._ended: dict[int, EndedIds] = {}
        self._in_hand: dict[int, int] = {}  # started here and not finished, by partition
        self.repeated = 0
        """Tasks that were there already."""

    # partitions

    def assigned(
        self, partition: int, position: int, ended: Iterable[bytes], events: Iterable[Happened], now: int
    ) -> list[Action]:
        """A partition is this runner's, from now on.

        Args:
            position: offset of the first task to be fetched.
            ended: keys of the terminal rollouts.
            events: the attempts partition from before the first unfinished task, up to its end.
            now: microseconds since the epoch, by the log's clock; all leases begin anew.
        """
        self._ledgers[partition] = Ledger(position)
        known = self._ended.setdefault(partition, EndedIds())
        known.add_keys(ended)
        actions: list[Action] = []
        for happened in events:
            actions += self.read(happened)
        for judge in (j for r, j in self._judges.items() if self._places[r] == partition):
            for attempt in judge.attempts.values():
                if attempt.end is None:
                    self._signs[attempt.attempt_id] = now
        return actions

    def revoked(self, partitions: Iterable[int]) -> None:
        """Partitions are another's: tasks that were not started are forgotten, what runs here goes on."""
        gone = set(partitions)
        for partition in gone:
            self._ledgers.pop(partition, None)
        forgotten = [e for entries in self._entries.values() for e in entries.values() if e.partition in gone]
        for entry in forgotten:
            if entry.state is not State.HERE:
                entry.state = State.FINISHED
                self._drop(entry)
        self._ready = deque(e for e in self._ready if e.state is State.READY)
        for rollout_id in [r for r, p in self._places.items() if p in gone and r not in self._entries]:
            self._forget(rollout_id)
        for partition in gone:
            self._ended.pop(partition, None)

    @property
    def owned(self) -> frozenset[int]:
        """The partitions whose tasks are this runner's."""
        return frozenset(self._ledgers)

    @property
    def followed(self) -> frozenset[int]:
        """The attempts partitions that must be read."""
        return self.owned | {p for p, n in self._in_hand.items() if n}

    def positions(self) -> dict[int, int]:
        """The first unfinished offset of each owned partition."""
        return {partition: ledger.position for partition, ledger in self._ledgers.items()}

    # tasks

    def fetched(self, partition: int, offset: int, task: Task) -> Entry | None:
        """Takes a task; the entry that it makes, or None where it is finished already or was here before."""
        ledger = self._ledgers.get(partition)
        if ledger is None or not ledger.add(offset):
            return None
        rollout_id = task.rollout_id
        if rollout_id in self._ended[partition]:
            self.repeated += 1
            ledger.finish(offset)
            return None
        entries = self._entries.get(rollout_id)
        known = entries.get(task.attempt) if entries else None
        if known is not None:
            if known.offset != offset:  # of several, the lowest offset is the task
                self.repeated += 1
                ledger.finish(offset)
            return None
        entry = Entry(task=task, partition=partition, offset=offset)
        judge = self._judges.get(rollout_id)
        if judge is not None and not self._place(entry, judge):
            self.repeated += 1
            ledger.finish(offset)
            return None
        self._entries.setdefault(rollout_id, {})[task.attempt] = entry
        if entry.state is State.READY:
            self._ready.append(entry)
        return entry

    def unreadable(self, partition: int, offset: int) -> None:
        """Takes a record that is no task; `put_away` finishes it."""
        ledger = self._ledgers.get(partition)
        if ledger is not None:
            ledger.add(offset)

    def put_away(self, partition: int, offset: int) -> None:
        """An unreadable record stands among the dead letters."""
        ledger = self._ledgers.get(partition)
        if ledger is not None:
            ledger.finish(offset)

    def take(self) -> Start | Withdraw | None:
        """The next task that may start, in the order of fetching; it is this runner's to start or to withdraw."""
        while self._ready:
            entry = self._ready.popleft()
            if entry.state is not State.READY:
                continue
            judge = self._judges.get(entry.task.rollout_id)
            if judge is not None and judge.cancel_requested_at is not None:
                entry.state = State.WITHDRAWN
                return Withdraw(entry)
            entry.state = State.HERE
            entry.delivery += 1
            entry.attempt_id = attempt_id_of(entry.task.rollout_id, entry.task.attempt, entry.delivery)
            self._in_hand[entry.partition] = self._in_hand.get(entry.partition, 0) + 1
            return Start(entry, entry.attempt_id, entry.delivery)
        return None

    def unstarted(self, start: Start) -> None:
        """A start that could not be written: the task waits again, and its next start has the same id."""
        entry = start.entry
        if entry.state is not State.HERE or entry.attempt_id != start.attempt_id:
            return
        self._let_go(entry)
        entry.delivery -= 1
        if entry.partition in self._ledgers:
            entry.state = State.READY
            self._ready.appendleft(entry)
        else:
            entry.state = State.FINISHED
            self._drop(entry)

    @property
    def ready(self) -> int:
        """Tasks that wait for a free slot."""
        return len(self._ready)

    @property
    def in_hand(self) -> int:
        """Attempts started here whose end was not read back yet."""
        return sum(self._in_hand.values())

    # events

    def read(self, happened: Happened) -> list[Action]:
        """Folds an event of a followed partition; what is to be done about attempts that run here."""
        event, partition = happened.event, happened.partition
        rollout_id = event.rollout_id
        owned = partition in self._ledgers
        if not owned and rollout_id not in self._entries:
            return []
        ended = self._ended.get(partition)
        if ended is not None and rollout_id in ended:
            return []
        judge = self._judges.get(rollout_id)
        if judge is None:
            judge = self._judges[rollout_id] = EndJudge()
            self._places[rollout_id] = partition
        verdict = judge.read(event, happened.offset)
        if verdict is Verdict.CLOSES:
            return self._closed(rollout_id, partition, event)
        if verdict is Verdict.COUNTS:
            return self._ended_attempt(rollout_id, event)
        if verdict is Verdict.STARTED or verdict is Verdict.SIGN:
            return self._sign(happened, verdict)
        return []

    def leases_over(self, now: int, lease: int) -> list[LeaseOver]:
        """Attempts elsewhere that gave no sign of life for `lease` microseconds."""
        return [
            LeaseOver(entry, entry.attempt_id, entry.delivery)
            for entries in self._entries.values()
            for entry in entries.values()
            if entry.state is State.ELSEWHERE
            and entry.partition in self._ledgers
            and now - self._signs.get(entry.attempt_id, now) > lease
        ]

    def renew(self, now: int) -> None:
        """Every lease begins anew: the log could not be read for a while."""
        for attempt_id in self._signs:
            self._signs[attempt_id] = now

    def _place(self, entry: Entry, judge: EndJudge) -> bool:
        """Where the log says that the task's attempt stands; False if it has ended."""
        deliveries = [a for a in judge.attempts.values() if a.attempt == entry.task.attempt]
        if any(a.end is not None and a.end.type != "lost" for a in deliveries):
            return False
        if deliveries:
            latest = max(deliveries, key=lambda a: a.rank)
            entry.attempt_id, entry.delivery = latest.attempt_id, latest.delivery
            if latest.end is None:
                entry.state = State.ELSEWHERE
        return True

    def _sign(self, happened: Happened, verdict: Verdict) -> list[Action]:
        event = happened.event
        entries = self._entries.get(event.rollout_id)
        if event.type == "cancel_requested":
            return [Cancel(e.attempt_id) for e in (entries or {}).values() if e.state is State.HERE]
        entry = entries.get(event.attempt) if entries else None
        attempt_id = event.attempt_id or ""
        if entry is not None and entry.state is State.HERE and entry.attempt_id == attempt_id:
            if verdict is Verdict.STARTED and event.worker_id != self._worker_id:
                return self._overtaken(entry, happened)
            return []
        self._signs[attempt_id] = max(happened.at, self._signs.get(attempt_id, 0))
        if entry is not None and verdict is Verdict.STARTED and entry.state is State.READY:
            entry.state, entry.attempt_id, entry.delivery = State.ELSEWHERE, attempt_id, event.delivery
        return []

    def _overtaken(self, entry: Entry, happened: Happened) -> list[Action]:
        """Another runner's start of the same delivery came first: one of the two has slept through a rebalance."""
        self._let_go(entry)
        if entry.partition in self._ledgers:
            entry.state = State.ELSEWHERE
            self._signs[entry.attempt_id] = happened.at
        else:
            entry.state = State.FINISHED
            self._drop(entry)
        return [Abandon(entry.attempt_id, happened.event)]

    def _ended_attempt(self, rollout_id: str, event: AttemptEvent) -> list[Action]:
        self._signs.pop(event.attempt_id or "", None)
        entry = self._entries.get(rollout_id, {}).get(event.attempt)
        if entry is None:
            return []
        if event.type != "lost":
            return self._finish(entry, event)
        if entry.attempt_id != event.attempt_id or entry.state not in (State.HERE, State.ELSEWHERE):
            return []
        actions: list[Action] = []
        if entry.state is State.HERE:
            actions.append(Abandon(entry.attempt_id, event))
            self._let_go(entry)
        if entry.partition in self._ledgers:
            entry.state = State.READY
            self._ready.append(entry)
        else:
            entry.state = State.FINISHED  # its partition's owner starts the next delivery
            self._drop(entry)
        return actions

    def _closed(self, rollout_id: str, partition: int, event: AttemptEvent) -> list[Action]:
        actions: list[Action] = []
        for entry in list(self._entries.get(rollout_id, {}).values()):
            actions += self._finish(entry, event)
        self._forget(rollout_id)
        if partition in self._ledgers:
            self._ended[partition].add(rollout_id)
        return actions

    def _finish(self, entry: Entry, end: AttemptEvent) -> list[Action]:
        actions: list[Action] = []
        if entry.state is State.HERE:
            actions.append(Abandon(entry.attempt_id, end))
            self._let_go(entry)
        entry.state = State.FINISHED
        ledger = self._ledgers.get(entry.partition)
        if ledger is not None:
            ledger.finish(entry.offset)
        self._drop(entry)
        return actions

    def _let_go(self, entry: Entry) -> None:
        left = self._in_hand[entry.partition] - 1
        if left:
            self._in_hand[entry.partition] = left
        else:
            del self._in_hand[entry.partition]

    def _drop(self, entry: Entry) -> None:
        entries = self._entries.get(entry.task.rollout_id)
        if entries is None:
            return
        entries.pop(entry.task.attempt, None)
        if not entries:
            del self._entries[entry.task.rollout_id]
            if entry.partition not in self._ledgers:
                self._forget(entry.task.rollout_id)

    def _forget(self, rollout_id: str) -> None:
        judge = self._judges.pop(rollout_id, None)
        self._places.pop(rollout_id, None)
        if judge is not None:
            for attempt_id in judge.attempts:
                self._signs.pop(attempt_id, None)
