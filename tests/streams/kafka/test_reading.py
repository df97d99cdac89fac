"""Ends, reading to an end, and following, where a transaction is open."""

import threading
import time

import pytest

from headrace.schemas.records import Record, Reward, WorkerState
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_producer
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.kafka.reading import BEGINNING, read_to_end, read_topic
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def test_the_end_counts_what_an_open_transaction_wrote(settings: Settings) -> None:
    topic = settings.topic("rewards")
    producer = make_producer(settings, "test", transactional_id=f"{settings.prefix}.test")
    producer.init_transactions()
    admin = make_admin(settings)
    assert end_offsets(admin, [(topic, 0), (topic, 1)]) == {(topic, 0): 0, (topic, 1): 0}
    producer.begin_transaction()
    producer.produce(topic, b"a", partition=0)
    producer.flush()
    assert end_offsets(admin, [(topic, 0)]) == {(topic, 0): 1}

    found: list[bytes | None] = []

    def read() -> None:
        found.extend(m.value() for m in read_to_end(settings, {(topic, 0): BEGINNING}, client_id="test"))

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(1.0)
    assert reader.is_alive()  # it waits for the transaction's end, and does not take the last stable offset for it
    producer.commit_transaction()
    reader.join(60)
    assert found == [b"a"]


def test_aborted_records_are_not_read(settings: Settings) -> None:
    topic = settings.topic("rewards")
    producer = make_producer(settings, "test", transactional_id=f"{settings.prefix}.test")
    producer.init_transactions()
    for value, commits in ((b"a", True), (b"b", False), (b"c", True), (b"d", False)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush()
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    assert [m.value() for m in read_topic(settings, topic, [0, 1, 2], client_id="test")] == [b"a", b"c"]


def test_reading_stops_at_the_given_end(settings: Settings) -> None:
    topic = settings.topic("rewards")
    producer = make_producer(settings, "test")
    for n in range(10):
        producer.produce(topic, str(n).encode(), partition=1)
    producer.flush()
    at = (topic, 1)
    values = [m.value() for m in read_to_end(settings, {at: 3}, ends={at: 7}, client_id="test")]
    assert values == [b"3", b"4", b"5", b"6"]
    assert list(read_to_end(settings, {at: 10}, client_id="test")) == []
    assert list(read_to_end(settings, {}, client_id="test")) == []


def test_a_follower_passes_over_what_it_cannot_read_or_does_not_want(settings: Settings) -> None:
    make = MessageMaker(settings)
    producer = make_producer(settings, "test")

    def produce(worker_id: str) -> None:
        message = make(
            WorkerState(worker_id=worker_id, kind="k", host="h", pid=1, status="s", started_at=0, last_heartbeat_at=0)
        )
        producer.produce(message.topic, message.value, message.key)

    def wants(message: Message) -> bool:
        asked.append(message.key())
        return message.key() != b"unwanted"

    asked: list[bytes | None] = []
    seen: list[Record] = []
    produce("first")
    producer.produce(settings.topic("workers"), b"garbage", b"broken")
    produce("unwanted")
    make_tombstone = make.tombstone("WorkerState", "gone")
    producer.produce(make_tombstone.topic, None, make_tombstone.key)
    produce("last")
    producer.flush()
    follower = TopicFollower(settings, "workers", lambda r, m: seen.append(r), client_id="test", wants=wants).start()
    assert [r.worker_id for r in seen if isinstance(r, WorkerState)] == ["first", "last"]
    assert asked == [b"first", b"broken", b"unwanted", b"last"]
    produce("news")
    producer.flush()
    deadline = time.monotonic() + 60
    while len(seen) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    follower.close()


def test_a_follower_of_several_partitions_has_all_of_them_when_it_starts(settings: Settings) -> None:
    make = MessageMaker(settings)
    producer = make_producer(settings, "test")
    for n in range(60):
        message = make(Reward(rollout_id=f"ro-{n}", reward_id="r", primary=True, value=1.0, source="agent", at=n))
        producer.produce(message.topic, message.value, message.key)
    producer.flush()
    seen: list[Record] = []
    follower = TopicFollower(
        settings, "rewards", lambda r, m: seen.append(r), client_id="test", partitions=range(settings.partitions)
    )
    follower.start().close()
    assert sorted(r.at for r in seen if isinstance(r, Reward)) == list(range(60))


def test_a_follower_that_found_no_broker_can_be_closed(settings: Settings) -> None:
    follower = TopicFollower(settings, "rewards", lambda record, message: None, client_id="test")
    follower.close()
