"""The one factory of Kafka clients. Any librdkafka property of `settings.kafka` wins over what stands here."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.streams.errors import SettingsError
from headrace.streams.kafka.client_log import Seldom
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)
log.addFilter(Seldom())
C = TypeVar("C")

# The producer's own limit counts key, headers and framing on top of the value.
FRAMING_BYTES = 64 * 1024
BATCH_LINGER_MS = 20  # of writers that nobody waits for: halves their CPU against 0
TRANSACTION_LINGER_MS = 0  # a commit flushes anyway
FETCH_WAIT_MS = 500  # Kafka's default
THRIFTY_MESSAGES = 2_000  # a partition
THRIFTY_BYTES = 256 * 1024  # a partition and fetch; a larger batch comes all the same (KIP-74)
THRIFTY_PAUSE_MS = 5  # while enough is queued; at librdkafka's 1000 so few messages are gone long before the next fetch
RECONNECT_BACKOFF_MS = 1000  # at the default of ten seconds a broker that is back is not noticed for so long
RETRY_BACKOFF_MS = 10  # after CONCURRENT_TRANSACTIONS; at the default of 100 the p99 of a commit is five times larger


def _common(settings: Settings, client_id: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": settings.bootstrap,
        "client.id": client_id,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MS,
    }


def producer_config(
    settings: Settings, client_id: str, *, linger_ms: float = BATCH_LINGER_MS, transactional_id: str | None = None
) -> dict[str, Any]:
    """Properties of a producer: idempotent, acks=all, murmur2 (Java's partitioner, not librdkafka's CRC32), lz4."""
    config = {
        **_common(settings, client_id),
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
        "linger.ms": linger_ms,
        "message.max.bytes": settings.max_message_bytes + FRAMING_BYTES,
    }
    if transactional_id is not None:
        config |= {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": int(settings.transaction_timeout.total_seconds() * 1000),
            "retry.backoff.ms": RETRY_BACKOFF_MS,
            "linger.ms": TRANSACTION_LINGER_MS,
        }
    return config | settings.kafka


def consumer_config(
    settings: Settings,
    client_id: str,
    *,
    group: str | None = None,
    instance_id: str | None = None,
    several_topics: bool = False,
    fetch_wait_ms: int = FETCH_WAIT_MS,
    fetch_pause_ms: int | None = None,
    thrifty: bool = False,
) -> dict[str, Any]:
    """Properties of a consumer: read_committed, no automatic commit.

    Args:
        group: short name of its group; none for one that assigns its partitions itself.
        instance_id: static membership (KIP-345).
        several_topics: the group reads several co-partitioned topics, so that a partition number must come as a
            whole: the range assignor does that, sticky and uniform ones do not.
        fetch_wait_ms: how long the broker holds a fetch that finds nothing. News wakes it at once; what a shorter
            one brings is an earlier end-of-partition mark, and more requests of idle consumers.
        fetch_pause_ms: no fetch while messages of the one before wait to be polled, nor for so long after. Under load
            that makes few, well filled fetches, each of which costs the broker something for every partition.
        thrifty: little is fetched ahead, for who reads a topic as a whole: a million small records that wait to be
            polled take half a gigabyte.
    """
    config = {
        **_common(settings, client_id),
        # librdkafka demands a group id even of a consumer that never joins one.
        "group.id": settings.group(group) if group else f"{settings.prefix}.nobody.{client_id}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": fetch_wait_ms,
        "enable.partition.eof": False,
        "fetch.message.max.bytes": settings.max_message_bytes,
        "receive.message.max.bytes": max(100_000_000, 4 * settings.max_message_bytes),
        "retry.backoff.ms": RETRY_BACKOFF_MS,
    }
    if fetch_pause_ms is not None:
        config |= {"queued.min.messages": 1, "fetch.queue.backoff.ms": fetch_pause_ms}
    if thrifty:
        config |= {
            "queued.min.messages": THRIFTY_MESSAGES,
            "fetch.message.max.bytes": THRIFTY_BYTES,
            "fetch.queue.backoff.ms": THRIFTY_PAUSE_MS,
        }
    if group:
        config["group.protocol"] = settings.group_protocol
        if settings.group_protocol == "classic":
            config["session.timeout.ms"] = int(settings.session_timeout.total_seconds() * 1000)
            config["partition.assignment.strategy"] = "range" if several_topics else "cooperative-sticky"
        elif several_topics:
            config["group.remote.assignor"] = "range"
        if instance_id:
            config["group.instance.id"] = instance_id
    return config | {k: v for k, v in settings.kafka.items() if k not in ("linger.ms", "acks", "compression.type")}


def make_producer(
    settings: Settings,
    client_id: str,
    *,
    linger_ms: float = BATCH_LINGER_MS,
    transactional_id: str | None = None,
    on_error: Callable[[KafkaError], None] | None = None,
) -> Producer:
    """A producer with `producer_config`.

    Args:
        on_error: hears of lost connections, on the thread that polls or flushes.
    """
    config = producer_config(settings, client_id, linger_ms=linger_ms, transactional_id=transactional_id)
    return _made(Producer, {**config, "error_cb": on_error} if on_error else config)


def make_consumer(
    settings: Settings,
    client_id: str,
    *,
    group: str | None = None,
    instance_id: str | None = None,
    several_topics: bool = False,
    fetch_wait_ms: int = FETCH_WAIT_MS,
    fetch_pause_ms: int | None = None,
    eof: bool = False,
    thrifty: bool = False,
) -> Consumer:
    """A consumer with `consumer_config`; all its calls belong on the thread that polls it.

    Args:
        eof: report the end of each partition as an error message with code `_PARTITION_EOF`.
    """
    config = consumer_config(
        settings,
        client_id,
        group=group,
        instance_id=instance_id,
        several_topics=several_topics,
        fetch_wait_ms=fetch_wait_ms,
        fetch_pause_ms=fetch_pause_ms,
        thrifty=thrifty,
    )
    return _made(Consumer, {**config, "enable.partition.eof": eof})


def make_admin(settings: Settings, client_id: str = "headrace-admin") -> AdminClient:
    """An admin client."""
    return _made(AdminClient, {**_common(settings, client_id), **settings.kafka})


def _made(client: Callable[..., C], config: dict[str, Any]) -> C:
    try:
        return client(config, logger=log)
    except KafkaException as error:
        cause: Any = error.args[0]
        if cause.code() != KafkaError._INVALID_ARG:  # pyright: ignore[reportPrivateUsage]
            raise
        raise SettingsError(f"kafka.*: {cause.str()}; the names are librdkafka's") from error
