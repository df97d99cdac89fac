"""How far consumer groups are behind, and how far topics have come, asked of the brokers."""

from collections.abc import Iterable

from confluent_kafka.admin import AdminClient

from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.group_offsets import GroupOffsets

Ends = dict[tuple[str, int], int]


def group_lags(offsets: GroupOffsets, groups: Iterable[str], ends: Ends) -> dict[str, int]:
    """Records between what each group has committed and the ends, by the group's short name.

    A group that has committed nothing is left out. Partitions without a commit, or not among the ends, do not count.

    Raises:
        BrokerUnavailableError: no answer.
    """
    lags: dict[str, int] = {}
    for group in groups:
        committed = offsets.committed(group, ends)
        if committed:
            lags[group] = sum(max(0, ends[at] - offset) for at, offset in committed.items())
    return lags


def topic_ends(admin: AdminClient, partitions: Iterable[tuple[str, int]]) -> tuple[Ends, dict[str, int]]:
    """The end of each partition, and the sum of each topic (full name)."""
    ends = end_offsets(admin, partitions)
    totals: dict[str, int] = {}
    for (topic, _), end in ends.items():
        totals[topic] = totals.get(topic, 0) + end
    return ends, totals
