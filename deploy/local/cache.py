"""The user's cache of downloaded files, shared by all checkouts and environments."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import platformdirs

from headrace.deploy.local.watch import UNWATCHED, Watch


def cache_directory() -> Path:
    """`HEADRACE_CACHE`, else the platform's cache folder of the user."""
    given = os.environ.get("HEADRACE_CACHE")
    return Path(given).expanduser().absolute() if given else platformdirs.user_cache_path("headrace", appauthor=False)


def offline() -> bool:
    """Whether `HEADRACE_OFFLINE` forbids the network."""
    return os.environ.get("HEADRACE_OFFLINE", "").lower() not in ("", "0", "false", "no")


@contextmanager
def exclusive(path: Path, watch: Watch = UNWATCHED) -> Generator[None]:
    """Hold an advisory lock on `path`; a second process waits until the first has left.

    The lock goes with its process, also when that is killed, so a stale one cannot exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        while not try_lock(handle):
            watch.checkpoint()
            time.sleep(0.1)
        yield


def try_lock(handle: TextIO) -> bool:
    """Whether the lock on an open file is ours now; it goes when all who inherited the file have closed it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
