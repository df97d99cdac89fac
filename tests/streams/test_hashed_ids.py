"""The map from ids to numbers."""

from headrace.streams import hashed_ids
from headrace.streams.hashed_ids import HashedIds


def test_keeps_the_last_number_of_each_id(monkeypatch):
    monkeypatch.setattr(hashed_ids, "RECENT", 100)
    ids = HashedIds()
    expected: dict[str, int] = {}
    for i in range(1000):
        name = f"ro-{i * 7 % 450}"
        ids.add(name, i)
        expected[name] = i
    assert len(expected) == 450
    assert {name: ids.get(name) for name in expected} == expected
    assert "ro-450" not in ids
    assert "ro-449" in ids


def test_an_empty_map_has_nothing():
    assert HashedIds().get("x") is None
    assert len(HashedIds()) == 0
