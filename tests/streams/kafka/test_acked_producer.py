"""The producer for asyncio, on a real broker."""

import asyncio

import pytest

from headrace.schemas.records import Reward, Task
from headrace.streams.codec import EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def reward(n: int, rollout_id: str = "ro") -> Reward:
    return Reward(rollout_id=rollout_id, reward_id=str(n), primary=True, value=float(n), source="agent", at=n)


async def test_a_future_is_done_when_the_record_is_in_the_log(settings: Settings) -> None:
    producer = AckedProducer(settings, "test", linger_ms=0)
    partition, offset = await producer.send(reward(0), [("traceparent", "00-1")])
    (message,) = read_topic(settings, settings.topic("rewards"), [partition], client_id="test")
    assert (message.offset(), message.key(), message.headers()) == (offset, b"ro", [("traceparent", b"00-1")])
    assert partition == partition_of("ro", settings.partitions)
    assert await producer.close() == 0


async def test_the_order_of_one_key_is_kept(settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    positions = await asyncio.gather(*(producer.send(reward(n)) for n in range(2000)))
    assert [offset for _, offset in positions] == list(range(2000))
    await producer.close()


async def test_segments_of_an_id_share_its_partition(settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    for n in range(12):
        (first, _), (second, _) = await asyncio.gather(
            producer.send(reward(0, f"ro-{n}")), producer.send(reward(0, f"ro-{n}~2"))
        )
        assert first == second
    await producer.close()


async def test_what_cannot_be_sent_is_refused_at_once(settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    with pytest.raises(EncodeError):
        producer.send(Task(rollout_id="ro", input="1", enqueued_at=1 << 70))
    with pytest.raises(RecordTooLargeError):
        producer.send(Task(rollout_id="ro", input="x" * (settings.max_message_bytes + 1), enqueued_at=0))
    largest = Task(rollout_id="ro", input="x" * (settings.max_message_bytes - 100), enqueued_at=0)
    await producer.send(largest)  # topic, producer and consumer have one limit
    (message,) = read_topic(settings, settings.topic("tasks"), range(3), client_id="test")
    assert len(message.value() or b"") > settings.max_message_bytes - 100
    await producer.close()
