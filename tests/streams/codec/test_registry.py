"""Confluent framing with a real registry."""

import json
import subprocess
import uuid
from typing import Any

import msgspec
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace.schemas import catalogue
from headrace.schemas.catalogue import RecordSchema
from headrace.schemas.records import (
    Record,
    ResourcesUpdate,
    RunManifest,
    Task,
    TrainingStep,
    Weights,
    Window,
)
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.codec.registry import RegistryError, RegistrySchemas, RegistryUnavailableError, subject
from headrace.streams.settings import Settings, load_settings
from headrace.streams.topics import TOPIC_OF_RECORD
from tests.processes import COMMAND

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
WEIGHTS = Weights(policy="p", version=1, weights_id="w", uri="file:///x")
SAMPLES: list[Record] = [
    Task(rollout_id="ro", input="1", enqueued_at=3),
    ResourcesUpdate(resources_id="r", name="n", version=1, resources={"w": WEIGHTS}, created_at=0),
    RunManifest(run_id="run", algorithm="grpo", policy="p", base_weights=WEIGHTS, created_at=1),
    TrainingStep(run_id="run", step=1, policy="p", policy_version=1, window=Window(), started_at=0, ended_at=1),
]


@pytest.fixture
def settings(registry: str) -> Settings:
    """Subjects of its own for each test."""
    return load_settings(registry=registry, prefix=f"t{uuid.uuid4().hex[:8]}")


def plain(record: Record) -> Any:
    def untagged(value: Any) -> Any:
        return {k: untagged(v) for k, v in value.items() if k != "-type"} if isinstance(value, dict) else value

    return untagged(msgspec.to_builtins(record, builtin_types=(bytes,)))


@pytest.mark.parametrize("record", SAMPLES, ids=lambda r: r.SCHEMA)
def test_confluents_own_deserializer_reads_it(record: Record, settings: Settings) -> None:
    data = Codec(settings).encode(record)
    assert data[0] == 0
    client = SchemaRegistryClient({"url": settings.registry})
    read = AvroDeserializer(client, conf={"subject.name.strategy.type": "TOPIC"})
    topic = settings.topic(TOPIC_OF_RECORD[record.SCHEMA])
    assert read(data, SerializationContext(topic, MessageField.VALUE)) == plain(record)
    assert Codec(settings).decode(data) == record


def test_both_framings_are_read_by_one_codec(settings: Settings) -> None:
    framed, single = Codec(settings).encode(SAMPLES[0]), Codec(load_settings()).encode(SAMPLES[0])
    codec = Codec(settings)
    assert codec.decode(framed) == codec.decode(single) == SAMPLES[0]
    with pytest.raises(DecodeError, match="HEADRACE_REGISTRY"):
        Codec(load_settings()).decode(framed)


def test_what_confluents_serializer_writes_is_read(settings: Settings) -> None:
    client = SchemaRegistryClient({"url": settings.registry})
    text = catalogue.current()["Task"].text
    write = AvroSerializer(client, text, conf={"subject.name.strategy.type": "TOPIC"})
    data = write(plain(SAMPLES[0]), SerializationContext(settings.topic("tasks"), MessageField.VALUE))
    assert Codec(settings).decode(data) == SAMPLES[0]


def test_registered_once_and_under_one_subject_a_record(settings: Settings) -> None:
    registry = RegistrySchemas(settings)
    names = list(catalogue.current())
    assert [registry.registered(name) for name in names] == [None] * len(names)
    ids = {name: registry.register(name) for name in names}
    assert {name: RegistrySchemas(settings).register(name) for name in names} == ids
    assert len({subject(settings, name) for name in names}) == len(names)
    assert all(registry.compatible(name) for name in names)


def test_the_registry_refuses_an_incompatible_schema(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = RegistrySchemas(settings)
    registry.register("Task")
    schema = catalogue.current()["Task"].json
    schema["fields"].append({"name": "new", "type": "string"})
    text = json.dumps(schema)
    changed = {"Task": RecordSchema("Task", text, catalogue.fingerprint(text), None)}
    monkeypatch.setattr(catalogue, "current", lambda: changed)
    assert not registry.compatible("Task")
    with pytest.raises(RegistryError, match=settings.topic("tasks")):
        registry.register("Task")


def test_an_unknown_id_is_asked_for_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec(settings)
    for _ in range(2):
        with pytest.raises(DecodeError) as error:
            codec.decode(b"\x00\x7f\xff\xff\xffrest")
        assert error.value.reason == "unknown_schema"
        monkeypatch.setattr(SchemaRegistryClient, "get_schema", None)


def test_a_schema_of_somebody_else_is_named(settings: Settings) -> None:
    client = SchemaRegistryClient({"url": settings.registry})
    text = '{"type": "record", "name": "Other", "fields": [{"name": "a", "type": "string"}]}'
    write = AvroSerializer(client, text, conf={"subject.name.strategy.type": "TOPIC"})
    data = write({"a": "b"}, SerializationContext(f"{settings.prefix}.other", MessageField.VALUE))
    with pytest.raises(DecodeError, match="Other") as error:
        Codec(settings).decode(data)
    assert error.value.reason == "unknown_schema"


def test_a_registry_that_is_away_is_no_dead_letter() -> None:
    codec = Codec(load_settings(registry="http://127.0.0.1:9/apis/ccompat/v7"))
    with pytest.raises(RegistryUnavailableError, match=r"127\.0\.0\.1:9"):
        codec.encode(SAMPLES[0])
    with pytest.raises(RegistryUnavailableError, match="HEADRACE_REGISTRY"):
        codec.decode(b"\x00\x00\x00\x00\x01rest")
    single = Codec(load_settings()).encode(SAMPLES[0])
    assert codec.decode(single) == SAMPLES[0]


def test_the_command_registers_and_checks(settings: Settings) -> None:
    def run(*arguments: str) -> list[dict[str, Any]]:
        flags = ("--registry-url", str(settings.registry), "--prefix", settings.prefix, "--json")
        done = subprocess.run([COMMAND, "schemas", *arguments, *flags], capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    rows = run("register")
    assert [row["subject"] for row in rows] == [subject(settings, name) for name in catalogue.current()]
    assert run("check") == [{"ok": True, "against": [*catalogue.releases(), settings.registry], "differences": []}]
