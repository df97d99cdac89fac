"""The cache: what is there and right is used, what is not is fetched anew or refused."""

import hashlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.deploy.local import files
from headrace.deploy.local.errors import FetchError
from headrace.deploy.local.fetch import fetch
from headrace.deploy.local.lockfile import Artifact, Lock, read_lock
from headrace.deploy.local.watch import UNWATCHED, Watch

CONTENT = {"first": b"one jar", "second": b"another jar"}
ARTIFACTS = tuple(Artifact("org.example", name, "1", hashlib.sha256(raw).hexdigest()) for name, raw in CONTENT.items())


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cache of its own and a lock of two small jars; lists what was fetched."""
    names: list[str] = []

    def serve(artifacts: Sequence[Artifact], directory: Path, watch: Watch = UNWATCHED) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for artifact in artifacts:
            time.sleep(0.01)  # long enough for a second start to get in between
            names.append(artifact.name)
            (directory / artifact.filename).write_bytes(CONTENT[artifact.name])

    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    monkeypatch.delenv("HEADRACE_OFFLINE", raising=False)
    monkeypatch.setattr(files, "fetch", serve)
    monkeypatch.setattr(files, "read_lock", lambda part: Lock(part, "1", "digest", ARTIFACTS))
    return names


def test_files_are_fetched_once(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, jars = files.ensure_kafka()
    assert sorted(fetched) == ["first", "second"]
    assert {p.name: p.read_bytes() for p in jars.iterdir()} == {
        "first-1.jar": b"one jar",
        "second-1.jar": b"another jar",
    }
    monkeypatch.setenv("HEADRACE_OFFLINE", "1")
    monkeypatch.setattr(files, "sha256", lambda path: pytest.fail("hashed although nothing had changed"))
    files.ensure_kafka()
    assert len(fetched) == 2


@pytest.mark.parametrize("damage", [b"", b"one j", b"one jaR"])
def test_a_damaged_file_is_fetched_anew(fetched: list[str], damage: bytes) -> None:
    _, jars = files.ensure_kafka()
    (jars / "first-1.jar").write_bytes(damage)
    files.ensure_kafka()
    assert fetched == ["first", "second", "first"]
    assert (jars / "first-1.jar").read_bytes() == b"one jar"


def test_a_touched_file_is_verified_and_kept(fetched: list[str]) -> None:
    _, jars = files.ensure_kafka()
    os.utime(jars / "first-1.jar")
    files.ensure_kafka()
    assert len(fetched) == 2


def test_a_half_written_stamp_costs_a_verification_only(fetched: list[str]) -> None:
    _, jars = files.ensure_kafka()
    (jars.parent / files.STAMP).write_text('{"first-1.jar": [1')
    files.ensure_kafka()
    assert len(fetched) == 2


def test_starts_at_the_same_time_fetch_once(fetched: list[str]) -> None:
    threads = [threading.Thread(target=files.ensure_kafka) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fetched) == ["first", "second"]


def test_offline_says_what_is_missing(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_OFFLINE", "1")
    with pytest.raises(FetchError, match=r"2 of 2 files of kafka 1 are not in .*HEADRACE_OFFLINE"):
        files.ensure_kafka()
    assert fetched == []


def test_a_download_that_is_not_what_the_lock_says_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []

    def half_a_jar(artifact: Artifact, repository: Path, stop: threading.Event) -> Path:
        tries.append(repository)
        path = repository / artifact.filename
        path.write_bytes(CONTENT[artifact.name][:3])
        return path

    monkeypatch.setattr("headrace.deploy.local.fetch._download", half_a_jar)
    with pytest.raises(FetchError, match=r"cannot fetch org.example:first:1: .*the lock says"):
        fetch(ARTIFACTS[:1], tmp_path)
    assert len(set(tries)) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(fetched: list[str], tmp_path: Path) -> None:
    (tmp_path / "kafka-1-digest").mkdir()
    (tmp_path / "kafka-1-digest" / "jars").touch()
    with pytest.raises(FetchError, match="name another folder with HEADRACE_CACHE"):
        files.ensure_kafka()


@pytest.mark.parametrize("part", ["kafka", "registry"])
def test_the_committed_locks_are_whole(part: str) -> None:
    lock = read_lock(part)
    assert lock.artifacts
    assert all(len(a.sha256) == 64 for a in lock.artifacts)
    assert len({a.filename for a in lock.artifacts}) == len(lock.artifacts)
