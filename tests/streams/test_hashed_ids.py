"""The map from ids to numbers."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.streams import hashed_ids
from headrace.streams.hashed_ids import HashedIds


@pytest.fixture(autouse=True, scope="module")
def _merge_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashed_ids, "RECENT", 5)
        yield


def test_keeps_the_last_number_of_each_id():
    ids = HashedIds()
    expected: dict[str, int] = {}
    for i in range(1000):
        name = f"ro-{i * 7 % 450}"
        ids.add(name, i)
        expected[name] = i
    assert len(expected) == 450
    assert {name: ids.get(name) for name in expected} == expected
    assert len(ids) == 450
    assert "ro-450" not in ids
    assert "ro-449" in ids


def test_an_empty_map_has_nothing():
    assert HashedIds().get("x") is None
    assert len(HashedIds()) == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 2**40))), max_size=80))
def test_is_a_dict(steps: list[tuple[int, int | None]]):
    ids, expected = HashedIds(), dict[str, int]()
    for key, number in steps:
        name = f"ro{key}"
        if number is None:
            ids.discard(name)
            expected.pop(name, None)
        else:
            ids.add(name, number)
            expected[name] = number
    assert {name: ids.get(name) for name in (f"ro{i}" for i in range(31))} == {
        name: expected.get(name) for name in (f"ro{i}" for i in range(31))
    }
