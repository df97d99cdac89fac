"""The dispatcher: tasks and events in, starts and stops out. It knows no clock, no Kafka and no agent."""

from collections import deque
from collections.abc import Iterable, Mapping

from headrace.schemas.records import AttemptEvent, Task
from headrace.streams.aged_ids import AgedIds
from headrace.streams.ends import EndJudge, Verdict
from headrace.streams.runner.dispatch.ledger import Ledger
from headrace.streams.runner.dispatch.values import (
    Abandon,
    Cancel,
    Entry,
    GiveUp,
    Happened,
    Start,
    State,
    Withdraw,
    attempt_id_of,
)

Action = Abandon | Cancel
GIVEN_BACK = "given_back"
CHILD_DIED = "child_died"
MAX_DELIVERIES = 5
CAUGHT_UP_MS = 60_000  # what is being written when the end of a partition is seen has an earlier time, by far less


class Dispatcher:
    """The tasks of the partitions that this runner owns, and the attempts that it has in hand, owned or not.

    A task is finished when a counting end of its attempt that is not `lost`, or the final end of its rollout, was read
    back from the attempts partition (`headrace.streams.ends`). What was started elsewhere is only waited for: whoever
    keeps the leases (lifecycle) writes `lost`, and the next delivery starts here.
    """

    def __init__(self, worker_id: str | None = None, max_deliveries: int = MAX_DELIVERIES) -> None:
        """
        Args:
            worker_id: what this runner's own events carry.
            max_deliveries: so many deliveries of an attempt may be lost; what was given back does not count.
        """
        self._worker_id = worker_id
        self._max_deliveries = max_deliveries
        self._ledgers: dict[int, Ledger] = {}
        self._ready: deque[Entry] = deque()
        self._entries: dict[str, dict[int, Entry]] = {}  # by rollout_id and attempt
        self._judges: dict[str, EndJudge] = {}  # of open rollouts
        self._places: dict[str, int] = {}  # the partition of each judge
        self._ended: dict[int, AgedIds] = {}
        self._newest: dict[int, int] = {}  # append time of the newest event of each owned partition
        self._read_to: dict[int, int] = {}  # append time up to which its tasks are fetched
        self._in_hand: dict[int, int] = {}  # started here and not finished, by partition
        self.repeated = 0
        """Tasks that were there already."""

    # partitions

    def assigned(
        self, partition: int, position: int, ended: Mapping[bytes, int], events: Iterable[Happened]
    ) -> list[Action]:
        """A partition is this runner's, from now on.

        Args:
            position: offset of the first task to be fetched.
            ended: keys of the terminal rollouts, with the times of their ends in milliseconds.
            events: the attempts partition from before the first unfinished task, up to its end.
        """
        self._ledgers[partition] = Ledger(position)
        self._read_to.pop(partition, None)
        known = self._ended.setdefault(partition, AgedIds())
        known.add_keys(ended)
        actions: list[Action] = []
        for happened in events:
            actions += self.read(happened)
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
            for of_partition in (self._ended, self._newest, self._read_to):
                of_partition.pop(partition, None)

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

    def fetched(self, partition: int, offset: int, at: int, task: Task) -> Entry | None:
        """Takes a task, appended `at` (milliseconds).

        The entry that it makes, or None where it is finished already or was here before.
        """
        ledger = self._ledgers.get(partition)
        if ledger is None or not ledger.add(offset):
            return None
        self._read_to[partition] = max(at, self._read_to.get(partition, 0))
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

    def caught_up(self, partition: int) -> None:
        """All tasks of a partition that stood there a moment ago were fetched."""
        newest = self._newest.get(partition)
        if newest is not None and partition in self._ledgers:
            self._read_to[partition] = max(newest - CAUGHT_UP_MS, self._read_to.get(partition, 0))

    def forget_ended(self, age: int) -> None:
        """Forgets the rollouts that no task repeats any more, so that memory is that of an age, not of a lifetime.

        A task is recognised as a repeat if it was appended within `age` milliseconds of the end of its rollout, however
        late it is fetched.
        """
        for partition, read_to in self._read_to.items():
            self._ended[partition].forget(read_to - age)

    @property
    def remembered(self) -> int:
        """Ended rollouts that are kept in mind."""
        return sum(map(len, list(self._ended.values())))  # another thread may ask

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

    def take(self) -> Start | Withdraw | GiveUp | None:
        """The next task that may start, in the order of fetching; it is this runner's to start or to end."""
        while self._ready:
            entry = self._ready.popleft()
            if entry.state is not State.READY:
                continue
            judge = self._judges.get(entry.task.rollout_id)
            if judge is not None and judge.cancel_requested_at is not None:
                entry.state = State.WITHDRAWN
                return Withdraw(entry)
            delivery = entry.delivery + 1
            attempt_id = attempt_id_of(entry.task.rollout_id, entry.task.attempt, delivery)
            if entry.losses >= self._max_deliveries:
                entry.state = State.WITHDRAWN
                return GiveUp(entry, attempt_id, delivery)
            entry.state, entry.delivery, entry.attempt_id = State.HERE, delivery, attempt_id
            self._in_hand[entry.partition] = self._in_hand.get(entry.partition, 0) + 1
            return Start(entry, attempt_id, delivery, entry.losses > 0, entry.child_deaths)
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
        if owned:
            self._newest[partition] = max(happened.at, self._newest.get(partition, 0))
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
            return self._closed(rollout_id, happened)
        if verdict is Verdict.COUNTS:
            return self._ended_attempt(judge, event)
        if verdict is Verdict.STARTED:
            return self._started(event)
        if event.type == "cancel_requested":
            entries = self._entries.get(rollout_id, {})
            return [Cancel(e.attempt_id) for e in entries.values() if e.state is State.HERE]
        return []

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
            _count_losses(entry, judge)
        return True

    def _started(self, event: AttemptEvent) -> list[Action]:
        entry = self._entries.get(event.rollout_id, {}).get(event.attempt)
        if entry is None:
            return []
        later = event.delivery > entry.delivery
        if entry.state is State.HERE:
            same = entry.attempt_id == event.attempt_id and event.worker_id != self._worker_id
            return self._overtaken(entry, event) if same or later else []
        if later and entry.state in (State.READY, State.ELSEWHERE):
            entry.state, entry.attempt_id, entry.delivery = State.ELSEWHERE, event.attempt_id or "", event.delivery
        return []

    def _overtaken(self, entry: Entry, why: AttemptEvent) -> list[Action]:
        """Another runner's start of the same delivery came first: one of the two has slept through a rebalance."""
        abandon = Abandon(entry.attempt_id, why)
        self._let_go(entry)
        if entry.partition in self._ledgers:
            entry.state, entry.attempt_id, entry.delivery = State.ELSEWHERE, why.attempt_id or "", why.delivery
        else:
            entry.state = State.FINISHED
            self._drop(entry)
        return [abandon]

    def _ended_attempt(self, judge: EndJudge, event: AttemptEvent) -> list[Action]:
        entry = self._entries.get(event.rollout_id, {}).get(event.attempt)
        if entry is None:
            return []
        if event.type != "lost":
            return self._finish(entry, event)
        _count_losses(entry, judge)
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

    def _closed(self, rollout_id: str, happened: Happened) -> list[Action]:
        actions: list[Action] = []
        for entry in list(self._entries.get(rollout_id, {}).values()):
            actions += self._finish(entry, happened.event)
        self._forget(rollout_id)
        if happened.partition in self._ledgers:
            self._ended[happened.partition].add(rollout_id, happened.at)
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
        self._judges.pop(rollout_id, None)
        self._places.pop(rollout_id, None)


def _count_losses(entry: Entry, judge: EndJudge) -> None:
    ends = [a.end for a in judge.attempts.values() if a.attempt == entry.task.attempt]
    reasons = [end.lost_reason for end in ends if end is not None and end.type == "lost"]
    entry.losses = sum(reason != GIVEN_BACK for reason in reasons)
    entry.child_deaths = reasons.count(CHILD_DIED)
