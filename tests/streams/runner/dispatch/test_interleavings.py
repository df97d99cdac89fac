"""Several runners, partitions that move, processes that die and sleep: whatever the order, the log stays right."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.schemas.records import AttemptEvent, Task, TaskConfig, TaskFacts
from headrace.streams.ends import EndJudge, judge
from headrace.streams.runner.dispatch.dispatcher import Dispatcher
from headrace.streams.runner.dispatch.values import GiveUp, Happened, Start, Withdraw, attempt_id_of

PARTITIONS = (0, 1)
NAMES = ("w1", "w2", "w3")
ROLLOUTS = tuple(f"r{i}" for i in range(6))
MAX_ATTEMPTS = 2
MAX_DELIVERIES = 3
ROUNDS = 60  # of the end: each ends or starts at least one delivery of every task that is open
number = st.integers(0, 1000)
worker = st.sampled_from(NAMES)
partition = st.sampled_from(PARTITIONS)


def place(rollout_id: str) -> int:
    return int(rollout_id[1:]) % len(PARTITIONS)


class Log:
    """What the brokers have."""

    def __init__(self) -> None:
        self.tasks: dict[int, list[Task]] = {p: [] for p in PARTITIONS}
        self.attempts: dict[int, list[AttemptEvent]] = {p: [] for p in PARTITIONS}
        self.committed = dict.fromkeys(PARTITIONS, 0)

    def judge(self, rollout_id: str) -> EndJudge:
        events = self.attempts[place(rollout_id)]
        return judge((i, e) for i, e in enumerate(events) if e.rollout_id == rollout_id)

    def finished(self, task: Task) -> bool:
        said = self.judge(task.rollout_id)
        ends = [a.end for a in said.attempts.values() if a.attempt == task.attempt and a.end is not None]
        return said.closed or any(end.type != "lost" for end in ends)

    def write(
        self, task: Task, delivery: int, kind: str, worker_id: str, *, final: bool = False, reason: str | None = None
    ) -> None:
        self.attempts[place(task.rollout_id)].append(
            AttemptEvent(
                rollout_id=task.rollout_id,
                attempt_id=attempt_id_of(task.rollout_id, task.attempt, delivery) if delivery else None,
                attempt=task.attempt,
                delivery=delivery,
                type=kind,
                task=TaskFacts() if kind == "started" or not delivery else None,
                final=final,
                lost_reason=reason,
                worker_id=worker_id,
                at=0,
            )
        )


class Runner:
    """A process: its dispatcher, how far it has read, and what runs in it."""

    def __init__(self, name: str, log: Log) -> None:
        self.name, self.log = name, log
        self.dispatcher = Dispatcher(name, MAX_DELIVERIES)
        self.fetched: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self.running: dict[str, Start] = {}

    def own(self, p: int) -> None:
        events = [Happened(p, i, i, e) for i, e in enumerate(self.log.attempts[p])]
        ended = {r.encode(): 0 for r in ROLLOUTS if place(r) == p and self.log.judge(r).closed}
        for action in self.dispatcher.assigned(p, self.log.committed[p], ended, events):
            self.running.pop(action.attempt_id, None)
        self.fetched[p], self.read[p] = self.log.committed[p], len(events)

    def fetch(self, p: int) -> None:
        at = self.fetched[p]
        if at < len(self.log.tasks[p]):
            self.dispatcher.fetched(p, at, at, self.log.tasks[p][at])
            self.fetched[p] = at + 1

    def follow(self, p: int) -> bool:
        at = self.read.get(p, 0)
        if p not in self.dispatcher.followed or at >= len(self.log.attempts[p]):
            return False
        self.read[p] = at + 1
        for action in self.dispatcher.read(Happened(p, at, at, self.log.attempts[p][at])):
            self.running.pop(action.attempt_id, None)
        return True


class Interleavings(RuleBasedStateMachine):
    """The rules are what may happen, one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.runners = {name: Runner(name, self.log) for name in NAMES}
        self.owner: dict[int, str | None] = dict.fromkeys(PARTITIONS)
        self.slept = False  # a runner has owned a partition after it was another's: it may start what the other has

    # tasks

    @rule(n=number)
    def produce(self, n: int) -> None:
        rollout_id = ROLLOUTS[n % len(ROLLOUTS)]
        config = TaskConfig(max_attempts=MAX_ATTEMPTS, retry_condition=["failed"])
        self.log.tasks[place(rollout_id)].append(Task(rollout_id=rollout_id, input="1", config=config, enqueued_at=0))

    def _retry(self, rollout_id: str) -> bool:
        """Lifecycle's part: the next attempt of a rollout whose latest has ended without closing it."""
        said, p = self.log.judge(rollout_id), place(rollout_id)
        latest = said.latest
        if said.closed or latest is None or latest.end is None or latest.end.type == "lost":
            return False
        if any(t.rollout_id == rollout_id and t.attempt == latest.attempt + 1 for t in self.log.tasks[p]):
            return False
        first = next(t for t in self.log.tasks[p] if t.rollout_id == rollout_id)
        again = Task(rollout_id=rollout_id, input="1", config=first.config, attempt=latest.attempt + 1, enqueued_at=0)
        self.log.tasks[p].append(again)
        return True

    @rule(n=number)
    def retry(self, n: int) -> None:
        self._retry(ROLLOUTS[n % len(ROLLOUTS)])

    # runners

    @rule(name=worker, p=partition)
    def fetch(self, name: str, p: int) -> None:
        runner = self.runners[name]
        if p in runner.dispatcher.owned:
            runner.fetch(p)

    @rule(name=worker, p=partition, n=st.integers(1, 5))
    def read(self, name: str, p: int, n: int) -> None:
        for _ in range(n):
            self.runners[name].follow(p)

    @rule(name=worker, written=st.sampled_from(["yes", "yes", "yes", "no"]))
    def take(self, name: str, written: str) -> None:
        self._take(name, written)

    def _take(self, name: str, written: str = "yes") -> bool:
        runner = self.runners[name]
        action = runner.dispatcher.take()
        if action is None:
            return False
        task = action.entry.task
        if isinstance(action, Withdraw):
            self.log.write(task, 0, "cancelled", name, final=True)
        elif isinstance(action, GiveUp):
            assert action.entry.losses >= MAX_DELIVERIES
            self.log.write(task, action.delivery, "failed", name, final=True)
        elif written == "no":
            runner.dispatcher.unstarted(action)
        else:
            self._start(runner, action, task)
        return True

    def _start(self, runner: Runner, start: Start, task: Task) -> None:
        said = self.log.judge(task.rollout_id)
        known = [a for a in said.attempts.values() if a.attempt == task.attempt]
        others = [a for a in known if a.attempt_id != start.attempt_id]
        if all(a.attempt_id != start.attempt_id for a in known):
            assert all(a.end is not None and a.end.type == "lost" for a in others), "a second start without `lost`"
            losses = sum(a.end is not None and a.end.lost_reason != "given_back" for a in others)
            assert start.alone == (losses > 0)
            assert losses < MAX_DELIVERIES
        else:
            assert self.slept, "the same delivery was started twice, though nobody has slept"
        runner.running[start.attempt_id] = start
        self.log.write(task, start.delivery, "started", runner.name)

    @rule(name=worker, n=number, kind=st.sampled_from(["succeeded", "failed", "child_died", "given_back", "timeout"]))
    def end(self, name: str, n: int, kind: str) -> None:
        runner = self.runners[name]
        if not runner.running:
            return
        start = runner.running.pop(sorted(runner.running)[n % len(runner.running)])
        task = start.entry.task
        if kind in ("child_died", "given_back"):
            self.log.write(task, start.delivery, "lost", name, reason=kind)
        else:
            final = kind != "failed" or task.attempt == MAX_ATTEMPTS
            self.log.write(task, start.delivery, kind, name, final=final)

    @rule(name=worker)
    def restart(self, name: str) -> None:
        self.runners[name] = Runner(name, self.log)
        self.owner = {p: None if o == name else o for p, o in self.owner.items()}

    # lifecycle

    def _lose(self, rollout_id: str) -> None:
        said = self.log.judge(rollout_id)
        latest = said.latest
        if said.closed or latest is None or latest.end is not None or latest.started is None:
            return
        task = Task(rollout_id=rollout_id, input="1", attempt=latest.attempt, enqueued_at=0)
        self.log.write(task, latest.delivery, "lost", "lifecycle", reason="lease")

    @rule(n=number)
    def lease_is_over(self, n: int) -> None:
        self._lose(ROLLOUTS[n % len(ROLLOUTS)])

    @rule(n=number)
    def cancel(self, n: int) -> None:
        task = Task(rollout_id=ROLLOUTS[n % len(ROLLOUTS)], input="1", attempt=0, enqueued_at=0)
        if any(t.rollout_id == task.rollout_id for t in self.log.tasks[place(task.rollout_id)]):
            self.log.write(task, 0, "cancel_requested", "cli")

    # the group

    @rule(p=partition)
    def commit(self, p: int) -> None:
        owner = self.owner[p]
        if owner is not None:
            self.log.committed[p] = self.runners[owner].dispatcher.positions()[p]

    @rule(p=partition)
    def revoke(self, p: int) -> None:
        self.commit(p)
        owner, self.owner[p] = self.owner[p], None
        if owner is not None:
            self.runners[owner].dispatcher.revoked([p])

    @rule(p=partition)
    def put_out(self, p: int) -> None:
        """The owner sleeps, and does not know that the partition is another's."""
        self.owner[p], self.slept = None, True

    @rule(name=worker, p=partition)
    def told(self, name: str, p: int) -> None:
        if self.owner[p] != name:
            self.runners[name].dispatcher.revoked([p])

    @precondition(lambda self: None in self.owner.values())
    @rule(name=worker, p=partition)
    def assign(self, name: str, p: int) -> None:
        if self.owner[p] is None:
            self.told(name, p)
            self.owner[p] = name
            self.runners[name].own(p)

    # what holds

    @invariant()
    def no_offset_passes_an_unfinished_task(self) -> None:
        for p in PARTITIONS:
            tasks = self.log.tasks[p]
            assert all(self.log.finished(t) for t in tasks[: self.log.committed[p]])
            for runner in self.runners.values():
                if p in runner.dispatcher.owned:
                    position = runner.dispatcher.positions()[p]
                    assert all(self.log.finished(t) for t in tasks[:position])

    def teardown(self) -> None:
        """In the end all is finished, whoever has died."""
        for p in PARTITIONS:
            for name in NAMES:
                self.told(name, p)
            if self.owner[p] is None:
                self.assign(NAMES[0], p)
        for _ in range(ROUNDS):
            self._settle()
        for p in PARTITIONS:
            owner = self.runners[self.owner[p] or ""]
            assert owner.dispatcher.positions()[p] == len(self.log.tasks[p])
        assert all(runner.dispatcher.in_hand == 0 for runner in self.runners.values())
        assert all(self.log.judge(t.rollout_id).closed for tasks in self.log.tasks.values() for t in tasks)

    def _settle(self) -> None:
        for name, runner in self.runners.items():
            for p in PARTITIONS:
                while runner.follow(p):
                    pass
                if p in runner.dispatcher.owned:
                    while runner.fetched[p] < len(self.log.tasks[p]):
                        runner.fetch(p)
            while self._take(name):
                pass
            while runner.running:
                self.end(name, 0, "succeeded")
        for rollout_id in ROLLOUTS:
            running = {i for r in self.runners.values() for i in r.running}
            latest = self.log.judge(rollout_id).latest
            if latest is not None and latest.attempt_id not in running:
                self._lose(rollout_id)
            self._retry(rollout_id)


Interleavings.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestInterleavings = Interleavings.TestCase
