"""Every change of a schema is judged against every released version."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas import catalogue, compatibility
from headrace.schemas.catalogue import RecordSchema

TASK = catalogue.current()["Task"]
OLD = replace(TASK, release="0.1.0")


def changed(change: Callable[[dict[str, Any]], object]) -> RecordSchema:
    schema = TASK.json
    change(schema)
    return replace(TASK, text=json.dumps(schema))


def field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    return next(f for f in schema["fields"] if f["name"] == name)


def test_the_current_schemas_read_every_release() -> None:
    assert compatibility.check() == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda s: s["fields"].append({"name": "new", "type": "string"}), "new"),
        (lambda s: field(s, "input").update(type="long"), "long"),
        (lambda s: field(s, "attempt").update(type="string"), "string"),
        (lambda s: field(s, "run_id").update(type="string", default=""), "null"),
        (lambda s: field(s, "metadata")["type"].update(values="long"), "long"),
        (lambda s: s.update(name="Todo"), "name mismatch"),
    ],
    ids=["no default", "string to long", "long to string", "no longer null", "map of longs", "renamed"],
)
def test_an_incompatible_change_is_caught(change: Callable[[dict[str, Any]], object], word: str) -> None:
    problems = compatibility.check({"Task": changed(change)}, [OLD])
    assert len(problems) == 1
    assert "0.1.0" in str(problems[0])
    assert word in str(problems[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["fields"].append({"name": "new", "type": "string", "default": ""}),
        lambda s: s["fields"].remove(field(s, "metadata")),
        lambda s: field(s, "attempt").update(type="double", default=1.0),
        lambda s: field(s, "input").update(type=["null", "string"]),
    ],
    ids=["with a default", "removed", "long to double", "may be null"],
)
def test_a_compatible_change_passes(change: Callable[[dict[str, Any]], object]) -> None:
    assert compatibility.check({"Task": changed(change)}, [OLD]) == []


def test_a_default_removed_from_a_later_field_is_caught_by_the_older_release() -> None:
    before = changed(lambda s: s["fields"].remove(field(s, "sample_index")))
    now = changed(lambda s: field(s, "sample_index").pop("default"))
    released = [replace(before, release="0.1.0"), replace(TASK, release="0.2.0")]
    assert [p.release for p in compatibility.check({"Task": now}, released)] == ["0.1.0"]


def test_a_record_that_is_gone_is_caught() -> None:
    (problem,) = compatibility.check({}, [OLD])
    assert problem.record == "Task"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of current and released schemas that a test may write."""
    (tmp_path / "avro").mkdir()
    (tmp_path / "avro" / "Task.avsc").write_text(TASK.text)
    monkeypatch.setattr(catalogue, "CURRENT", tmp_path / "avro")
    monkeypatch.setattr(catalogue, "RELEASED", tmp_path / "released")
    for cached in (catalogue.current, catalogue.released, catalogue.by_fingerprint):
        monkeypatch.setattr(catalogue, cached.__name__, cached.__wrapped__)  # type: ignore[attr-defined]
    return tmp_path


def test_release_keeps_the_schemas_once(folders: Path) -> None:
    assert catalogue.releases() == []
    assert compatibility.release("0.9.0") == ["Task"]
    assert (folders / "released" / "0.9.0" / "Task.avsc").read_text() == TASK.text
    for version, message in (("0.9.0", "already"), ("0.2.0", "older"), ("next", "1.2.3")):
        with pytest.raises(compatibility.CannotReleaseError, match=message):
            compatibility.release(version)
    compatibility.release("0.10.0")
    assert catalogue.releases() == ["0.9.0", "0.10.0"]
    current = changed(lambda s: field(s, "input").update(type="long"))
    (folders / "avro" / "Task.avsc").write_text(current.text)
    with pytest.raises(compatibility.CannotReleaseError, match=r"0\.9\.0"):
        compatibility.release("1.0.0")
