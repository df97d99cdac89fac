"""The topic catalogue: one row a topic. `headrace topics create` makes them, `topics check` names every difference."""

from dataclasses import dataclass
from datetime import timedelta

from headrace.streams.errors import SettingsError
from headrace.streams.settings import Settings

DEAD_LETTER_RETENTION = timedelta(days=30)
DEAD_LETTER_EXTRA_BYTES = 64 * 1024  # the error headers come on top of the value
WORKER_RETENTION = timedelta(days=1)
FOREVER = -1


@dataclass(frozen=True)
class Topic:
    """A row of the catalogue.

    Attributes:
        records: names of the records that it carries.
        key: what the key is.
        co_partitioned: keyed by rollout_id, with the same count and partitioner as its siblings.
        compact: the last record of a key is kept.
        retention: which setting bounds its records in time.
        followed: by all who need it, and consumed by no group.
    """

    name: str
    records: tuple[str, ...]
    key: str
    co_partitioned: bool = False
    single: bool = False
    compact: bool = False
    retention: str = "retention"
    followed: bool = False


TOPICS: dict[str, Topic] = {
    t.name: t
    for t in (
        Topic("tasks", ("Task",), "rollout_id", co_partitioned=True, retention="forever"),
        Topic("attempts", ("AttemptEvent",), "rollout_id", co_partitioned=True),
        Topic("rollouts", ("RolloutState",), "rollout_id", co_partitioned=True, compact=True, retention="forever"),
        Topic("spans", ("Span",), "rollout_id", co_partitioned=True),
        Topic("rewards", ("Reward",), "rollout_id", co_partitioned=True),
        Topic("assembled", ("Assembled",), "rollout_id", co_partitioned=True, compact=True, retention="forever"),
        Topic("triplets", ("Trajectory",), "group_id or rollout_id", retention="replay_window"),
        Topic(
            "resources",
            ("ResourcesUpdate",),
            "resources_id",
            single=True,
            compact=True,
            retention="forever",
            followed=True,
        ),
        Topic(
            "training",
            ("RunManifest", "TrainingStep", "JournalEntry"),
            "run_id",
            single=True,
            retention="forever",
            followed=True,
        ),
        Topic(
            "workers",
            ("WorkerState",),
            "worker_id",
            single=True,
            compact=True,
            retention="workers",
            followed=True,
        ),
    )
}
TOPIC_OF_RECORD: dict[str, str] = {record: t.name for t in TOPICS.values() for record in t.records}


def retention_ms(topic: Topic, settings: Settings) -> int:
    """`retention.ms` of a topic; -1 is no limit."""
    if topic.retention == "forever":
        return FOREVER
    if topic.retention == "workers":
        return int(WORKER_RETENTION.total_seconds() * 1000)
    window = settings.retention
    if topic.retention == "replay_window":
        window = max(settings.replay_window, settings.retention)
    return int(window.total_seconds() * 1000)


def topic_config(topic: Topic, settings: Settings) -> dict[str, str]:
    """The Kafka configuration of a topic."""
    cleanup = "compact" if topic.compact else "delete"
    if topic.name == "workers":
        cleanup = "compact,delete"
    return {
        "cleanup.policy": cleanup,
        "retention.ms": str(retention_ms(topic, settings)),
        "retention.bytes": "-1",
        "max.message.bytes": str(settings.max_message_bytes),
        "message.timestamp.type": "LogAppendTime",
    }


def dead_letter_config(settings: Settings) -> dict[str, str]:
    """The Kafka configuration of every dead-letter topic."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(int(DEAD_LETTER_RETENTION.total_seconds() * 1000)),
        "retention.bytes": "-1",
        "max.message.bytes": str(settings.max_message_bytes + DEAD_LETTER_EXTRA_BYTES),
        "message.timestamp.type": "LogAppendTime",
    }


def partitions_of(topic: Topic, settings: Settings) -> int:
    """How many partitions a topic has."""
    return 1 if topic.single else settings.partitions


def rollout_topics(settings: Settings) -> list[str]:
    """The full names of the co-partitioned topics."""
    return [settings.topic(t.name) for t in TOPICS.values() if t.co_partitioned]


def dead_letter_topic(topic: str) -> str:
    """Where records of a topic (full name) go that cannot be read."""
    return f"{topic}.dlq"


def short_name(topic: str, settings: Settings) -> str:
    """The catalogue's name of a full topic name.

    Raises:
        SettingsError: the topic is not of this pipeline.
    """
    name = topic.removeprefix(f"{settings.prefix}.").removesuffix(".v1")
    if name not in TOPICS:
        raise SettingsError(f"{topic} is no topic of prefix {settings.prefix!r}; set HEADRACE_PREFIX to the pipeline's")
    return name
