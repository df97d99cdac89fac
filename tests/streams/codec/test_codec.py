"""Single-object encoding: read back by others, by later versions, and never worse than a `DecodeError`."""

import io
import json
from typing import Any

import avro.io
import fastavro
import msgspec
import pytest
from avro.schema import parse
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headrace.schemas import catalogue
from headrace.schemas.catalogue import RecordSchema
from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    LLM,
    RECORDS,
    Choice,
    ModelCall,
    PromptTemplate,
    Record,
    ResourcesUpdate,
    Reward,
    Span,
    Task,
    VersionRange,
    Weights,
)
from headrace.streams.codec import Codec, DecodeError, EncodeError
from headrace.streams.settings import Settings

HEADER_BYTES = 10
CODEC = Codec(Settings())
TASK = Task(rollout_id="ro-α", input='{"q": 1}', metadata={"k": "v"}, enqueued_at=1_700_000_000_000_000)
SPAN = Span(
    rollout_id="ro-1",
    source="gateway",
    trace_id="a" * 32,
    span_id="b" * 16,
    name="chat",
    start=1,
    end=2,
    llm=ModelCall(
        model="m",
        policy_version=VersionRange(min=1, max=2),
        prompt_token_ids=pack_int32(range(60)),
        choices=[Choice(index=0, response_token_ids=pack_int32([1]), logprobs=pack_float32([-0.5]))],
    ),
)
UPDATE = ResourcesUpdate(
    resources_id="res",
    name="policy",
    version=1,
    resources={
        "weights": Weights(policy="policy", version=1, weights_id="w", uri="file:///x", sha256={"a": "b"}),
        "llm": LLM(endpoint="http://127.0.0.1", model="m"),
        "prompt": PromptTemplate(template="{x}"),
    },
    created_at=0,
)
SAMPLES = [TASK, SPAN, UPDATE]


def plain(record: Record) -> Any:
    """As generic Avro readers see it."""

    def untagged(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: untagged(v) for k, v in value.items() if k != "-type"}
        return [untagged(v) for v in value] if isinstance(value, list) else value

    return untagged(msgspec.to_builtins(record, builtin_types=(bytes,)))


def older(change: Any, record: str = "Task") -> RecordSchema:
    """A schema of an earlier release."""
    schema = catalogue.current()[record].json
    change(schema)
    text = json.dumps(schema)
    return RecordSchema(record, text, catalogue.fingerprint(text), "0.0.1")


def with_release(monkeypatch: pytest.MonkeyPatch, schema: RecordSchema) -> Codec:
    known = {**catalogue.by_fingerprint(), schema.fingerprint: schema}
    monkeypatch.setattr(catalogue, "by_fingerprint", lambda: known)
    return Codec(Settings())


def written_in(schema: RecordSchema, value: dict[str, Any]) -> bytes:
    out = io.BytesIO(schema.header)
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, schema.parsed(), value)
    return out.getvalue()


@pytest.mark.parametrize("record", SAMPLES, ids=lambda r: r.SCHEMA)
def test_round_trip(record: Record) -> None:
    assert CODEC.decode(CODEC.encode(record)) == record


@pytest.mark.parametrize("record", SAMPLES, ids=lambda r: r.SCHEMA)
def test_plain_fastavro_reads_it(record: Record) -> None:
    data = CODEC.encode(record)
    schema = json.loads((catalogue.CURRENT / f"{record.SCHEMA}.avsc").read_text())
    assert data[:2] == b"\xc3\x01"
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    assert data[2:HEADER_BYTES].hex() == fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    value = fastavro.schemaless_reader(io.BytesIO(data[HEADER_BYTES:]), fastavro.parse_schema(schema), None)
    assert value == plain(record)


@pytest.mark.parametrize("record", SAMPLES, ids=lambda r: r.SCHEMA)
def test_plain_avro_reads_it(record: Record) -> None:
    schema = parse((catalogue.CURRENT / f"{record.SCHEMA}.avsc").read_text())
    decoder = avro.io.BinaryDecoder(io.BytesIO(CODEC.encode(record)[HEADER_BYTES:]))
    assert avro.io.DatumReader(schema).read(decoder) == plain(record)


def test_a_field_that_an_older_release_lacks_gets_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ("metadata", "config", "sample_index", "resources_id")
    schema = older(lambda s: s.update(fields=[f for f in s["fields"] if f["name"] not in gone]))
    codec = with_release(monkeypatch, schema)
    value = {k: v for k, v in plain(TASK).items() if k not in gone}
    record = codec.decode(written_in(schema, value))
    assert record == msgspec.structs.replace(TASK, metadata={})


def test_a_field_that_is_gone_and_a_type_that_was_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(schema: dict[str, Any]) -> None:
        schema["fields"].insert(0, {"name": "was", "type": {"type": "array", "items": "string"}})
        next(f for f in schema["fields"] if f["name"] == "enqueued_at")["type"] = "int"

    schema = older(change)
    codec = with_release(monkeypatch, schema)
    record = codec.decode(written_in(schema, {**plain(TASK), "was": ["x"], "enqueued_at": 7}))
    assert record == msgspec.structs.replace(TASK, enqueued_at=7)


def test_unions_of_records_survive_an_older_release(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = older(
        lambda s: s.update(fields=[f for f in s["fields"] if f["name"] not in ("run_id", "step")]), "ResourcesUpdate"
    )
    codec = with_release(monkeypatch, schema)
    value = msgspec.to_builtins(UPDATE, builtin_types=(bytes,))
    assert codec.decode(written_in(schema, {k: v for k, v in value.items() if k not in ("run_id", "step")})) == UPDATE


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"{}", "unknown_framing"),
        (b"\xc3", "unknown_framing"),
        (b"\xc3\x01", "unknown_schema"),
        (b"\xc3\x01" + bytes(8) + b"rest", "unknown_schema"),
        (b"\x00\x00\x00\x00\x01rest", "unknown_schema"),
        (b"\x00\x00", "malformed"),
        (CODEC.encode(TASK)[:-1], "malformed"),
        (CODEC.encode(TASK)[:10], "malformed"),
        (CODEC.encode(TASK) + b"\x00", "trailing_bytes"),
    ],
)
def test_why_bytes_cannot_be_read(data: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError) as error:
        CODEC.decode(data)
    assert error.value.reason == reason


def test_a_record_of_another_topic_is_named() -> None:
    with pytest.raises(DecodeError) as error:
        CODEC.decode_as(Reward, CODEC.encode(TASK))
    assert error.value.reason == "wrong_record"
    assert CODEC.decode_as(Task, CODEC.encode(TASK)) == TASK


@pytest.mark.parametrize(
    "changes",
    [
        {"input": None},
        {"enqueued_at": 1 << 64},
        {"enqueued_at": "now"},
        {"rollout_id": "\ud800"},
        {"metadata": {"a": 1}},
    ],
)
def test_values_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(EncodeError, match="Task"):
        CODEC.encode(msgspec.structs.replace(TASK, **changes))


FUZZ = hypothesis_settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(name=st.sampled_from(sorted(RECORDS)), garbage=st.binary(max_size=200))
def test_garbage_behind_a_good_header(name: str, garbage: bytes) -> None:
    try:
        CODEC.decode(catalogue.current()[name].header + garbage)
    except DecodeError:
        return


@FUZZ
@given(garbage=st.binary(max_size=64))
def test_garbage(garbage: bytes) -> None:
    try:
        CODEC.decode(garbage)
    except DecodeError:
        return


@FUZZ
@given(data=st.data())
def test_garbage_in_an_older_schema(data: st.DataObject) -> None:
    schema = older(lambda s: s["fields"].pop(2), data.draw(st.sampled_from(["Task", "Span", "ResourcesUpdate"])))
    garbage = data.draw(st.binary(max_size=200))
    with pytest.MonkeyPatch.context() as patch:
        codec = with_release(patch, schema)
        try:
            codec.decode(schema.header + garbage)
        except DecodeError:
            return
