"""Topics and groups as the catalogue has them: create, list, and name every difference."""

from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headrace.streams.errors import BrokerUnavailableError, HeadraceError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.settings import Settings
from headrace.streams.topics import (
    TOPICS,
    dead_letter_config,
    dead_letter_topic,
    partitions_of,
    rollout_topics,
    topic_config,
)

TIMEOUT_SECONDS = 30.0
LOOK_SECONDS = 10.0  # for any broker at all; somebody may wait in front of a wrong address
GROUPS = ("runner", "lifecycle", "assembler", "view", "statistics", "otlp-source", "otlp-export")


class TopicError(HeadraceError):
    """A topic could not be made or asked about."""


@dataclass(frozen=True)
class Wanted:
    """A topic as it should be."""

    name: str
    partitions: int
    config: dict[str, str]


def wanted_topics(settings: Settings) -> list[Wanted]:
    """Every topic of the pipeline with its dead letters."""
    wanted: list[Wanted] = []
    for topic in TOPICS.values():
        name = settings.topic(topic.name)
        count = partitions_of(topic, settings)
        wanted.append(Wanted(name, count, topic_config(topic, settings)))
        wanted.append(Wanted(dead_letter_topic(name), 1, dead_letter_config(settings)))
    return wanted


def group_config(settings: Settings) -> dict[str, str]:
    """The brokers' settings of each consumer group (KIP-848 keeps session time-outs there)."""
    session = int(settings.session_timeout.total_seconds() * 1000)
    return {"consumer.session.timeout.ms": str(session), "consumer.heartbeat.interval.ms": str(session // 4)}


@dataclass(frozen=True)
class Present:
    """A topic as the cluster has it: the replicas of each partition by its number."""

    partitions: dict[int, list[int]]


def describe(
    settings: Settings, admin: AdminClient | None = None, *, names: list[str] | None = None
) -> dict[str, Present]:
    """What the cluster has of this pipeline's topics, or of these (full names), by name.

    Raises:
        TopicError: the brokers do not tell of one.
        BrokerUnavailableError: no broker answered.
    """
    wanted = [w.name for w in wanted_topics(settings)] if names is None else names
    return _described(settings, wanted, admin or make_admin(settings))


def _described(settings: Settings, names: list[str], admin: AdminClient) -> dict[str, Present]:
    """Those of the names that are there. Asked by name: a cluster may hold thousands of topics of others."""
    answers = cast(dict[str, Any], admin.describe_topics(TopicCollection(names), request_timeout=LOOK_SECONDS))
    found: dict[str, Present] = {}
    for name, future in answers.items():
        try:
            found[name] = Present({p.id: [node.id for node in p.replicas] for p in future.result().partitions})
        except KafkaException as error:
            cause: Any = error.args[0]
            if cause.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if cause.code() < 0:  # librdkafka's own: nobody was asked
                raise BrokerUnavailableError(
                    f"no broker answers at {settings.bootstrap}; start one with `headrace broker --port 9092`, or set "
                    "HEADRACE_BOOTSTRAP to one that runs"
                ) from error
            raise TopicError(f"{name}: {cause.str()}") from error
    return found


def cluster_id(settings: Settings) -> str:
    """The cluster's own id.

    Raises:
        BrokerUnavailableError: no broker answered.
    """
    try:
        return str(make_admin(settings).list_topics(timeout=LOOK_SECONDS).cluster_id)
    except KafkaException as error:
        raise BrokerUnavailableError(f"no broker answers at {settings.bootstrap}: {error.args[0].str()}") from error


def partition_ids(settings: Settings, topic: str, admin: AdminClient | None = None) -> list[int]:
    """The partitions that a topic (full name) has in the cluster, whatever the settings say.

    Raises:
        TopicError: there is no such topic.
        BrokerUnavailableError: no broker answered.
    """
    there = _described(settings, [topic], admin or make_admin(settings))
    if topic not in there:
        raise TopicError(f"{topic} is missing at {settings.bootstrap}; `headrace topics create` makes it")
    return sorted(there[topic].partitions)


def topic_ids(names: list[str], admin: AdminClient) -> dict[str, str]:
    """Kafka's own id of each topic (KIP-516): one that was deleted and made anew has another.

    Raises:
        TopicError: there is no such topic.
        BrokerUnavailableError: no broker answered.
    """
    found: dict[str, str] = {}
    answers = cast(dict[str, Any], admin.describe_topics(TopicCollection(names), request_timeout=TIMEOUT_SECONDS))
    for name, future in answers.items():
        try:
            found[name] = str(future.result().topic_id)
        except KafkaException as error:
            cause: Any = error.args[0]
            if cause.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise TopicError(f"{name} is missing; `headrace topics create` makes it") from error
            raise BrokerUnavailableError(f"no broker tells of {name}: {cause.str()}") from error
    return found


def create_topics(settings: Settings) -> list[str]:
    """Makes the topics that are missing and sets the groups' session time-outs; the names of the new ones.

    Partition n of all co-partitioned topics gets the same replicas, so that one broker's clock stamps them.

    Raises:
        TopicError: the brokers refused one.
        BrokerUnavailableError: no broker answered.
    """
    there = describe(settings)
    admin = make_admin(settings)  # one that has not yet heard that they are missing
    brokers = sorted(
        node.id for node in cast(Any, admin).describe_cluster(request_timeout=TIMEOUT_SECONDS).result().nodes
    )
    missing = [w for w in wanted_topics(settings) if w.name not in there]
    new = [
        NewTopic(
            w.name,
            num_partitions=w.partitions,
            replica_assignment=_replicas(w.partitions, settings.replication_factor, brokers),
            config=w.config,
        )
        for w in missing
    ]
    if new:
        answers = cast(dict[str, Any], admin.create_topics(new, operation_timeout=TIMEOUT_SECONDS))
        for name, future in answers.items():
            try:
                future.result()
            except KafkaException as error:
                cause: Any = error.args[0]
                if cause.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise TopicError(f"{name}: {cause.str()}") from error
        # The controller has made them; their leaders take a moment more, and whoever comes next should find them.
        end_offsets(admin, [(w.name, p) for w in missing for p in range(w.partitions)])
    _set_groups(settings, admin)
    return [w.name for w in missing]


def create_dead_letters(settings: Settings, topic: str) -> None:
    """Makes the dead-letter topic of a topic that is not of the catalogue (full name), if it is missing.

    Raises:
        TopicError: the topic itself is missing, or the brokers refuse.
        BrokerUnavailableError: no broker answered.
    """
    admin = make_admin(settings)
    try:
        there = cast(dict[str, Any], admin.list_topics(timeout=LOOK_SECONDS).topics)
    except KafkaException as error:
        raise BrokerUnavailableError(f"no broker answers at {settings.bootstrap}: {error.args[0].str()}") from error
    if topic not in there:
        raise TopicError(f"{settings.bootstrap} has no topic {topic}; it is made by whoever writes to it")
    name = dead_letter_topic(topic)
    if name in there:
        return
    new = NewTopic(name, 1, settings.replication_factor, config=dead_letter_config(settings))
    for future in cast(dict[str, Any], admin.create_topics([new], operation_timeout=TIMEOUT_SECONDS)).values():
        try:
            future.result()
        except KafkaException as error:
            cause: Any = error.args[0]
            if cause.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicError(f"{name}: {cause.str()}") from error


def _replicas(partitions: int, factor: int, brokers: list[int]) -> list[list[int]]:
    if factor > len(brokers):
        raise TopicError(f"replication_factor {factor}, but the cluster has {len(brokers)} brokers")
    return [[brokers[(p + i) % len(brokers)] for i in range(factor)] for p in range(partitions)]


def _set_groups(settings: Settings, admin: AdminClient) -> None:
    resources = [
        ConfigResource(
            ResourceType.GROUP,
            settings.group(group),
            incremental_configs=[
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in group_config(settings).items()
            ],
        )
        for group in GROUPS
    ]
    answers = cast(dict[ConfigResource, Any], admin.incremental_alter_configs(resources))
    for resource, future in answers.items():
        try:
            future.result(TIMEOUT_SECONDS)
        except KafkaException as error:
            raise TopicError(f"group {resource.name}: {error.args[0].str()}") from error


def check_topics(settings: Settings) -> list[str]:
    """Every difference between the catalogue and the cluster, a sentence each.

    Raises:
        BrokerUnavailableError: no broker answered.
    """
    admin = make_admin(settings)
    there = describe(settings, admin)
    wanted = wanted_topics(settings)
    problems = [f"{w.name}: missing; `headrace topics create` makes it" for w in wanted if w.name not in there]
    present = [w for w in wanted if w.name in there]
    for w in present:
        count = len(there[w.name].partitions)
        if count != w.partitions:
            problems.append(f"{w.name}: {count} partitions, the settings say {w.partitions}")
    problems += _replica_differences(settings, there)
    by_name = {w.name: w for w in present}
    for name, have in _configs(admin, ResourceType.TOPIC, list(by_name)).items():
        for key, value in by_name[name].config.items():
            if have.get(key) != value:
                problems.append(f"{name}: {key} is {have.get(key)}, the settings say {value}")
    for name, have in _configs(admin, ResourceType.GROUP, [settings.group(g) for g in GROUPS]).items():
        for key, value in group_config(settings).items():
            if have.get(key) != value:
                problems.append(f"group {name}: {key} is {have.get(key, 'not set')}, the settings say {value}")
    return problems


def _configs(admin: AdminClient, kind: ResourceType, names: list[str]) -> dict[str, dict[str, str | None]]:
    if not names:
        return {}
    asked = [ConfigResource(kind, name) for name in names]
    answers = cast(dict[ConfigResource, Any], admin.describe_configs(asked))
    return {
        resource.name: {key: entry.value for key, entry in future.result(TIMEOUT_SECONDS).items()}
        for resource, future in answers.items()
    }


def _replica_differences(settings: Settings, there: dict[str, Present]) -> list[str]:
    """Partitions whose records are stamped by another broker than their siblings of the same number."""
    problems: list[str] = []
    names = [name for name in rollout_topics(settings) if name in there]
    for name in names[1:]:
        for number, replicas in there[name].partitions.items():
            sibling = there[names[0]].partitions.get(number)
            if sibling is not None and sibling != replicas:
                problems.append(
                    f"{name}[{number}]: replicas {replicas}, but {names[0]}[{number}] has "
                    f"{sibling}; reassign one of them, since one broker's clock must stamp both"
                )
    return problems
