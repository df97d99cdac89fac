"""Stamps: what the files of a folder looked like when they were last verified.

Hashing 50 MB at each start would cost 100 to 300 ms; comparing sizes and times costs 2.
"""

import json
import os
from pathlib import Path
from typing import Any, cast

Stamp = dict[str, list[int]]


def look(path: Path) -> list[int] | None:
    """Size in bytes and modification time in ns, None where there is no such file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return [status.st_size, status.st_mtime_ns]


def read_stamp(path: Path) -> Stamp:
    """A stamp that is missing or half written is empty: everything is then verified anew."""
    try:
        stamp: Any = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return cast(Stamp, stamp) if isinstance(stamp, dict) else {}


def write_stamp(path: Path, root: Path, names: list[str]) -> None:
    """Stamp the files `names` below `root`."""
    write_whole(path, json.dumps({name: look(root / name) for name in names}))


def changed(stamp: Stamp, root: Path, names: list[str]) -> list[str]:
    """Those of `names` that do not look as they did."""
    return [name for name in names if name not in stamp or look(root / name) != stamp[name]]


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees a part of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)
