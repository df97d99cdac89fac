"""What is derived from the schemas is up to date."""

import json
from typing import Any

import pytest
from avro.schema import parse

from headrace.schemas import catalogue, generate
from headrace.schemas.records import RECORDS
from headrace.streams.topics import TOPIC_OF_RECORD


@pytest.fixture(scope="module")
def generated() -> dict[str, tuple[str, str]]:
    """By file: what the generator writes and what is there."""
    return {
        str(path.relative_to(generate.ROOT)): (content, path.read_text() if path.exists() else "")
        for path, content in generate.generate().items()
    }


def test_generated_files_are_up_to_date(generated: dict[str, tuple[str, str]]) -> None:
    stale = [name for name, (content, there) in generated.items() if content != there]
    assert not stale, "run `python -m headrace.schemas.generate`"


def test_no_coding_is_left_of_a_record_that_is_gone(generated: dict[str, tuple[str, str]]) -> None:
    there = {str(p.relative_to(generate.ROOT)) for p in generate.WIRE.glob("*.py") if p.name != "__init__.py"}
    assert there <= set(generated)


def test_every_record_has_a_topic_and_a_type() -> None:
    assert set(catalogue.current()) == set(RECORDS) == set(TOPIC_OF_RECORD)


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_logical_types(s) for s in schema]
    if isinstance(schema, dict):
        if "logicalType" in schema:
            return schema["type"]
        return {key: without_logical_types(value) for key, value in schema.items()}
    return schema


@pytest.mark.parametrize("name", sorted(catalogue.current()))
def test_schemas_are_valid_and_fingerprints_right(name: str) -> None:
    schema = catalogue.current()[name]
    # The avro package leaves {"type": "bytes"} where a logical type is stripped; the canonical form has "bytes".
    parsed = parse(json.dumps(without_logical_types(schema.json)))
    assert schema.fingerprint == parsed.fingerprint("CRC-64-AVRO")
    assert schema.json["name"] == name
    assert catalogue.by_fingerprint()[schema.fingerprint].name == name


def test_fingerprints_differ() -> None:
    assert len({s.fingerprint for s in catalogue.current().values()}) == len(RECORDS)
