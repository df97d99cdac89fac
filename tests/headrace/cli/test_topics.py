"""`headrace topics` on a real broker."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headrace.streams.kafka.clients import make_admin
from headrace.streams.settings import Settings, load_settings

pytestmark = pytest.mark.kafka


def test_create_makes_what_is_missing_once(kafka: Any, asking_as: Callable[[Settings], Any]) -> None:
    settings = load_settings(bootstrap=kafka.bootstrap, prefix=f"t{uuid.uuid4().hex[:8]}")
    asking = asking_as(settings)
    assert asking("topics", "check").exit_code == 1
    (out,) = asking.json("topics", "create", "--partitions", "2", "--json")
    assert settings.topic("tasks") in out["created"]
    assert settings.topic("spans") + ".dlq" in out["created"]
    assert asking.json("topics", "create", "--partitions", "2", "--json") == [{"created": []}]
    assert asking("topics", "create", "--partitions", "2").stderr == ""
    assert "2 partitions, the settings say 8" in asking("topics", "create", "--partitions", "8").stderr
    assert asking.json("topics", "check", "--partitions", "2", "--json") == [{"ok": True, "differences": []}]
    rows = {row["topic"]: row for row in asking.json("topics", "list", "--json")}
    assert rows[settings.topic("rollouts")]["partitions"] == 2
    assert rows[settings.topic("training")]["partitions"] == 1
    assert rows[settings.topic("training")]["records"] == ["RunManifest", "TrainingStep", "JournalEntry"]


def test_check_names_every_difference(asking: Any, settings: Settings) -> None:
    admin = make_admin(settings)
    triplets = ConfigResource(
        ResourceType.TOPIC,
        settings.topic("triplets"),
        incremental_configs=[ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)],
    )
    group = ConfigResource(
        ResourceType.GROUP,
        settings.group("runner"),
        incremental_configs=[
            ConfigEntry("consumer.session.timeout.ms", "45000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    for kind in ([triplets], [group]):
        for future in admin.incremental_alter_configs(kind).values():
            future.result()
    admin.delete_topics([settings.topic("workers")])[settings.topic("workers")].result()
    done = asking("topics", "check", "--partitions", "3")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert any(settings.topic("triplets") in line and "retention.ms is 1000" in line for line in lines)
    assert any(settings.group("runner") in line and "45000" in line for line in lines)
    assert any(settings.topic("workers") in line and "missing" in line for line in lines)
    assert len(lines) == 3
    done = asking("topics", "check", "--partitions", "5")
    assert sum("3 partitions, the settings say 5" in line for line in done.stdout.splitlines()) == 7


def test_no_broker_is_one_clear_line(make_headrace: Callable[[Settings], Any]) -> None:
    pytest.importorskip("confluent_kafka")
    headrace = make_headrace(load_settings(bootstrap="127.0.0.1:9", kafka={"socket.timeout.ms": 1000}))
    done = headrace("topics", "list")
    assert done.returncode == 1
    assert "headrace broker" in done.stderr.splitlines()[-1]
