"""The same answers from the topics alone: the partitions in question are read from their beginning."""

import logging
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TypeVar, cast

from headrace.schemas.records import Record, Reward, RolloutState, Span, Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.partitioner import murmur2, partition_of
from headrace.streams.kafka.reading import read_topic
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings
from headrace.streams.view.fields import fields_of
from headrace.streams.view.rows import Place, Row, reward_row
from headrace.streams.view.selection import Selection, select_from
from headrace.streams.view.source import Fields, rollout_field

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Record)
ROLLOUTS = "rollouts"


class TopicSource:
    """Answers from the topics, as new as they are."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._codec = Codec(settings)

    def close(self) -> None:
        """There is nothing to let go."""

    def rollouts(self, selection: Selection) -> list[RolloutState]:
        return select_from(self._newest(), selection, rollout_field)

    def rollout(self, rollout_id: str) -> RolloutState | None:
        return next(iter(self._newest(rollout_id)), None)

    def spans(self, rollout_id: str) -> list[Fields]:
        from headrace.streams.view.span_rows import span_row  # NumPy comes with it

        found: dict[tuple[str | None, str, str], Fields] = {}
        for span, message in self._records(Span, "spans", rollout_id, rollout_id):
            identity = (span.attempt_id, span.trace_id, span.span_id)
            if identity not in found:
                found[identity] = _fields("spans", partial(span_row, span), message)
        return list(found.values())

    def rewards(self, rollout_id: str) -> list[Fields]:
        found: dict[str, Fields] = {}
        for reward, message in self._records(Reward, "rewards", rollout_id, rollout_id):
            if reward.reward_id not in found:
                found[reward.reward_id] = _fields("rewards", partial(reward_row, reward), message)
        return list(found.values())

    def trajectory(self, rollout_id: str, group_id: str | None) -> Fields | None:
        from headrace.streams.view.training_rows import trajectory_row

        newest: Fields | None = None
        for trajectory, message in self._records(Trajectory, "triplets", group_id or rollout_id, rollout_id):
            if newest is None or trajectory.revision > newest["revision"]:
                newest = _fields("trajectories", partial(trajectory_row, trajectory), message)
        return newest

    def _newest(self, only: str | None = None) -> list[RolloutState]:
        """The last state of every rollout, as those who restore it read it: what nobody takes is passed over."""
        partitions = partition_ids(self._settings, self._settings.topic(ROLLOUTS))
        intake = Intake(self._settings, (ROLLOUTS,), len(partitions))
        last: dict[str, Message] = {}
        for key, message in self._states(intake, partitions, only):
            if message.value() is None:
                last.pop(key, None)
            else:
                last[key] = message
        found = {key: _taken(intake, message) for key, message in last.items()}
        spoilt = {key for key, state in found.items() if state is None}
        if spoilt:  # what stood before it counts
            for key, message in self._states(intake, partitions, only):
                if key in spoilt:
                    found[key] = None if message.value() is None else _taken(intake, message, found[key])
        return [state for state in found.values() if state is not None]

    def _states(self, intake: Intake, partitions: list[int], only: str | None) -> Iterable[tuple[str, Message]]:
        """The records of rollouts that stand where they may, with their keys."""
        if only is not None:
            partitions = [partition_of(only, len(partitions))]
        topic = self._settings.topic(ROLLOUTS)
        for message in read_topic(self._settings, topic, partitions, client_id=self._client_id):
            try:
                key = intake.key(ROLLOUTS, message)
            except RefusedError as refusal:
                _tell(message, refusal)
                continue
            if only is None or key == only:
                yield key, message

    def _records(self, kind: type[R], topic: str, key: str, rollout_id: str) -> Iterable[tuple[R, Message]]:
        """The records of a rollout in the partition of a key."""
        name = self._settings.topic(topic)
        count = len(partition_ids(self._settings, name))
        # Only segments of an id stand where another key's hash says.
        partition = partition_of(key, count) if topic != "triplets" else (murmur2(key.encode()) & 0x7FFFFFFF) % count
        wanted = key.encode()
        for message in read_topic(self._settings, name, [partition], client_id=self._client_id):
            record = self._decoded(kind, message) if message.key() == wanted else None
            if record is not None and getattr(record, "rollout_id", None) == rollout_id:
                yield record, message

    def _decoded(self, kind: type[R], message: Message) -> R | None:
        try:
            return self._codec.decode_as(kind, message.value())
        except DecodeError as error:
            _tell(message, error)
            return None


def _taken(intake: Intake, message: Message, before: RolloutState | None = None) -> RolloutState | None:
    """The state of a message, else the one before it."""
    try:
        return cast(RolloutState, intake.record(ROLLOUTS, message))
    except RefusedError as refusal:
        _tell(message, refusal)
        return before


def _tell(message: Message, error: Exception) -> None:
    log.warning("%s[%s] offset %s cannot be read: %s", message.topic(), message.partition(), message.offset(), error)


@cache
def columns_of(table: str) -> list[str]:
    """The columns of one of the view's tables."""
    from headrace.streams.view.tables import metadata  # SQLAlchemy: not for those who ask about rollouts alone

    return [c.name for c in metadata.tables[table].columns]


def _fields(table: str, row_at: Callable[[Place], Row], message: Message) -> Fields:
    place = Place(message.partition() or 0, message.offset() or 0, message.timestamp()[1] * 1000)
    return fields_of(columns_of(table), row_at(place))
