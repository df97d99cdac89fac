"""The generated coding: byte for byte what fastavro writes, and nothing worse than an error on garbage."""

import io
import struct
from collections.abc import Callable
from typing import Any

import fastavro
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.schemas import catalogue
from headrace.schemas.records import RECORDS, Record
from headrace.schemas.varint import WireError, long, read_long
from headrace.schemas.wire import READERS, WRITERS

Records = Callable[[str], st.SearchStrategy[Record]]
NAMES = sorted(RECORDS)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
EXPECTED = (WireError, IndexError, UnicodeDecodeError, struct.error)


def written(record: Record) -> bytes:
    parts: list[bytes] = []
    WRITERS[record.SCHEMA](record, parts.append)
    return b"".join(parts)


def by_fastavro(record: Record) -> bytes:
    out = io.BytesIO()
    plain = msgspec.to_builtins(record, builtin_types=(bytes,))
    fastavro.schemaless_writer(out, catalogue.current()[record.SCHEMA].parsed(), plain)
    return out.getvalue()


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_bytes_are_fastavros_and_read_back(name: str, records: Records, data: st.DataObject) -> None:
    record = data.draw(records(name))
    value = written(record)
    assert value == by_fastavro(record)
    assert READERS[name](value, 0) == (record, len(value))


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_a_garbled_record_is_an_error_or_another_record(name: str, records: Records, data: st.DataObject) -> None:
    value = bytearray(written(data.draw(records(name))))
    value = value[: data.draw(st.integers(0, len(value)))]
    for _ in range(data.draw(st.integers(0, 3)) if value else 0):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    try:
        record, end = READERS[name](bytes(value), 0)
    except EXPECTED:
        return
    assert end >= 0
    assert isinstance(record, RECORDS[name])


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(garbage=st.binary(max_size=300))
def test_garbage_is_an_error_or_a_record(name: str, garbage: bytes) -> None:
    try:
        READERS[name](garbage, 0)
    except EXPECTED:
        return


@pytest.mark.parametrize(
    "count", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
)
def test_a_huge_array_ends_with_the_bytes(count: bytes) -> None:
    start = written(RECORDS["Reward"](rollout_id="r", reward_id="i", primary=True, value=0.0, source="s", at=0))
    assert start.endswith(b"\x00")  # the empty metadata
    with pytest.raises(EXPECTED):
        READERS["Reward"](start[:-1] + count, 0)


@pytest.mark.parametrize("number", [b"\xff" * 9 + b"\x02", b"\xff" * 9 + b"\x7f", b"\xff" * 10 + b"\x01", b"\x80" * 99])
def test_numbers_of_more_than_64_bits_are_refused(number: bytes) -> None:
    with pytest.raises(WireError, match="64 bits"):
        read_long(number, 1, number[0])


def test_the_largest_and_the_smallest_number() -> None:
    for value in ((1 << 63) - 1, -(1 << 63)):
        coded = long(value)
        assert read_long(coded, 1, coded[0]) == (value, 10)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        written(RECORDS["Task"](rollout_id="r", input="1", enqueued_at=1 << 63))


def test_a_missing_record_is_a_key_error() -> None:
    for coding in (READERS, WRITERS):
        known: Any = coding
        with pytest.raises(KeyError):
            known["Nothing"]
