"""The reference to a value in a store: Avro as the schema says, and no reader takes it for the record of the topic."""

import io
import json
from typing import Any

import avro.io
import fastavro
import pytest
from avro.schema import parse
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas import catalogue
from headrace.schemas.claim_check import HEADER, SCHEMA, ClaimCheck, decode, encode, is_claim_check

CLAIM = ClaimCheck(20_000_000, "ab" * 32, "s3://bucket/claims/cluster/headrace.spans.v1/ab/" + "ab" * 32)


@given(st.integers(0, (1 << 63) - 1), st.text(max_size=80), st.text(max_size=300))
def test_its_bytes_are_those_of_the_schema(size: int, sha256: str, uri: str) -> None:
    value = encode(ClaimCheck(size, sha256, uri))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA.parsed(), {"bytes": size, "sha256": sha256, "uri": uri})
    assert value == HEADER + out.getvalue()
    assert decode(value) == ClaimCheck(size, sha256, uri)
    assert is_claim_check(value)


def test_its_fingerprint_is_none_of_a_record() -> None:
    assert SCHEMA.fingerprint == parse(SCHEMA.text).fingerprint("CRC-64-AVRO")
    assert SCHEMA.fingerprint not in catalogue.by_fingerprint()
    assert not is_claim_check(None)
    assert not is_claim_check(HEADER[:9])


@pytest.mark.parametrize("name", sorted(catalogue.current()))
def test_who_takes_it_for_a_record_of_the_topic_gets_an_error(name: str) -> None:
    rest = encode(CLAIM)[len(HEADER) :]
    schema = catalogue.current()[name]
    with pytest.raises(EOFError):
        fastavro.schemaless_reader(io.BytesIO(rest), schema.parsed(), None)
    reader: Any = avro.io.DatumReader(parse(json.dumps(schema.json)))
    with pytest.raises(Exception, match=r"(?i)read|bytes|eof"):
        reader.read(avro.io.BinaryDecoder(io.BytesIO(rest)))


@pytest.mark.parametrize("value", [HEADER, encode(CLAIM)[:-1], encode(CLAIM) + b"x", HEADER + b"\xff" * 12])
def test_what_is_garbled_is_an_error(value: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        decode(value)
