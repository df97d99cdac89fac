"""The producer for asyncio, on a real broker."""

import asyncio
import ctypes
import os
import signal
import time
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from headrace.schemas.records import Reward, Task
from headrace.streams.codec import Codec, EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
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


async def test_what_cannot_be_sent_is_refused_at_once(make_settings) -> None:
    settings = make_settings(claim_check="off")
    producer = AckedProducer(settings, "test")
    with pytest.raises(EncodeError):
        producer.send(Task(rollout_id="ro", input="1", enqueued_at=1 << 70))
    with pytest.raises(RecordTooLargeError):
        producer.send(Task(rollout_id="ro", input="x" * (settings.max_message_bytes + 1), enqueued_at=0))
    largest = Task(rollout_id="ro", input="x" * (settings.max_message_bytes - 400), enqueued_at=0)
    await producer.send(largest)  # topic, producer and consumer have one limit
    (message,) = read_topic(settings, settings.topic("tasks"), range(3), client_id="test")
    assert len(message.value() or b"") > settings.max_message_bytes - 400
    await producer.close()


def fail_for_good(producer: AckedProducer) -> None:
    """librdkafka's own test hook for fatal errors; the handle stands behind the head of the Python object."""
    (library,) = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka*")
    handle = ctypes.c_void_p.from_address(id(producer._producer) + object.__basicsize__)
    raised = ctypes.CDLL(str(library)).rd_kafka_test_fatal_error(
        handle, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, b"the test says so"
    )
    assert raised == 0


async def test_a_client_that_has_failed_for_good_is_replaced_and_nothing_is_lost(settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    await producer.send(reward(0))
    sent = [producer.send(reward(n)) for n in range(1, 500)]
    fail_for_good(producer)
    for n in range(500, 1000):
        sent.append(producer.send(reward(n)))
        if n % 100 == 0:  # some come while the client is being replaced, and stand behind those before them
            await asyncio.sleep(0)
            time.sleep(0.05)  # noqa: ASYNC251  # the loop is busy, the thread that replaces the client is not
    await asyncio.wait_for(asyncio.gather(*sent), 60)
    assert producer._clients == 2
    await producer.send(reward(1000))
    codec = Codec(settings)
    messages = read_topic(settings, settings.topic("rewards"), range(settings.partitions), client_id="test")
    ids = [codec.decode_as(Reward, m.value()).reward_id for m in messages]
    assert list(dict.fromkeys(ids)) == [str(n) for n in range(1001)]
    await producer.close()


async def test_brokers_that_are_away_are_insisted_on(make_settings, kafka) -> None:
    if not kafka.pid:
        pytest.skip("the broker is not this suite's to stop")
    settings = make_settings(kafka={"message.timeout.ms": 1000})
    producer = AckedProducer(settings, "test", linger_ms=0)
    await producer.insist(producer.message(reward(0)))
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeliveryError):
            await producer.send(reward(1))
        insisting = asyncio.ensure_future(producer.insist(producer.message(reward(2))))
        await asyncio.wait({insisting}, timeout=2)
        assert not insisting.done()
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    await asyncio.wait_for(insisting, 60)
    await producer.close()
