"""The Avro binary coding of each record: a module a record, generated, and imported when its record first comes by.

A process meets few of the records, and compiling all of them takes a tenth of a second where there is no byte code.
"""

import importlib
import re
from collections.abc import Callable
from typing import Any

from headrace.schemas.records import RECORDS, Record

Writer = Callable[[Any, Callable[[bytes], object]], None]
Reader = Callable[[bytes, int], tuple[Record, int]]


def _module(record: str) -> Any:
    if record not in RECORDS:
        raise KeyError(record)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", record).lower()
    return importlib.import_module(f"{__name__}.{name}")


class _Writers(dict[str, Writer]):
    def __missing__(self, record: str) -> Writer:
        write: Writer = _module(record).WRITE
        self[record] = write
        return write


class _Readers(dict[str, Reader]):
    def __missing__(self, record: str) -> Reader:
        read: Reader = _module(record).READ
        self[record] = read
        return read


WRITERS = _Writers()
"""By record name: `write(record, put)` calls `put` with pieces of bytes."""
READERS = _Readers()
"""By record name: `read(data, start)` gives the record and the place behind it."""
