"""The data directory of a local broker: ours or not, free or in use, formatted once."""

import json
import os
import shutil
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import TextIO

from headrace.deploy.local.cache import try_lock
from headrace.deploy.local.errors import DataDirectoryError, DirectoryInUseError

MARKER = "headrace-broker.json"
TEMPORARY_PREFIX = "headrace-broker-"
SETTLE_SECONDS = 10.0
"""A temporary directory younger than this may be one that is just being made."""
DYING_SECONDS = 5.0
"""The kernel kills the JVM of a killed owner at once, but a large process takes a moment to go."""


class DataDirectory:
    """A directory that this process holds until `release`.

    It is held by a lock on its marker file. The JVMs inherit the lock: the directory is in use while any of them lives.

    Raises:
        DataDirectoryError: it cannot be made or written, or holds files of someone else.
        DirectoryInUseError: another broker runs on it.
    """

    def __init__(self, path: Path | None) -> None:
        self.temporary = path is None
        if path is None:
            sweep()
            path = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX))
        self.path = path.expanduser().absolute()
        _prepare(self.path)
        self._marker = _hold(self.path)
        self.note(jvm=None)

    @property
    def lock_fd(self) -> int:
        """For the JVM to inherit."""
        return self._marker.fileno()

    @property
    def kafka(self) -> Path:
        """Kafka's own folder, its `log.dirs`."""
        return self.path / "kafka"

    @property
    def registry(self) -> Path:
        """The registry's folder."""
        return self.path / "registry"

    def fresh_scratch(self) -> Path:
        """An empty folder for what the JVMs unpack; a killed one leaves its libraries there."""
        scratch = self.path / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return scratch

    def note(self, *, jvm: int | None) -> None:
        """Write down who holds the directory."""
        self._marker.seek(0)
        self._marker.truncate()
        self._marker.write(json.dumps({"pid": os.getpid(), "jvm": jvm}))
        self._marker.flush()

    def format(self, bootstrap_checkpoint: bytes) -> None:
        """Give Kafka's folder a fresh cluster id; does nothing where it has one.

        Args:
            bootstrap_checkpoint: the feature levels as `kafka-storage format` writes them.
        """
        if (self.kafka / "meta.properties").exists():
            return
        part = self.path / ".format"
        shutil.rmtree(part, ignore_errors=True)
        metadata = part / "__cluster_metadata-0"
        metadata.mkdir(parents=True)
        (metadata / "00000000000000000000-0000000000.checkpoint").write_bytes(bootstrap_checkpoint)
        ids = f"cluster.id={kafka_uuid()}\ndirectory.id={kafka_uuid()}\n"
        (part / "meta.properties").write_text(f"version=1\nnode.id=1\n{ids}")
        part.rename(self.kafka)

    def release(self) -> None:
        """Let go of the directory; a temporary one is removed."""
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._marker.close()


def kafka_uuid() -> str:
    """A random id in Kafka's form: 16 bytes in URL-safe base64, not starting with '-'."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def sweep() -> None:
    """Remove the temporary directories of brokers that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{TEMPORARY_PREFIX}*"):
        marker = path / MARKER
        try:
            if path.stat().st_uid != os.getuid() or time.time() - marker.stat().st_mtime < SETTLE_SECONDS:
                continue
            with marker.open("r+") as handle:
                if try_lock(handle):
                    shutil.rmtree(path, ignore_errors=True)
        except OSError:  # another sweep was faster
            continue


def _prepare(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        names = os.listdir(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataDirectoryError(f"{path} is not a directory: choose another --data") from error
    except OSError as error:
        raise DataDirectoryError(f"cannot use {path}: {error.strerror}; choose another --data") from error
    if names and MARKER not in names:
        raise DataDirectoryError(
            f"{path} holds files that are not a Headrace broker's ({sorted(names)[0]!r}, ...), nothing was changed: "
            "choose an empty or a new directory as --data"
        )


def _hold(path: Path) -> TextIO:
    try:
        marker = (path / MARKER).open("a+")
    except OSError as error:
        raise DataDirectoryError(f"cannot write to {path}: {error.strerror}; choose another --data") from error
    deadline = time.monotonic() + DYING_SECONDS
    while not try_lock(marker):
        owner = _owner(marker)
        if (owner and _alive(owner)) or time.monotonic() > deadline:
            marker.close()
            raise DirectoryInUseError(str(path), owner)
        time.sleep(0.05)
    return marker


def _owner(marker: TextIO) -> int | None:
    marker.seek(0)
    try:
        return int(json.loads(marker.read())["pid"])
    except ValueError:  # empty: the owner has the lock and is about to write
        return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
