"""The topic catalogue."""

from datetime import timedelta

import pytest

from headrace.schemas.records import RECORDS
from headrace.streams.errors import SettingsError
from headrace.streams.settings import Settings
from headrace.streams.topics import (
    TOPIC_OF_RECORD,
    TOPICS,
    dead_letter_config,
    partitions_of,
    retention_ms,
    rollout_topics,
    short_name,
    topic_config,
)

DAY_MS = 24 * 3600 * 1000


def test_every_record_has_one_topic() -> None:
    assert set(TOPIC_OF_RECORD) == set(RECORDS)


def test_rollout_topics_are_co_partitioned() -> None:
    settings = Settings(partitions=5)
    assert rollout_topics(settings) == [
        f"headrace.{name}.v1" for name in ("tasks", "attempts", "rollouts", "spans", "rewards", "assembled")
    ]
    assert {partitions_of(TOPICS[name], settings) for name in ("tasks", "spans", "triplets")} == {5}
    assert {partitions_of(TOPICS[name], settings) for name in ("resources", "training", "workers")} == {1}


def test_retention_covers_feedback_and_replay() -> None:
    settings = Settings(feedback_window=timedelta(days=7), max_open=timedelta(days=1), replay_window=timedelta(days=30))
    assert retention_ms(TOPICS["spans"], settings) == 9 * DAY_MS
    assert retention_ms(TOPICS["triplets"], settings) == 30 * DAY_MS
    assert retention_ms(TOPICS["tasks"], settings) == -1
    # Trajectories are never kept shorter than the records they were made of.
    short = Settings(replay_window=timedelta(days=1))
    assert retention_ms(TOPICS["triplets"], short) == retention_ms(TOPICS["spans"], short)


def test_cleanup_and_limits() -> None:
    settings = Settings(max_message_bytes=1_000_000)
    for topic in TOPICS.values():
        config = topic_config(topic, settings)
        assert config["message.timestamp.type"] == "LogAppendTime"
        assert config["max.message.bytes"] == "1000000"
    assert topic_config(TOPICS["rollouts"], settings)["cleanup.policy"] == "compact"
    assert topic_config(TOPICS["workers"], settings)["cleanup.policy"] == "compact,delete"
    assert dead_letter_config(settings)["max.message.bytes"] == str(1_000_000 + 64 * 1024)


def test_short_names() -> None:
    settings = Settings(prefix="a.b")
    assert short_name(settings.topic("spans"), settings) == "spans"
    with pytest.raises(SettingsError, match="HEADRACE_PREFIX"):
        short_name("other.spans.v1", settings)
