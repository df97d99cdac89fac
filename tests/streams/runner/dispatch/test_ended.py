from headrace.streams.runner.dispatch import ended
from headrace.streams.runner.dispatch.ended import EndedIds


def test_ids_survive_the_merge(monkeypatch) -> None:
    monkeypatch.setattr(ended, "MERGE_AT", 100)
    ids = EndedIds()
    ids.add_keys(f"r{i}".encode() for i in range(150))
    for i in range(150, 420):
        ids.add(f"r{i}")
    assert len(ids) == 420
    assert all(f"r{i}" in ids for i in range(420))
    assert not any(f"x{i}" in ids for i in range(420))
