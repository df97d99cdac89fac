"""Hostile bytes: whatever they are, the decoder gives a record or a `DecodeError`, and takes little memory for it."""

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.schemas import catalogue
from headrace.schemas.records import RECORDS, Record
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.codec.codec import CONFLUENT_BYTES, SINGLE_OBJECT_BYTES
from headrace.streams.codec.registry import RegistrySchemas
from headrace.streams.settings import Settings
from tests.schemas.strategies import records_of

NAMES = sorted(RECORDS)
MANY = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(MANY, max_examples=3)
MOST_BYTES_A_BYTE = 1000  # the smallest part of a record is one byte, and a Python object of some hundred
MOST_BYTES = 1_000_000
HUGE = [b"\xfe\xff\xff\xff\x0f", b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff" * 9 + b"\x01", b"\x01", b"\x80" * 12]
"""Lengths: 2 GiB, the largest and the smallest number of 64 bits, -1, and one without an end."""


class Ids(RegistrySchemas):
    """A registry that knows the current schemas by their place in the alphabet."""

    def __init__(self) -> None:
        super().__init__(Settings(registry="http://127.0.0.1:9"))

    def _ask(self, about: str, method: str, *arguments: Any, **missing: Any) -> Any:
        if method == "get_schema" and 1 <= arguments[0] <= len(NAMES):
            return type("Found", (), {"schema_str": catalogue.current()[NAMES[arguments[0] - 1]].text})
        return missing["missing"]

    def header(self, name: str) -> bytes:
        return b"\0" + (NAMES.index(name) + 1).to_bytes(4, "big")


@pytest.fixture(scope="module")
def codecs() -> dict[str, tuple[Codec, int]]:
    """By framing: a codec that writes it, and the length of its header."""
    confluent = Codec(Settings(registry="http://127.0.0.1:9"))
    confluent._registry = Ids()
    return {"single-object": (Codec(Settings()), SINGLE_OBJECT_BYTES), "confluent": (confluent, CONFLUENT_BYTES)}


def judged(codec: Codec, data: bytes) -> None:
    """Decodes; anything but a record or a DecodeError fails."""
    with suppress(DecodeError):
        assert isinstance(codec.decode(data), Record)


@pytest.fixture
def traced() -> Any:
    """Measures memory, which costs a few times the decoding."""
    tracemalloc.start(1)
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("framing", ["single-object", "confluent"])
@MANY
@given(data=st.data())
def test_mutations_of_valid_records(framing: str, codecs: dict[str, tuple[Codec, int]], data: st.DataObject) -> None:
    codec, header = codecs[framing]
    record = data.draw(st.sampled_from(NAMES).flatmap(records_of))
    valid = codec.encode(record)
    assert codec.decode(valid) == record
    mutated = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        low = 0 if data.draw(st.booleans()) else min(header, len(mutated))
        at = data.draw(st.integers(low, len(mutated)))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "remove", "huge"])):
            case "flip" if at < len(mutated):
                mutated[at] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del mutated[at:]
            case "insert":
                mutated[at:at] = data.draw(st.binary(max_size=8))
            case "remove":
                del mutated[at : at + data.draw(st.integers(1, 8))]
            case _:
                mutated[at:at] = data.draw(st.sampled_from(HUGE))
    judged(codec, bytes(mutated))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("framing", ["single-object", "confluent"])
@pytest.mark.parametrize("name", NAMES)
@FEW
@given(drawn=st.data())
def test_hostile_lengths_at_every_place(
    framing: str, name: str, codecs: dict[str, tuple[Codec, int]], drawn: st.DataObject
) -> None:
    codec, header = codecs[framing]
    valid = codec.encode(drawn.draw(records_of(name)))
    for at in range(header, min(len(valid), header + 120)):
        data = valid[:at] + HUGE[at % len(HUGE)] + valid[at + 1 :]
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        judged(codec, data)
        _, peak = tracemalloc.get_traced_memory()
        assert peak - before < MOST_BYTES + MOST_BYTES_A_BYTE * len(data)
