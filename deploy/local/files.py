"""The files of a local part: there and right after `ensure_kafka` or `ensure_registry`, whatever was there before."""

import shutil
import tarfile
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace.deploy.local.cache import cache_directory, exclusive, offline
from headrace.deploy.local.errors import FetchError
from headrace.deploy.local.fetch import fetch, sha256
from headrace.deploy.local.lockfile import Artifact, Lock, read_lock
from headrace.deploy.local.stamps import changed, read_stamp, write_stamp
from headrace.deploy.local.watch import UNWATCHED, Watch

STAMP = "stamp.json"


def ensure_kafka(watch: Watch = UNWATCHED) -> tuple[Lock, Path]:
    """Kafka's lock and the folder of its jars, each verified.

    Raises:
        FetchError: a jar is not in the cache and not to be had.
    """
    lock = read_lock("kafka")
    home = part_home(lock)
    jars = home / "jars"
    names = [artifact.filename for artifact in lock.artifacts]
    if not changed(read_stamp(home / STAMP), jars, names):
        return lock, jars
    with _writing(home, watch):
        suspects = set(changed(read_stamp(home / STAMP), jars, names))
        missing = [a for a in lock.artifacts if a.filename in suspects and not _is_right(a, jars)]
        if missing:
            _fetch(lock, missing, jars, watch)
        write_stamp(home / STAMP, jars, names)
    return lock, jars


def ensure_registry(watch: Watch = UNWATCHED) -> tuple[Lock, Path]:
    """The registry's lock and the folder of its `quarkus-run.jar`, unpacked from the verified archive.

    Raises:
        FetchError: the archive is not to be had.
    """
    lock = read_lock("registry")
    home = part_home(lock)
    app = home / "app"
    if _is_whole(home, app):
        return lock, app
    with _writing(home, watch):
        if not _is_whole(home, app):
            with tempfile.TemporaryDirectory(prefix=".unpack-", dir=home) as scratch:
                _fetch(lock, lock.artifacts, Path(scratch), watch)
                _unpack(Path(scratch) / lock.artifacts[0].filename, Path(scratch) / "app")
                shutil.rmtree(app, ignore_errors=True)
                (Path(scratch) / "app").replace(app)
            write_stamp(home / STAMP, app, [str(p.relative_to(app)) for p in app.rglob("*") if p.is_file()])
    return lock, app


def part_home(lock: Lock) -> Path:
    """A part's folder in the cache; another lock has another folder."""
    return cache_directory() / f"{lock.part}-{lock.version}-{lock.digest}"


@contextmanager
def _writing(home: Path, watch: Watch) -> Generator[None]:
    try:
        with exclusive(home / "lock", watch):
            yield
    except OSError as error:
        raise FetchError(
            f"cannot write to the cache {home}: {error}; mend that, or name another folder with HEADRACE_CACHE"
        ) from error


def _is_right(artifact: Artifact, jars: Path) -> bool:
    path = jars / artifact.filename
    return path.is_file() and sha256(path) == artifact.sha256


def _is_whole(home: Path, app: Path) -> bool:
    stamp = read_stamp(home / STAMP)
    return bool(stamp) and not changed(stamp, app, list(stamp))


def _fetch(lock: Lock, artifacts: Sequence[Artifact], directory: Path, watch: Watch) -> None:
    if offline():
        raise FetchError(
            f"{len(artifacts)} of {len(lock.artifacts)} files of {lock.part} {lock.version} are not in "
            f"{cache_directory()} (HEADRACE_CACHE), and HEADRACE_OFFLINE forbids to fetch them: "
            "run `headrace broker --prepare` once with the network"
        )
    fetch(artifacts, directory, watch)


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as tar:
        # Python 3.11.0 to 3.11.3 lack the filter; the archive's content is pinned by its hash.
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
        else:
            tar.extractall(target)
