"""Data directories."""

import json
import os
from pathlib import Path

import pytest

from headrace.deploy.local.datadir import MARKER, DataDirectory, kafka_uuid, sweep
from headrace.deploy.local.errors import DataDirectoryError, DirectoryInUseError


def test_a_directory_is_formatted_once(tmp_path: Path) -> None:
    for _ in range(2):
        data = DataDirectory(tmp_path / "a" / "b")
        data.format(b"features")
        ids = (data.kafka / "meta.properties").read_text()
        (tmp_path / "ids").touch()
        assert (tmp_path / "ids").read_text() in ("", ids)
        (tmp_path / "ids").write_text(ids)
        data.release()


def test_a_format_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    (tmp_path / ".format" / "__cluster_metadata-0").mkdir(parents=True)
    data.format(b"features")
    assert "cluster.id=" in (data.kafka / "meta.properties").read_text()
    data.release()


def test_one_at_a_time(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path)
    with pytest.raises(DirectoryInUseError, match=f"in use by pid {os.getpid()}") as caught:
        DataDirectory(tmp_path)
    assert caught.value.pid == os.getpid()
    first.release()
    DataDirectory(tmp_path).release()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirectoryError, match="choose another --data"):
        DataDirectory(tmp_path / "file" / "below")


def test_temporary_directories_of_killed_brokers_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held = DataDirectory(None)
    for name in ("dead", "fresh"):
        (tmp_path / f"headrace-broker-{name}").mkdir()
        (tmp_path / f"headrace-broker-{name}" / MARKER).write_text(json.dumps({"pid": 1, "jvm": None}))
    (tmp_path / "headrace-broker-foreign").mkdir()
    for path in (held.path, tmp_path / "headrace-broker-dead"):
        os.utime(path / MARKER, (0, 0))
    sweep()
    assert {p.name for p in tmp_path.iterdir()} == {held.path.name, "headrace-broker-fresh", "headrace-broker-foreign"}
    held.release()
    assert not held.path.exists()


def test_ids_are_kafkas() -> None:
    ids = {kafka_uuid() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)
