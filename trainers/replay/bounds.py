"""Bounds as the log has them: every partition's offset."""

from headrace.streams.errors import InvalidValueError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets, offsets_at, start_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.settings import Settings
from headrace.trainers.replay.offsets import Bound, Edge, Places


def places_of(settings: Settings, bound: Bound, edge: Edge) -> Places:
    """Where a bound lies in triplets; a partition that it does not name is taken whole.

    Raises:
        InvalidValueError: there is no such partition, or it ends before.
        BrokerUnavailableError: no answer.
    """
    if bound.step is not None:
        return Places({}, bound.step)
    topic = settings.topic("triplets")
    admin = make_admin(settings, "replay")
    every = [(topic, p) for p in partition_ids(settings, topic, admin)]
    ends = end_offsets(admin, every)
    if bound.edge == "latest":
        return Places({p: end for (_, p), end in ends.items()})
    starts = start_offsets(admin, every)
    if bound.edge == "earliest":
        return Places({p: start for (_, p), start in starts.items()})
    if bound.at_ms is not None:
        found = offsets_at(admin, dict.fromkeys(every, bound.at_ms))
        return Places({tp[1]: offset if offset >= 0 else ends[tp] for tp, offset in found.items()})
    given = bound.offsets or {}
    for partition, offset in given.items():
        end = ends.get((topic, partition))
        if end is None:
            known = f"but 0 to {len(every) - 1}"
            raise InvalidValueError(f"--{edge} {bound.text}: {topic} has no partition {partition}, {known}")
        if offset > end:
            raise InvalidValueError(f"--{edge} {bound.text}: partition {partition} of {topic} ends at offset {end}")
    unnamed = {p: 0 for _, p in every} if edge == "from" else {p: end for (_, p), end in ends.items()}
    return Places(unnamed | dict(given))
