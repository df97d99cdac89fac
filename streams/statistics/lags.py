"""How far consumer groups are behind, and how far topics have come, asked of the brokers."""

from collections.abc import Iterable
from typing import Any, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.settings import Settings

TIMEOUT_SECONDS = 10.0
Ends = dict[tuple[str, int], int]


def group_lags(admin: AdminClient, settings: Settings, groups: Iterable[str], ends: Ends) -> dict[str, int]:
    """Records between what each group has committed and the ends, by the group's short name.

    A group that has committed nothing is left out. Partitions without a commit, or not among the ends, do not count.
    """
    lags: dict[str, int] = {}
    for group in groups:
        asked = ConsumerGroupTopicPartitions(settings.group(group))
        answers = cast(dict[str, Any], admin.list_consumer_group_offsets([asked]))
        for future in answers.values():
            try:
                positions: list[Any] = future.result(TIMEOUT_SECONDS).topic_partitions
            except KafkaException:  # there is no such group
                continue
            behind = [
                max(0, ends[p.topic, p.partition] - p.offset)
                for p in positions
                if p.offset >= 0 and (p.topic, p.partition) in ends
            ]
            if behind:
                lags[group] = sum(behind)
    return lags


def topic_ends(admin: AdminClient, partitions: Iterable[tuple[str, int]]) -> tuple[Ends, dict[str, int]]:
    """The end of each partition, and the sum of each topic (full name)."""
    ends = end_offsets(admin, partitions)
    totals: dict[str, int] = {}
    for (topic, _), end in ends.items():
        totals[topic] = totals.get(topic, 0) + end
    return ends, totals
