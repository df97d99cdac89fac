"""Cancel requests: what is known of the rollouts first, then one event each."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from headrace.schemas.records import AttemptEvent, RolloutState
from headrace.streams.codec import Codec
from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
EXTERNAL = "external"
CLIENT_ID = "rollouts-cancel"
CLOSE_SECONDS = 5.0


class UnknownRolloutError(HeadraceError):
    """Nobody has asked for a rollout of that id."""


class CancelOutcome(NamedTuple):
    """What was done about one rollout.

    Attributes:
        status: as it stands in the rollouts topic; None where lifecycle has not taken its task yet.
        requested: a cancel request was written.
        reason: why none was.
    """

    rollout_id: str
    status: str | None
    requested: bool
    reason: str = ""


def cancel_rollouts(settings: Settings, rollout_ids: Sequence[str]) -> list[CancelOutcome]:
    """Writes a cancel request for each rollout that is open; returns when the brokers have them.

    Raises:
        UnknownRolloutError: neither rollouts nor tasks have one of the ids; nothing was written.
        DeliveryError, BrokerUnavailableError: the brokers do not answer.
    """
    ids = list(dict.fromkeys(rollout_ids))
    states = _states(settings, ids)
    waiting = _tasks(settings, [i for i in ids if i not in states])
    unknown = [i for i in ids if i not in states and i not in waiting]
    if unknown:
        raise UnknownRolloutError(
            f"nobody has asked for {', '.join(unknown)}; `headrace rollouts list` names the rollouts that are there; "
            "nothing was cancelled"
        )
    outcomes = [_outcome(i, states.get(i)) for i in ids]
    asyncio.run(_request(settings, [o.rollout_id for o in outcomes if o.requested]))
    return outcomes


def _outcome(rollout_id: str, state: RolloutState | None) -> CancelOutcome:
    if state is None:
        return CancelOutcome(rollout_id, None, True)
    if state.status in TERMINAL:
        return CancelOutcome(rollout_id, state.status, False, "it has ended")
    if state.origin == EXTERNAL:
        return CancelOutcome(rollout_id, state.status, False, "its agent runs outside, where nobody can stop it")
    if state.cancel_requested_at is not None:
        return CancelOutcome(rollout_id, state.status, False, "it was asked to cancel before")
    return CancelOutcome(rollout_id, state.status, True)


async def _request(settings: Settings, rollout_ids: Sequence[str]) -> None:
    if not rollout_ids:
        return
    producer = AckedProducer(settings, CLIENT_ID, linger_ms=0)
    try:
        events = [AttemptEvent(rollout_id=i, attempt=0, type="cancel_requested", at=wall_us()) for i in rollout_ids]
        await asyncio.gather(*(producer.send(event) for event in events))
    finally:
        await producer.close(CLOSE_SECONDS)


def _partitions(settings: Settings, topic: str, ids: Sequence[str]) -> list[int]:
    count = len(partition_ids(settings, topic))
    return sorted({partition_of(i, count) for i in ids})


def _states(settings: Settings, ids: Sequence[str]) -> dict[str, RolloutState]:
    topic = settings.topic("rollouts")
    keys = {i.encode(): i for i in ids}
    last: dict[str, bytes] = {}
    for message in read_topic(settings, topic, _partitions(settings, topic, ids), client_id=CLIENT_ID):
        rollout_id = keys.get(message.key() or b"")
        if rollout_id is None:
            continue
        value = message.value()
        if value is None:
            last.pop(rollout_id, None)
        else:
            last[rollout_id] = value
    codec = Codec(settings)
    return {rollout_id: codec.decode_as(RolloutState, value) for rollout_id, value in last.items()}


def _tasks(settings: Settings, ids: Sequence[str]) -> set[str]:
    """Which of the rollouts have a task that lifecycle has not taken yet."""
    if not ids:
        return set()
    topic = settings.topic("tasks")
    keys = {i.encode(): i for i in ids}
    messages = read_topic(settings, topic, _partitions(settings, topic, ids), client_id=CLIENT_ID)
    return {keys[key] for message in messages if (key := message.key() or b"") in keys}
