"""Spans as they come."""

import re
from collections.abc import Callable, Collection

from headrace.schemas.records import Record, Span
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.settings import Settings
from headrace.streams.view.fields import fields_of
from headrace.streams.view.rows import Place
from headrace.streams.view.source import Fields
from headrace.streams.view.span_rows import span_row
from headrace.streams.view.tables import spans


def follow_spans(
    settings: Settings,
    handle: Callable[[Fields], None],
    *,
    rollout_ids: Collection[str] = (),
    agent: str | None = None,
    since_ms: int,
) -> TopicFollower:
    """A follower, not started yet, that hands on each new span as a row of `tables.spans`.

    Args:
        rollout_ids: only of these; where none is named, of all.
        agent: a regular expression, searched in the agent's name that stands on the span itself.
        since_ms: where it begins, in append time: milliseconds since the epoch.
    """
    pattern = re.compile(agent) if agent is not None else None
    keys = {rollout_id.encode() for rollout_id in rollout_ids}
    names = [c.name for c in spans.columns]

    def came(record: Record, message: Message) -> None:
        if not isinstance(record, Span):
            return
        place = Place(message.partition() or 0, message.offset() or 0, message.timestamp()[1] * 1000)
        fields = fields_of(names, span_row(record, place))
        if pattern is None or pattern.search(fields["agent_name"] or ""):
            handle(fields)

    partitions = partition_ids(settings, settings.topic("spans"))
    if rollout_ids:
        partitions = sorted({partition_of(rollout_id, len(partitions)) for rollout_id in rollout_ids})
    return TopicFollower(
        settings,
        "spans",
        came,
        client_id="traces-tail",
        partitions=partitions,
        wants=(lambda message: message.key() in keys) if keys else None,
        since_ms=since_ms,
    )
