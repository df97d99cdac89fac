"""Token ids, log-probabilities and offsets as bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas import packing

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


@given(st.lists(INT32))
def test_int32_round_trip(values: list[int]) -> None:
    packed = packing.pack_int32(values)
    assert len(packed) == 4 * len(values)
    assert packing.unpack_int32(packed) == values
    assert packing.int32_array(packed).tolist() == values
    assert packing.pack_int32(np.array(values, dtype=np.int64)) == packed


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_float32_round_trip(values: list[float]) -> None:
    packed = packing.pack_float32(values)
    assert packing.unpack_float32(packed) == values
    assert packing.float32_array(packed).tolist() == values


@given(st.lists(st.integers(0, (1 << 62))))
def test_offsets_round_trip(values: list[int]) -> None:
    assert packing.unpack_offsets(packing.pack_offsets(values)) == values


def test_neighbouring_offsets_take_a_byte_each() -> None:
    assert len(packing.pack_offsets(range(1_000_000, 1_000_100))) == 102


def test_ids_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="32 bits"):
        packing.pack_int32([1 << 31])
