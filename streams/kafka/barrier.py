"""Where a partition ends now, open transactions included.

The watermarks and end-of-partition marks of a read_committed consumer stop at the last stable offset; only
`list_offsets(READ_UNCOMMITTED)` sees what an open transaction has written (KIP-98, KIP-734).
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.streams.errors import BrokerUnavailableError

TIMEOUT_SECONDS = 30.0
ATTEMPT_SECONDS = 1.0  # librdkafka looks for a leader as long as it may, on metadata that may be stale
RETRY_SECONDS = 0.02
NONE = -1  # no record at or after a time
NO_ANSWER = KafkaError(KafkaError._TIMED_OUT)  # pyright: ignore[reportPrivateUsage]


def end_offsets(
    admin: AdminClient, partitions: Iterable[tuple[str, int]], *, patience: float = TIMEOUT_SECONDS
) -> dict[tuple[str, int], int]:
    """The read_uncommitted end of each (topic, partition).

    A partition without a leader (its topic was made a moment ago, or its broker has gone) is asked about again.

    Raises:
        BrokerUnavailableError: no answer within `patience` seconds.
    """
    latest = OffsetSpec.latest()
    return _offsets(admin, dict.fromkeys(partitions, latest), patience, least=0)


def start_offsets(admin: AdminClient, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The offset of the oldest record that each (topic, partition) keeps; its end where it is empty.

    Raises:
        BrokerUnavailableError: no answer.
    """
    earliest = OffsetSpec.earliest()
    return _offsets(admin, dict.fromkeys(partitions, earliest), TIMEOUT_SECONDS, least=0)


def offsets_at(admin: AdminClient, times: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """The first offset of each (topic, partition) at or after an append time in milliseconds since the epoch.

    -1 where there is none. Asks again as `end_offsets` does.

    Raises:
        BrokerUnavailableError: no answer.
    """
    specs = {at: OffsetSpec.for_timestamp(time) for at, time in times.items()}
    return _offsets(admin, specs, TIMEOUT_SECONDS, least=NONE)


def _offsets(
    admin: AdminClient, specs: dict[tuple[str, int], Any], patience: float, *, least: int
) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    left = list(specs)
    deadline = time.monotonic() + patience
    while left:
        failed: dict[tuple[str, int], KafkaException] = {}
        wanted: dict[TopicPartition, Any] = {TopicPartition(t, p): specs[t, p] for t, p in left}
        answers = cast(
            dict[TopicPartition, Any],
            admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=ATTEMPT_SECONDS
            ),
        )
        for asked, future in answers.items():
            at = (asked.topic, asked.partition)
            try:
                offset = future.result().offset
            except KafkaException as error:
                failed[at] = error
                continue
            if offset >= least:
                found[at] = offset
            else:
                # librdkafka (2.16) gives OFFSET_INVALID and no error where a broker does not answer in time; taken for
                # an end it would close attempts without their records, and restore states from nothing.
                failed[at] = KafkaException(NO_ANSWER)
        for (topic, partition), error in failed.items():
            cause: Any = error.args[0]
            if not _passes(cause) or time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"no broker tells where {topic}[{partition}] ends ({cause.str()}); `headrace topics create` makes "
                    "missing topics, `headrace broker --port 9092` starts a broker, HEADRACE_BOOTSTRAP names another"
                ) from error
        left = list(failed)
        if left:
            time.sleep(RETRY_SECONDS)
            # A topic that was looked for before it was there stays leaderless in the client's cache until a full look.
            with suppress(KafkaException):
                admin.list_topics(timeout=ATTEMPT_SECONDS)
    return found


def _passes(error: KafkaError) -> bool:
    return error.retriable() or error.code() in (
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError._NOENT,  # pyright: ignore[reportPrivateUsage]  # librdkafka found no leader
        KafkaError._TIMED_OUT,  # pyright: ignore[reportPrivateUsage]
    )
