"""Every target of the fuzzer for a moment: its seeds, mutations of them, and any bytes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_bytes_break_it(name: str, data: st.DataObject) -> None:
    target = TARGETS[name]
    input_ = bytearray(data.draw(st.sampled_from([*target.seeds, b""])))
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(input_)))
        input_[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=12))
    target.run(bytes(input_))
