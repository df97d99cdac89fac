"""The user's cache of downloaded files, shared by all checkouts and environments."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """`HEADRACE_CACHE`, else the platform's cache folder of the user."""
    given = os.environ.get("HEADRACE_CACHE")
    return Path(given).expanduser().absolute() if given else platformdirs.user_cache_path("headrace", appauthor=False)


def offline() -> bool:
    """Whether `HEADRACE_OFFLINE` forbids the network."""
    return os.environ.get("HEADRACE_OFFLINE", "").lower() not in ("", "0", "false", "no")


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Hold an advisory lock on `path`; a second process waits until the first has left.

    The lock goes with its process, also when that is killed, so a stale one cannot exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
