"""Schemas are BACKWARD_TRANSITIVE: the current one reads what every released version wrote.

Judged by the `avro` package's ReaderWriterCompatibilityChecker (Avro specification, "Schema Resolution").
"""

import shutil
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headrace.schemas import catalogue
from headrace.schemas.catalogue import RecordSchema


@dataclass(frozen=True)
class Incompatible:
    """A current schema that cannot read what a released version wrote.

    Attributes:
        where: the place in the current schema, as a path.
    """

    record: str
    release: str
    where: str
    reason: str

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where not in ("", "/") else ""
        return f"{self.record} cannot read what {self.release} wrote: {self.reason}{place}"


class CannotReleaseError(ValueError):
    """A version that is there already, or whose schemas cannot read an earlier one's records."""


def compare(reader: RecordSchema, writer: RecordSchema) -> list[Incompatible]:
    """Why a schema cannot read what another wrote; empty where it can."""
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
    from avro.errors import IgnoredLogicalType
    from avro.schema import parse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredLogicalType)  # ours are unknown to it, and change nothing here
        schemas = parse(reader.text), parse(writer.text)
    checked: Any = ReaderWriterCompatibilityChecker().get_compatibility(*schemas)
    if checked.compatibility is SchemaCompatibilityType.compatible:
        return []
    release = writer.release or "the writer"
    kinds = sorted({str(kind.name).replace("_", " ") for kind in checked.incompatibilities})
    reason = ", ".join(kinds) + ": " + "; ".join(sorted(checked.messages))
    return [Incompatible(reader.name, release, ", ".join(sorted(checked.locations)), reason)]


def check(
    current: dict[str, RecordSchema] | None = None, released: Iterable[RecordSchema] | None = None
) -> list[Incompatible]:
    """Everything that keeps the current schemas from reading what the released versions wrote.

    Args:
        current: by record name; this version's where not given.
        released: of all versions; those kept in this package where not given.
    """
    current = catalogue.current() if current is None else current
    found: list[Incompatible] = []
    for writer in catalogue.released() if released is None else released:
        reader = current.get(writer.name)
        if reader is None:
            found.append(Incompatible(writer.name, writer.release or "", "", "there is no such record any more"))
        else:
            found += compare(reader, writer)
    return found


def release(version: str) -> list[str]:
    """Keeps the current schemas as a released version; the names of its records.

    Raises:
        CannotReleaseError: see there.
    """
    try:
        key = catalogue.version_key(version)
    except ValueError as error:
        raise CannotReleaseError(f"{version!r} is no version; write it as 1.2.3") from error
    there = catalogue.releases()
    if version in there:
        raise CannotReleaseError(f"{version} is released already, and what is released stays as it is")
    if there and key < catalogue.version_key(there[-1]):
        raise CannotReleaseError(f"{version} is older than {there[-1]}, which is released")
    problems = check()
    if problems:
        raise CannotReleaseError("\n".join(map(str, problems)))
    folder = catalogue.RELEASED / version
    folder.mkdir(parents=True)
    for path in sorted(catalogue.CURRENT.glob("*.avsc")):
        shutil.copyfile(path, folder / path.name)
    return [path.stem for path in sorted(folder.glob("*.avsc"))]
