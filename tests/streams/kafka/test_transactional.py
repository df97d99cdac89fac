"""The transactional loop on real Kafka, with a small processor: it copies each attempt event to rollouts."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import NewPartitions, OffsetSpec

from headrace.schemas.records import AttemptEvent, LogPosition, Record, RolloutState, Task
from headrace.streams.errors import FencedError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.messages import MessageMaker, OutMessage
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.kafka.transactional import LogEntry, Output, Processor, TransactionalLoop
from headrace.streams.kafka.transactional.assignment import aligned
from headrace.streams.kafka.transactional.errors import AssignmentError
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


class Copier(Processor):
    """A RolloutState for each event, whose `attempts` count the events of the rollout so far."""

    name = "lifecycle"
    topics = ("tasks", "attempts")
    gap_seconds = 0.01
    fetch_pause_ms = 5

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._message = MessageMaker(settings)
        self.owned: set[int] = set()
        self.restored: list[int] = []
        self.states: list[tuple[int, RolloutState]] = []
        self.positions: list[LogPosition] = []
        self.with_positions = False
        self.fail_once = False
        self.only_after = False
        self.hold: threading.Event | None = None
        self.holding = threading.Event()
        self.timers = 0

    def restore(self, partitions: Sequence[int]) -> None:
        self.owned.update(partitions)
        self.restored += partitions

    def drop(self, partitions: Iterable[int]) -> None:
        gone = set(partitions)
        self.owned -= gone
        self.states = [s for s in self.states if s[0] not in gone]

    def restart_timers(self, now: int) -> None:
        self.timers += 1

    def read(self, record: Record, entry: LogEntry) -> None:
        assert entry.partition in self.owned
        if isinstance(record, AttemptEvent):
            state = RolloutState(rollout_id=record.rollout_id, status="running", enqueued_at=entry.offset)
            self.states.append((entry.partition, state))

    @property
    def ready(self) -> bool:
        return bool(self.states) or self.only_after

    def collect(self, now: int) -> Output:
        messages = [self._message(state) for _, state in self.states]
        self.states = []
        if messages and self.fail_once:
            self.fail_once = False
            messages.append(OutMessage("no such topic!", b"k", b"v"))
        if not (self.only_after or (self.with_positions and messages) or (self.hold and messages)):
            return Output(messages)
        self.only_after = False

        def follow(positions: list[LogPosition]) -> list[OutMessage]:
            self.positions += positions
            if self.hold is not None:
                self.holding.set()
                assert self.hold.wait(60)
                self.hold = None
                return []
            return [self._message(RolloutState(rollout_id="after", status="queuing", enqueued_at=0))]

        return Output(messages, follow)

    def committed(self, positions: list[LogPosition]) -> None:
        self.positions += positions


class Running:
    """A loop on a thread."""

    def __init__(self, settings: Settings, worker_id: str, **attributes: Any) -> None:
        self.processor = Copier(settings)
        for name, value in attributes.items():
            setattr(self.processor, name, value)
        self.loop = TransactionalLoop(settings, self.processor, worker_id)
        self.error: Exception | None = None
        self.ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.loop.run(self.ready.set)
        except Exception as error:
            self.error = error
            self.ready.set()

    def wait_ready(self) -> "Running":
        assert self.ready.wait(60)
        return self

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self.loop.stop()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def running(settings: Settings) -> Iterator[Callable[..., Running]]:
    """Starts loops that end with the test."""
    loops: list[Running] = []

    def start(worker_id: str = "w", **attributes: Any) -> Running:
        loops.append(Running(settings, worker_id, **attributes))
        return loops[-1]

    yield start
    for loop in loops:
        loop.stop()


def event(n: int) -> AttemptEvent:
    return AttemptEvent(rollout_id=f"ro{n}", attempt_id="a", type="heartbeat", at=0)


def copies(log: Any) -> list[str]:
    return sorted(record.rollout_id for record in log.records("rollouts"))


def test_each_record_is_handled_once_over_a_restart(log: Any, running: Any, wait_for: Any):
    first = running().wait_ready()
    log.write(*(event(n) for n in range(30)))
    wait_for(lambda: len(log.records("rollouts")) >= 30)
    first.stop()
    log.write(*(event(n) for n in range(30, 50)))
    running().wait_ready()
    expected = sorted(f"ro{n}" for n in range(50))
    wait_for(lambda: len(log.records("rollouts")) >= 50)
    assert copies(log) == expected
    wait_for(lambda: first.processor.timers >= 1)


def test_partitions_move_to_a_second_member_and_nothing_is_done_twice(log: Any, running: Any, wait_for: Any):
    first = running("w1").wait_ready()
    log.write(*(event(n) for n in range(20)))
    second = running("w2")
    wait_for(lambda: second.processor.owned and first.processor.owned)
    for start in range(20, 80, 20):
        log.write(*(event(n) for n in range(start, start + 20)))
    wait_for(lambda: len(log.records("rollouts")) >= 80)
    assert first.processor.owned.isdisjoint(second.processor.owned)
    assert first.processor.owned | second.processor.owned == {0, 1, 2}
    second.stop()
    wait_for(lambda: first.processor.owned == {0, 1, 2})
    log.write(*(event(n) for n in range(80, 100)))
    wait_for(lambda: len(log.records("rollouts")) >= 100)
    assert copies(log) == sorted(f"ro{n}" for n in range(100))
    assert "sessions_lost" not in first.processor.counters


def test_positions_are_known_within_the_transaction(log: Any, running: Any, wait_for: Any):
    loop = running(with_positions=True).wait_ready()
    log.write(event(1))
    wait_for(lambda: len(log.records("rollouts")) == 2)
    wait_for(lambda: len(loop.processor.positions) == 2)
    by_key = {m.key().decode(): (m.partition(), m.offset()) for m in log.messages("rollouts")}
    assert [(p.partition, p.offset) for p in loop.processor.positions] == [by_key["ro1"], by_key["after"]]


def test_what_follows_no_message_is_written_though_no_offset_moves(log: Any, running: Any, wait_for: Any):
    running(only_after=True).wait_ready()
    wait_for(lambda: copies(log) == ["after"])


def test_a_failed_transaction_is_done_again_with_new_clients(log: Any, running: Any, wait_for: Any):
    loop = running(fail_once=True).wait_ready()
    log.write(*(event(n) for n in range(5)))
    wait_for(lambda: len(log.records("rollouts")) >= 5)
    assert copies(log) == [f"ro{n}" for n in range(5)]
    assert loop.processor.counters["sessions_lost"] == 1
    assert len(loop.processor.restored) == 6


def test_who_takes_the_id_fences_the_other(log: Any, running: Any, wait_for: Any):
    old = running("same").wait_ready()
    log.write(event(1))
    wait_for(lambda: len(log.records("rollouts")) == 1)
    new = running("same").wait_ready()

    def fenced() -> bool:
        log.write(*(event(n) for n in range(2, 12)))
        return not old.alive

    wait_for(fenced)
    assert isinstance(old.error, FencedError)
    assert new.alive


def test_what_cannot_be_read_goes_to_the_dead_letters_once(log: Any, settings: Settings, running: Any, wait_for: Any):
    right = partition_of("ro1", settings.partitions)
    codec = MessageMaker(settings)
    good = codec(event(1))
    log.write_raw("attempts", b"ro1", b"junk")
    log.write_raw("attempts", None, good.value, right)
    log.write_raw("attempts", b"ro1", good.value, (right + 1) % settings.partitions)
    log.write_raw("attempts", b"ro1", codec(event(2)).value, right)
    log.write_raw("attempts", b"ro1", codec(Task(rollout_id="ro1", input="1", enqueued_at=0)).value, right)
    log.write_raw("attempts", b"ro1", None, right)
    log.write(event(1))
    first = running().wait_ready()
    wait_for(lambda: len(log.records("rollouts")) == 1)
    wait_for(lambda: len(log.messages("attempts", dead=True)) >= 6)
    first.stop()
    running().wait_ready()
    log.write(event(3))
    wait_for(lambda: len(log.records("rollouts")) == 2)
    letters = [parse(m) for m in log.messages("attempts", dead=True)]
    assert sorted(letter.reason for letter in letters) == [
        "empty",
        "null_key",
        "unknown_framing",
        "wrong_key",
        "wrong_partition",
        "wrong_record",
    ]
    assert {letter.source_topic for letter in letters} == {settings.topic("attempts")}
    junk = next(letter for letter in letters if letter.reason == "unknown_framing")
    assert (junk.key, junk.value, junk.source_partition) == (b"ro1", b"junk", right)


def test_offsets_reach_the_end_without_output(log: Any, settings: Settings, running: Any, wait_for: Any):
    running().wait_ready()
    log.write(*(Task(rollout_id=f"ro{n}", input="1", enqueued_at=0) for n in range(9)))
    consumer = make_consumer(settings, "lag", group="lifecycle")

    def committed() -> int:
        asked = [TopicPartition(settings.topic("tasks"), p) for p in range(settings.partitions)]
        return sum(max(0, tp.offset) for tp in cast(list[Any], consumer.committed(asked, 20)))

    wait_for(lambda: committed() == 9)
    consumer.close()


def test_aligned():
    assert aligned({("a", 1), ("b", 1), ("a", 4), ("b", 4)}, ("a", "b")) == {1, 4}
    assert aligned(set(), ("a", "b")) == set()
    with pytest.raises(AssignmentError, match=r"missing: \{'b': \[4\]\}"):
        aligned({("a", 1), ("b", 1), ("a", 4)}, ("a", "b"))


def test_a_transaction_that_times_out_is_done_again_by_a_new_producer(
    make_settings: Callable[..., Settings], log_of: Any, wait_for: Any
):
    settings = make_settings(transaction_timeout=timedelta(seconds=1))
    log = log_of(settings)
    hold = threading.Event()
    loop = Running(settings, "w", hold=hold).wait_ready()
    try:
        log.write(*(event(n) for n in range(5)))
        assert loop.processor.holding.wait(30)
        wait_for(lambda: nothing_open(settings))  # the brokers abort it after a second, at their next look
        hold.set()
        wait_for(lambda: len(log.records("rollouts")) >= 5)
        assert copies(log) == [f"ro{n}" for n in range(5)]
        assert loop.processor.counters["sessions_lost"] >= 1  # the next one may take longer than a second too
        assert loop.alive
    finally:
        hold.set()
        loop.stop()


def nothing_open(settings: Settings) -> bool:
    """Whether readers of rollouts with read_committed get to its end."""
    admin = make_admin(settings)
    partitions = [(settings.topic("rollouts"), p) for p in range(settings.partitions)]
    asked: Any = {TopicPartition(t, p): OffsetSpec.latest() for t, p in partitions}
    stable: Any = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=10)
    return {(tp.topic, tp.partition): f.result().offset for tp, f in stable.items()} == end_offsets(admin, partitions)


def test_a_rebalance_in_the_middle_of_a_transaction_doubles_nothing(log: Any, running: Any, wait_for: Any):
    hold = threading.Event()
    first = running("w1", hold=hold).wait_ready()
    log.write(*(event(n) for n in range(20)))
    assert first.processor.holding.wait(30)
    second = running("w2")
    wait_for(lambda: members(log.settings) == 2)
    hold.set()
    wait_for(lambda: second.processor.owned and first.processor.owned)
    log.write(*(event(n) for n in range(20, 40)))
    wait_for(lambda: len(log.records("rollouts")) >= 40)
    assert copies(log) == sorted(f"ro{n}" for n in range(40))
    assert first.processor.owned | second.processor.owned == {0, 1, 2}


def members(settings: Settings) -> int:
    group = settings.group("lifecycle")
    admin = make_admin(settings)
    described: Any = admin.describe_consumer_groups([group])[group].result(20)
    return len(described.members)


def test_topics_of_different_partition_counts_stop_the_group(settings: Settings, running: Any, wait_for: Any):
    grown = NewPartitions(settings.topic("tasks"), settings.partitions + 1)
    admin = make_admin(settings)
    admin.create_partitions([grown])[settings.topic("tasks")].result(20)
    loop = running()
    wait_for(lambda: not loop.alive)
    assert isinstance(loop.error, AssignmentError)
    assert "not aligned" in str(loop.error)


def test_the_command_ends_with_78_when_fenced(log: Any, start_processor: Any, wait_for: Any):
    old = start_processor("lifecycle", "same")
    new = start_processor("lifecycle", "same")

    def fenced() -> bool:
        log.write(Task(rollout_id=f"ro{os.urandom(4).hex()}", input="1", enqueued_at=0))
        return old.poll() is not None

    wait_for(fenced)
    assert old.returncode == 78
    assert new.poll() is None
