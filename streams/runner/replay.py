"""What a runner reads before it works on partitions: which rollouts have ended, and what is in hand elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import KafkaError, TopicPartition

from headrace.schemas.records import AttemptEvent
from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets, offsets_at
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.runner.dispatch.values import Happened
from headrace.streams.settings import Settings

ATTEMPTS = "attempts"
TERMINAL = frozenset({b"succeeded", b"failed", b"cancelled"})
SIGNS = frozenset({b"heartbeat", b"activity"})  # they tell lifecycle something, and dispatch nothing
BEFORE_MS = 60_000  # a repeated Task may have been started before the first unfinished task was appended
TIMEOUT_SECONDS = 30.0


@dataclass
class PartitionReplay:
    """What the log says of one partition.

    Attributes:
        position: where its tasks are to be read from, and the first unfinished one.
        ended: keys of its terminal rollouts, with the append times of those states in milliseconds since the epoch.
        events: its attempts, from before the first unfinished task on.
        follow_from: where the attempts partition goes on.
    """

    position: int
    ended: dict[bytes, int] = field(default_factory=dict[bytes, int])
    events: list[Happened] = field(default_factory=list[Happened])
    follow_from: int = 0


def replay(settings: Settings, committed: dict[int, int], *, client_id: str) -> dict[int, PartitionReplay]:
    """Reads all that matters of partitions, up to the read_uncommitted ends as of now.

    Args:
        committed: the offsets committed for tasks; negative where there is none.

    Raises:
        BrokerUnavailableError: no progress.
    """
    tasks, attempts, rollouts = (settings.topic(name) for name in ("tasks", "attempts", "rollouts"))
    admin = make_admin(settings, client_id)
    ends = end_offsets(admin, [(t, p) for p in committed for t in (tasks, attempts, rollouts)])
    result = {p: PartitionReplay(max(0, at), follow_from=ends[attempts, p]) for p, at in committed.items()}
    first_times = _first_append_times(settings, tasks, committed, ends, client_id)
    # Without an unfinished task there is nothing to know of the attempts.
    asked = {(attempts, p): max(0, at - BEFORE_MS) for p, at in first_times.items()}
    starts = {tp: offset for tp, offset in offsets_at(admin, asked).items() if offset >= 0}
    starts |= {(rollouts, p): BEGINNING for p in committed}
    wanted = {tp: start for tp, start in starts.items() if ends[tp] > max(start, 0)}
    intake = attempts_intake(settings)
    for message in read_to_end(settings, wanted, client_id=client_id, ends={tp: ends[tp] for tp in wanted}):
        into = result[message.partition() or 0]
        if message.topic() == rollouts:
            key = message.key()
            if key is not None and _header(message, "status") in TERMINAL:
                into.ended[key] = message.timestamp()[1]
            elif key is not None:
                into.ended.pop(key, None)  # removed long after its end, and perhaps enqueued anew
        elif (happened := happened_of(intake, message)) is not None:
            into.events.append(happened)
    return result


def attempts_intake(settings: Settings) -> Intake:
    """What reads attempts as lifecycle and assembler do: an event that they refuse is none to a runner either."""
    return Intake(settings, (ATTEMPTS,), len(partition_ids(settings, settings.topic(ATTEMPTS))))


def happened_of(intake: Intake, message: Message) -> Happened | None:
    """The attempt event of a message; None for a sign of life, and for what cannot be read: its owner's dead letter.

    Raises:
        UnavailableError: what else it needs (registry, claim-check store) does not answer now.
    """
    if _header(message, "type") in SIGNS:
        return None
    try:
        event = cast(AttemptEvent, intake.record(ATTEMPTS, message))
    except RefusedError:
        return None
    return Happened(message.partition() or 0, message.offset() or 0, message.timestamp()[1], event)


def _header(message: Message, wanted: str) -> bytes | None:
    for name, value in cast(Iterable[tuple[str, bytes]], message.headers() or ()):
        if name == wanted:
            return value
    return None


def _first_append_times(
    settings: Settings, topic: str, committed: dict[int, int], ends: dict[tuple[str, int], int], client_id: str
) -> dict[int, int]:
    """Append time of the first unfinished task of each partition that has one, in milliseconds since the epoch."""
    left = {p for p, at in committed.items() if ends[topic, p] > max(at, 0)}
    times: dict[int, int] = {}
    if not left:
        return times
    consumer = make_consumer(settings, client_id, eof=True)
    try:
        consumer.assign([TopicPartition(topic, p, committed[p] if committed[p] >= 0 else BEGINNING) for p in left])
        while left:
            message = cast(Message | None, consumer.poll(TIMEOUT_SECONDS))
            if message is None:
                raise BrokerUnavailableError(f"nothing came from {topic} {sorted(left)} for {TIMEOUT_SECONDS:.0f} s")
            partition, error = message.partition() or 0, message.error()
            if error is None:
                times.setdefault(partition, message.timestamp()[1])
                left.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                left.discard(partition)
    finally:
        consumer.close()
    return times
