"""Reading topics outside any group, up to a noted end."""

import logging
import time
from collections.abc import Iterable, Iterator
from typing import cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
FETCH_WAIT_MS = 20  # the end of a partition is known when a fetch came back empty
BATCH = 1000
BEGINNING = -2  # librdkafka's OFFSET_BEGINNING
PATIENCE_SECONDS = 60.0


def poll_batch(consumer: Consumer, seconds: float, most: int = BATCH) -> list[Message]:
    """What has come, waiting up to `seconds` for the first message; events of the partitions are among them.

    `consume` alone waits for a full batch, and so makes each message as late as its time-out.
    """
    first = cast(Message | None, consumer.poll(seconds))
    return [] if first is None else [first, *cast(list[Message], consumer.consume(most - 1, 0))]


def read_to_end(
    settings: Settings,
    starts: dict[tuple[str, int], int],
    *,
    client_id: str,
    ends: dict[tuple[str, int], int] | None = None,
    timeout: float = PATIENCE_SECONDS,
) -> Iterator[Message]:
    """The records of partitions from given offsets up to their read_uncommitted ends as of now (or as given).

    A record of a transaction that is still open is waited for until the brokers have ended it.

    Args:
        starts: by (full topic name, partition); `BEGINNING` is the oldest record kept.

    Raises:
        BrokerUnavailableError: no progress for `timeout` seconds.
    """
    if not starts:
        return
    if ends is None:
        ends = end_offsets(make_admin(settings, client_id), starts)
    left = {tp for tp, end in ends.items() if end > 0 and not starts[tp] >= end}
    consumer = make_consumer(settings, client_id, eof=True, fetch_wait_ms=FETCH_WAIT_MS, thrifty=True)
    try:
        consumer.assign([TopicPartition(t, p, starts[t, p]) for t, p in left])
        deadline = time.monotonic() + timeout
        while left:
            batch = poll_batch(consumer, POLL_SECONDS)
            if batch:
                deadline = time.monotonic() + timeout
            elif time.monotonic() > deadline:
                raise BrokerUnavailableError(f"nothing came from {sorted(left)} for {timeout:.0f} s")
            for message in batch:
                tp = (message.topic() or "", message.partition() or 0)
                offset = message.offset() or 0
                error = message.error()
                if error is None:
                    if offset < ends[tp]:
                        yield message
                    if offset + 1 >= ends[tp]:
                        left.discard(tp)
                elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                    if offset >= ends[tp]:
                        left.discard(tp)
                else:
                    log.warning("%s[%d]: %s", *tp, error.str())
    finally:
        consumer.close()


def read_topic(settings: Settings, topic: str, partitions: Iterable[int], *, client_id: str) -> Iterator[Message]:
    """All committed records of a topic (full name) that are there now."""
    yield from read_to_end(settings, {(topic, p): BEGINNING for p in partitions}, client_id=client_id)
