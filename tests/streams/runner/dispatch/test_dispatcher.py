"""The dispatcher against a small model of the log: one partition, other workers, rebalances and lost leases."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.records import AttemptEvent, Task, TaskConfig
from headrace.streams.ends import judge
from headrace.streams.runner.dispatch.dispatcher import Dispatcher
from headrace.streams.runner.dispatch.values import Abandon, Cancel, Happened, Start, State, Withdraw, attempt_id_of

P = 0


def task(rollout_id: str, attempt: int = 1) -> Task:
    return Task(rollout_id=rollout_id, input="1", attempt=attempt, config=TaskConfig(max_attempts=2), enqueued_at=0)


def event(rollout_id: str, kind: str, *, attempt: int = 1, delivery: int = 1, final: bool = True) -> AttemptEvent:
    return AttemptEvent(
        rollout_id=rollout_id,
        attempt_id=attempt_id_of(rollout_id, attempt, delivery),
        attempt=attempt,
        delivery=delivery,
        type=kind,
        final=final and kind in ("succeeded", "failed", "cancelled", "timeout"),
        at=0,
    )


class Log:
    """Tasks and attempts of one partition."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.attempts: list[AttemptEvent] = []

    def happened(self, offset: int) -> Happened:
        return Happened(P, offset, offset * 1000, self.attempts[offset])

    def finished(self, one: Task, upto: int) -> bool:
        said = judge((i, e) for i, e in enumerate(self.attempts[:upto]) if e.rollout_id == one.rollout_id)
        ends = [a.end for a in said.attempts.values() if a.attempt == one.attempt and a.end is not None]
        return said.closed or any(end.type != "lost" for end in ends)


def fresh(log: Log, position: int = 0, now: int = 0) -> Dispatcher:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, position, [], [log.happened(i) for i in range(len(log.attempts))], now)
    return dispatcher


def test_a_task_starts_and_is_finished_when_its_end_is_read_back() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert start.attempt_id == "a-1"
    assert dispatcher.take() is None
    log.attempts += [event("a", "started"), event("a", "succeeded")]
    dispatcher.read(log.happened(0))
    assert dispatcher.positions() == {P: 0}
    dispatcher.read(log.happened(1))
    assert dispatcher.positions() == {P: 1}
    assert dispatcher.in_hand == 0


def test_of_two_starts_of_one_delivery_the_first_in_the_log_goes_on() -> None:
    first, second, log = Dispatcher("w1"), Dispatcher("w2"), Log()
    for dispatcher in (first, second):  # one of them does not know yet that it has lost the partition
        dispatcher.assigned(P, 0, [], [], 0)
        dispatcher.fetched(P, 0, task("a"))
        assert isinstance(dispatcher.take(), Start)
    for worker_id in ("w1", "w2"):
        log.attempts.append(event("a", "started"))
        log.attempts[-1].worker_id = worker_id
    assert [first.read(log.happened(i)) for i in range(2)] == [[], []]
    assert second.read(log.happened(0)) == [Abandon("a-1", log.attempts[0])]
    assert second.read(log.happened(1)) == []
    assert (first.in_hand, second.in_hand) == (1, 0)
    assert [over.attempt_id for over in second.leases_over(31_000_000, 30_000_000)] == ["a-1"]
    log.attempts.append(event("a", "succeeded"))
    assert second.read(log.happened(2)) == []
    assert second.positions() == {P: 1}


def test_repeats_are_finished_at_once() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, [b"done"], [], 0)
    assert dispatcher.fetched(P, 0, task("done")) is None
    assert dispatcher.fetched(P, 1, task("a")) is not None
    assert dispatcher.fetched(P, 2, task("a")) is None
    assert dispatcher.repeated == 2
    assert dispatcher.positions() == {P: 1}


def test_a_task_that_runs_here_is_fetched_again_after_a_rebalance() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    dispatcher.take()
    log.attempts.append(event("a", "started"))
    dispatcher.revoked([P])
    dispatcher.assigned(P, 0, [], [log.happened(0)], 0)
    assert dispatcher.fetched(P, 0, task("a")) is None
    assert dispatcher.take() is None
    assert dispatcher.positions() == {P: 0}
    log.attempts.append(event("a", "succeeded"))
    dispatcher.read(log.happened(1))
    assert dispatcher.positions() == {P: 1}


def test_a_task_whose_attempt_has_ended_is_finished_at_once() -> None:
    log = Log()
    log.attempts += [event("a", "started"), event("a", "failed", final=False)]
    dispatcher = fresh(log)
    assert dispatcher.fetched(P, 0, task("a")) is None
    assert dispatcher.positions() == {P: 1}


def test_a_retry_is_a_task_of_its_own() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    dispatcher.take()
    log.attempts += [event("a", "started"), event("a", "failed", final=False)]
    dispatcher.read(log.happened(0))
    dispatcher.read(log.happened(1))
    assert dispatcher.positions() == {P: 1}
    dispatcher.fetched(P, 1, task("a", attempt=2))
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert start.attempt_id == "a-2"


def test_an_attempt_elsewhere_is_waited_for_until_it_is_lost() -> None:
    log = Log()
    log.attempts.append(event("a", "started"))
    dispatcher = fresh(log, now=5_000_000)
    dispatcher.fetched(P, 0, task("a"))
    assert dispatcher.take() is None
    assert dispatcher.leases_over(5_000_000 + 10, 100) == []
    over = dispatcher.leases_over(5_000_000 + 101, 100)
    assert [o.attempt_id for o in over] == ["a-1"]
    log.attempts.append(event("a", "lost"))
    dispatcher.read(log.happened(1))
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert (start.attempt_id, start.delivery) == ("a-1.2", 2)


def test_a_heartbeat_renews_the_lease_elsewhere() -> None:
    log = Log()
    log.attempts.append(event("a", "started"))
    dispatcher = fresh(log, now=0)
    dispatcher.fetched(P, 0, task("a"))
    dispatcher.read(Happened(P, 1, 1000, event("a", "heartbeat")))
    assert dispatcher.leases_over(1050, 100) == []
    assert len(dispatcher.leases_over(1101, 100)) == 1


def test_lost_while_it_runs_here_abandons_it() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    dispatcher.take()
    log.attempts += [event("a", "started"), event("a", "lost")]
    dispatcher.read(log.happened(0))
    actions = dispatcher.read(log.happened(1))
    assert [type(a) for a in actions] == [Abandon]
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert start.delivery == 2


def test_cancel_before_and_after_the_start() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    dispatcher.fetched(P, 1, task("b"))
    dispatcher.take()
    for rollout_id in ("a", "b"):
        asked = event(rollout_id, "cancel_requested")
        asked.attempt, asked.attempt_id = 0, None
        log.attempts.append(asked)
    assert dispatcher.read(log.happened(0)) == [Cancel("a-1")]
    assert dispatcher.read(log.happened(1)) == []
    assert isinstance(dispatcher.take(), Withdraw)


def test_a_rebalance_moves_tasks_but_not_what_runs() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    dispatcher.fetched(P, 1, task("b"))
    dispatcher.take()
    dispatcher.revoked([P])
    assert dispatcher.take() is None
    assert dispatcher.followed == {P}
    log.attempts += [event("a", "started"), event("b", "started"), event("a", "succeeded")]
    for offset in range(3):
        dispatcher.read(log.happened(offset))
    assert dispatcher.followed == frozenset()
    assert dispatcher.in_hand == 0


def test_a_start_that_could_not_be_written_is_taken_again_under_the_same_id() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, [], [], 0)
    dispatcher.fetched(P, 0, task("a"))
    start = dispatcher.take()
    assert isinstance(start, Start)
    dispatcher.unstarted(start)
    again = dispatcher.take()
    assert isinstance(again, Start)
    assert again.attempt_id == start.attempt_id


def test_an_unreadable_record_holds_the_position_until_it_is_put_away() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, [b"a"], [], 0)
    dispatcher.unreadable(P, 0)
    dispatcher.fetched(P, 1, task("a"))
    assert dispatcher.positions() == {P: 0}
    dispatcher.put_away(P, 0)
    assert dispatcher.positions() == {P: 2}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["produce", "fetch", "take", "end", "elsewhere", "lost", "read", "move", "cancel"]),
        st.integers(0, 1000),
    ),
    min_size=30,
    max_size=120,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_whatever_happens_no_task_is_passed_over_and_none_runs_twice(steps: list[tuple[str, int]]) -> None:
    log, dispatcher = Log(), Dispatcher()
    dispatcher.assigned(P, 0, [], [], 0)
    fetch_at, read_at, committed = 0, 0, 0
    running: dict[str, Start] = {}

    def obey(actions: list[Abandon | Cancel]) -> None:
        for action in actions:
            running.pop(action.attempt_id, None)

    for name, n in steps:
        if name == "produce":
            log.tasks.append(task(f"r{n % 5}", 1 + n % 2))
        elif name == "fetch" and fetch_at < len(log.tasks):
            dispatcher.fetched(P, fetch_at, log.tasks[fetch_at])
            fetch_at += 1
        elif name == "take":
            taken = dispatcher.take()
            if isinstance(taken, Start):
                assert not log.finished(taken.entry.task, read_at)
                same = [s for s in running.values() if s.entry.task is taken.entry.task]
                assert not same
                running[taken.attempt_id] = taken
                attempt = taken.entry.task.attempt
                log.attempts.append(
                    event(taken.entry.task.rollout_id, "started", attempt=attempt, delivery=taken.delivery)
                )
            elif taken is not None:
                log.attempts.append(event(taken.entry.task.rollout_id, "cancelled"))
        elif name == "end" and running:
            key = sorted(running)[n % len(running)]
            start = running.pop(key)
            one = start.entry.task
            log.attempts.append(
                event(one.rollout_id, "succeeded", attempt=one.attempt, delivery=start.delivery, final=n % 2 == 0)
            )
        elif name == "elsewhere":
            kind = ["started", "succeeded", "heartbeat", "timeout"][n % 4]
            log.attempts.append(event(f"r{n % 5}", kind, attempt=1 + n % 2, delivery=1 + n % 3, final=n % 7 == 0))
        elif name == "lost":
            log.attempts.append(event(f"r{n % 5}", "lost", attempt=1 + n % 2, delivery=1 + n % 3))
        elif name == "cancel":
            asked = event(f"r{n % 5}", "cancel_requested")
            asked.attempt, asked.attempt_id = 0, None
            log.attempts.append(asked)
        elif name == "read" and read_at < len(log.attempts):
            obey(dispatcher.read(log.happened(read_at)))
            read_at += 1
        elif name == "move":
            committed = dispatcher.positions()[P]
            dispatcher.revoked([P])
            obey(dispatcher.assigned(P, committed, [], [log.happened(i) for i in range(len(log.attempts))], n))
            read_at, fetch_at = len(log.attempts), committed
        position = dispatcher.positions()[P]
        assert position >= committed
        assert all(log.finished(one, read_at) for one in log.tasks[:position])

    # Whatever was left open ends; then everything is finished.
    while fetch_at < len(log.tasks):
        dispatcher.fetched(P, fetch_at, log.tasks[fetch_at])
        fetch_at += 1
    for rollout_id in {one.rollout_id for one in log.tasks}:
        closing = event(rollout_id, "failed")
        closing.attempt_id = None
        log.attempts.append(closing)
    while read_at < len(log.attempts):
        dispatcher.read(log.happened(read_at))
        read_at += 1
    assert dispatcher.positions()[P] == len(log.tasks)
    assert dispatcher.in_hand == 0
    assert all(e.state is State.FINISHED for e in dispatcher._ready)
