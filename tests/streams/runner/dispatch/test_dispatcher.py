"""The dispatcher against a small model of the log: one partition, other workers, rebalances and lost leases."""

from headrace.schemas.records import AttemptEvent, Task, TaskConfig, TaskFacts
from headrace.streams.ends import judge
from headrace.streams.runner.dispatch.dispatcher import Dispatcher
from headrace.streams.runner.dispatch.values import Abandon, Cancel, GiveUp, Happened, Start, Withdraw, attempt_id_of

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
        task=TaskFacts() if kind == "started" else None,
        final=final and kind in ("succeeded", "failed", "cancelled", "timeout"),
        at=0,
    )


class Log:
    """Tasks and attempts of one partition."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.attempts: list[AttemptEvent] = []

    def happened(self, offset: int) -> Happened:
        return Happened(P, offset, 0, self.attempts[offset])

    def finished(self, one: Task, upto: int) -> bool:
        said = judge((i, e) for i, e in enumerate(self.attempts[:upto]) if e.rollout_id == one.rollout_id)
        ends = [a.end for a in said.attempts.values() if a.attempt == one.attempt and a.end is not None]
        return said.closed or any(end.type != "lost" for end in ends)


def fresh(log: Log, position: int = 0) -> Dispatcher:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, position, {}, [log.happened(i) for i in range(len(log.attempts))])
    return dispatcher


def test_a_task_starts_and_is_finished_when_its_end_is_read_back() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
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
        dispatcher.assigned(P, 0, {}, [])
        dispatcher.fetched(P, 0, 0, task("a"))
        assert isinstance(dispatcher.take(), Start)
    for worker_id in ("w1", "w2"):
        log.attempts.append(event("a", "started"))
        log.attempts[-1].worker_id = worker_id
    assert [first.read(log.happened(i)) for i in range(2)] == [[], []]
    assert second.read(log.happened(0)) == [Abandon("a-1", log.attempts[0])]
    assert second.read(log.happened(1)) == []
    assert (first.in_hand, second.in_hand) == (1, 0)
    log.attempts.append(event("a", "succeeded"))
    assert second.read(log.happened(2)) == []
    assert second.positions() == {P: 1}


def test_repeats_are_finished_at_once() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, {b"done": 0}, [])
    assert dispatcher.fetched(P, 0, 0, task("done")) is None
    assert dispatcher.fetched(P, 1, 0, task("a")) is not None
    assert dispatcher.fetched(P, 2, 0, task("a")) is None
    assert dispatcher.repeated == 2
    assert dispatcher.positions() == {P: 1}


def test_a_task_that_runs_here_is_fetched_again_after_a_rebalance() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    dispatcher.take()
    log.attempts.append(event("a", "started"))
    dispatcher.revoked([P])
    dispatcher.assigned(P, 0, {}, [log.happened(0)])
    assert dispatcher.fetched(P, 0, 0, task("a")) is None
    assert dispatcher.take() is None
    assert dispatcher.positions() == {P: 0}
    log.attempts.append(event("a", "succeeded"))
    dispatcher.read(log.happened(1))
    assert dispatcher.positions() == {P: 1}


def test_a_task_whose_attempt_has_ended_is_finished_at_once() -> None:
    log = Log()
    log.attempts += [event("a", "started"), event("a", "failed", final=False)]
    dispatcher = fresh(log)
    assert dispatcher.fetched(P, 0, 0, task("a")) is None
    assert dispatcher.positions() == {P: 1}


def test_a_retry_is_a_task_of_its_own() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    dispatcher.take()
    log.attempts += [event("a", "started"), event("a", "failed", final=False)]
    dispatcher.read(log.happened(0))
    dispatcher.read(log.happened(1))
    assert dispatcher.positions() == {P: 1}
    dispatcher.fetched(P, 1, 0, task("a", attempt=2))
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert start.attempt_id == "a-2"


def test_an_attempt_elsewhere_is_waited_for_until_it_is_lost() -> None:
    log = Log()
    log.attempts.append(event("a", "started"))
    dispatcher = fresh(log)
    dispatcher.fetched(P, 0, 0, task("a"))
    assert dispatcher.take() is None
    log.attempts.append(event("a", "lost"))
    dispatcher.read(log.happened(1))
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert (start.attempt_id, start.delivery) == ("a-1.2", 2)


def test_lost_while_it_runs_here_abandons_it() -> None:
    dispatcher, log = Dispatcher(), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
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
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    dispatcher.fetched(P, 1, 0, task("b"))
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
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    dispatcher.fetched(P, 1, 0, task("b"))
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
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    start = dispatcher.take()
    assert isinstance(start, Start)
    dispatcher.unstarted(start)
    again = dispatcher.take()
    assert isinstance(again, Start)
    assert again.attempt_id == start.attempt_id


def test_an_unreadable_record_holds_the_position_until_it_is_put_away() -> None:
    dispatcher = Dispatcher()
    dispatcher.assigned(P, 0, {b"a": 0}, [])
    dispatcher.unreadable(P, 0)
    dispatcher.fetched(P, 1, 0, task("a"))
    assert dispatcher.positions() == {P: 0}
    dispatcher.put_away(P, 0)
    assert dispatcher.positions() == {P: 2}


def lost(reason: str, delivery: int) -> AttemptEvent:
    end = event("a", "lost", delivery=delivery)
    end.lost_reason = reason
    return end


def deliver(dispatcher: Dispatcher, log: Log, reason: str) -> Start | GiveUp:
    """Takes the next delivery and loses it; what was taken."""
    taken = dispatcher.take()
    assert isinstance(taken, Start | GiveUp)
    if isinstance(taken, Start):
        log.attempts += [event("a", "started", delivery=taken.delivery), lost(reason, taken.delivery)]
        for offset in (len(log.attempts) - 2, len(log.attempts) - 1):
            dispatcher.read(log.happened(offset))
    return taken


def test_a_task_whose_delivery_was_lost_runs_alone_and_is_given_up_in_the_end() -> None:
    dispatcher, log = Dispatcher(max_deliveries=3), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    taken = [deliver(dispatcher, log, reason) for reason in ("lease", "child_died", "child_died", "never")]
    starts, last = taken[:3], taken[3]
    assert [(s.delivery, s.alone, s.child_deaths) for s in starts if isinstance(s, Start)] == [
        (1, False, 0),
        (2, True, 0),
        (3, True, 1),
    ]
    assert isinstance(last, GiveUp)
    assert (last.attempt_id, last.entry.losses, last.entry.child_deaths) == ("a-1.4", 3, 2)
    assert dispatcher.take() is None
    assert dispatcher.positions() == {P: 0}
    log.attempts.append(event("a", "failed", delivery=4))
    dispatcher.read(log.happened(len(log.attempts) - 1))
    assert dispatcher.positions() == {P: 1}


def test_what_was_given_back_is_no_fault_of_the_task() -> None:
    dispatcher, log = Dispatcher(max_deliveries=1), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    taken = [deliver(dispatcher, log, "given_back") for _ in range(4)]
    assert all(isinstance(t, Start) and not t.alone for t in taken)


def test_the_next_owner_knows_what_was_lost_before() -> None:
    first, log = Dispatcher(), Log()
    first.assigned(P, 0, {}, [])
    first.fetched(P, 0, 0, task("a"))
    deliver(first, log, "child_died")
    second = fresh(log)
    second.fetched(P, 0, 0, task("a"))
    start = second.take()
    assert isinstance(start, Start)
    assert (start.delivery, start.alone, start.child_deaths) == (2, True, 1)


def test_a_late_start_of_an_old_delivery_holds_nothing_up() -> None:
    dispatcher, log = Dispatcher("w2"), Log()
    dispatcher.assigned(P, 0, {}, [])
    dispatcher.fetched(P, 0, 0, task("a"))
    log.attempts += [event("a", "started", delivery=2), lost("lease", 2), event("a", "started", delivery=1)]
    for offset in range(3):
        dispatcher.read(log.happened(offset))
    start = dispatcher.take()
    assert isinstance(start, Start)
    assert start.delivery == 3
