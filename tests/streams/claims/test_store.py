"""The store of large values: content-addressed, checked, and waited for while it is away."""

import hashlib
import os
import resource
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from headrace.schemas import claim_check
from headrace.schemas.records import Task
from headrace.streams.claims import ClaimError, ClaimStore, ClaimStores, ClaimsUnavailableError
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.settings import Settings

CONTENT = b"x" * 5000
FOLDER = "cluster/p.spans.v1"
HOUR = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "claims"


@pytest.fixture
def store(folder: Path) -> ClaimStore:
    return ClaimStore(str(folder), patience=0.1)


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "headrace-claims")


def get(store: ClaimStore, claim: claim_check.ClaimCheck) -> bytes:
    place = store.place_of(claim.uri)
    assert place is not None
    return store.get(place, claim)


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_what_is_put_is_got(kind: str, folder: Path) -> None:
    store = ClaimStore(str(folder) if kind == "folder" else "memory://claims-test/deep/", patience=0.1)
    claim = store.put(FOLDER, CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert claim == (5000, digest, f"{store.url}/{FOLDER}/{digest[:2]}/{digest}")
    assert get(store, claim) == CONTENT
    assert store.put(FOLDER, CONTENT) == claim
    (place,) = store.found(FOLDER)
    assert place == f"{FOLDER}/{digest[:2]}/{digest}"
    assert abs(store.now() - datetime.now(UTC)) < timedelta(minutes=1)
    store.delete(place)
    store.delete(place)
    assert store.found(FOLDER) == {}
    assert store.written(place) is None


def test_equal_content_is_one_file_and_an_old_one_becomes_young(store: ClaimStore, folder: Path) -> None:
    store.put(FOLDER, CONTENT)
    (path,) = files(folder)
    before = path.stat()
    store.put(FOLDER, CONTENT)
    assert path.stat().st_mtime == before.st_mtime
    os.utime(path, (before.st_mtime - 2 * HOUR,) * 2)
    store.put(FOLDER, CONTENT)
    assert path.stat().st_mtime >= before.st_mtime - 1
    assert files(folder) == [path]


def test_writers_at_once_leave_one_whole_file(folder: Path) -> None:
    content = os.urandom(2_000_000)
    threads = [threading.Thread(target=lambda: ClaimStore(str(folder)).put(FOLDER, content)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (path,) = files(folder)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "claim_missing"),
        (lambda path: path.write_bytes(b"y" * 5000), "claim_corrupt"),
        (lambda path: path.write_bytes(CONTENT[:-1]), "claim_corrupt"),
    ],
)
def test_what_is_gone_or_changed_is_named(
    damage: Callable[[Path], Any], reason: str, store: ClaimStore, folder: Path
) -> None:
    claim = store.put(FOLDER, CONTENT)
    damage(files(folder)[0])
    with pytest.raises(ClaimError) as error:
        get(store, claim)
    assert error.value.reason == reason


def test_a_store_that_is_not_there_is_waited_for(store: ClaimStore, folder: Path) -> None:
    claim = store.put(FOLDER, CONTENT)
    folder.rename(folder.with_name("unmounted"))
    with pytest.raises(ClaimsUnavailableError, match="HEADRACE_CLAIM_CHECK"):
        get(store, claim)
    folder.mkdir()  # the mount point without its volume
    with pytest.raises(ClaimsUnavailableError, match="mount"):
        get(store, claim)
    with pytest.raises(ClaimsUnavailableError, match="mount"):
        store.put(FOLDER, CONTENT)
    assert not list(folder.iterdir())
    folder.rmdir()
    folder.with_name("unmounted").rename(folder)
    assert get(store, claim) == CONTENT


def test_a_try_on_a_full_disk_leaves_nothing_behind(store: ClaimStore, folder: Path) -> None:
    store.put(FOLDER, b"small")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(ClaimsUnavailableError, match="waited for"):
            store.put(FOLDER, CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.stat().st_size for path in files(folder)] == [5]
    assert get(store, store.put(FOLDER, CONTENT)) == CONTENT


class FlakyFileSystem(MemoryFileSystem):
    """Fails so many calls."""

    protocol = "flaky"
    failures = 0
    store: dict[str, Any] = {}
    pseudo_dirs = [""]

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return "/" + str(path).removeprefix("flaky://").strip("/")

    def _fail(self) -> None:
        if FlakyFileSystem.failures > 0:
            FlakyFileSystem.failures -= 1
            raise ConnectionResetError("try again")

    def pipe_file(self, *args: Any, **kwargs: Any) -> None:
        self._fail()
        super().pipe_file(*args, **kwargs)

    def cat_file(self, *args: Any, **kwargs: Any) -> Any:
        self._fail()
        return super().cat_file(*args, **kwargs)


@pytest.fixture
def flaky() -> type[FlakyFileSystem]:
    fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
    FlakyFileSystem.failures = 0
    FlakyFileSystem.store.clear()
    return FlakyFileSystem


def test_a_moment_s_failure_is_passed_over_and_a_longer_one_is_told(flaky: type[FlakyFileSystem]) -> None:
    patient, store = (ClaimStore("flaky://claims", patience=seconds) for seconds in (60, 0.3))
    flaky.failures = 2
    claim = patient.put(FOLDER, CONTENT)
    flaky.failures = 2
    assert get(patient, claim) == CONTENT
    flaky.failures = 1000
    with pytest.raises(ClaimsUnavailableError, match="try again"):
        get(store, claim)
    with pytest.raises(ClaimsUnavailableError, match="waited for"):
        store.put(FOLDER, CONTENT * 2)
    flaky.failures = 0
    assert get(store, claim) == CONTENT


@pytest.mark.parametrize("kind", ["a file", "no protocol"])
def test_what_cannot_be_written_says_so(kind: str, folder: Path) -> None:
    if kind == "a file":
        folder.write_text("not a folder")
    store = ClaimStore(str(folder) if kind == "a file" else "nothing://x", patience=0.1)
    with pytest.raises(RecordTooLargeError, match="HEADRACE_CLAIM_CHECK"):
        store.put(FOLDER, CONTENT)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "{store}/../../etc/passwd",
        "{store}/cluster/../{two}/{sha}",
        "{store}/cluster/./{two}/{sha}",
        "{store}/cluster/p.spans.v1/00/{sha}",
        "{store}x/cluster/p.spans.v1/{two}/{sha}",
        "http://127.0.0.1:1/cluster/p.spans.v1/{two}/{sha}",
        "",
    ],
)
def test_a_reference_to_anywhere_else_is_refused(uri: str, folder: Path) -> None:
    stores = ClaimStores(Settings(claim_check=str(folder)), patience=0.1)
    digest = hashlib.sha256(CONTENT).hexdigest()
    where = uri.format(store=folder.as_uri(), two=digest[:2], sha=digest)
    with pytest.raises(ClaimError) as error:
        stores.get(claim_check.ClaimCheck(5000, digest, where))
    assert error.value.reason == "claim_foreign"


def test_a_former_store_is_still_read(tmp_path: Path) -> None:
    claim = ClaimStore(str(tmp_path / "old")).put(FOLDER, CONTENT)
    settings = Settings(claim_check=str(tmp_path / "new"), claim_check_former=[str(tmp_path / "old")])
    assert ClaimStores(settings).get(claim) == CONTENT


def test_limits() -> None:
    stores = ClaimStores(Settings(max_claim_bytes=4000))
    assert stores.refusal(4000) is None
    assert "max_claim_bytes" in (stores.refusal(4001) or "")
    assert "HEADRACE_CLAIM_CHECK" in (ClaimStores(Settings(claim_check="off")).refusal(1) or "")
    with pytest.raises(ClaimError) as error:
        stores.get(claim_check.ClaimCheck(1 << 60, "ab" * 32, "file:///x"))
    assert error.value.reason == "claim_too_large"


def test_the_codec_reads_the_record_behind_a_claim_check(folder: Path) -> None:
    settings = Settings(claim_check=str(folder))
    codec, stores = Codec(settings), ClaimStores(settings)
    task = Task(rollout_id="ro", input="x" * 10_000, enqueued_at=0)
    value = claim_check.encode(stores.put(FOLDER, codec.encode(task)))
    assert len(value) < 400
    assert codec.decode(value) == task
    twice = claim_check.encode(stores.put(FOLDER, value))
    garbage = claim_check.encode(stores.put(FOLDER, b"garbage" * 1000))
    for wrong, reason in ((twice, "malformed"), (garbage, "unknown_framing"), (value[:-3], "malformed")):
        with pytest.raises(DecodeError) as error:
            codec.decode(wrong)
        assert error.value.reason == reason
    for path in files(folder):
        path.unlink()
    with pytest.raises(DecodeError) as error:
        codec.decode(value)
    assert error.value.reason == "claim_missing"
    (folder / "headrace-claims").unlink()
    with pytest.raises(ClaimsUnavailableError):
        codec.decode(value)
