"""Locks: which files a local part consists of, each with its SHA-256. `relock.py` writes them."""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

LOCKS = Path(__file__).parent


@dataclass(frozen=True)
class Artifact:
    """A file of a Maven repository."""

    group: str
    name: str
    version: str
    sha256: str
    packaging: str = "jar"
    classifier: str = ""

    @property
    def filename(self) -> str:
        """The name under which Maven keeps it."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{tail}.{self.packaging}"


@dataclass(frozen=True)
class Lock:
    """A part's name, version and files.

    Attributes:
        digest: of the lock itself, so that another lock has another cache folder.
    """

    part: str
    version: str
    digest: str
    artifacts: tuple[Artifact, ...]


def read_lock(part: str) -> Lock:
    """The committed lock of `kafka` or `registry`."""
    raw = (LOCKS / f"{part}.lock.toml").read_bytes()
    table = tomllib.loads(raw.decode())
    artifacts = tuple(Artifact(**entry) for entry in table["artifact"])
    return Lock(part, table["version"], hashlib.sha256(raw).hexdigest()[:12], artifacts)
