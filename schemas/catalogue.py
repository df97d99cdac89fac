"""The schemas by name and by fingerprint, current and released.

A fingerprint is CRC-64-AVRO of the Parsing Canonical Form (Avro 1.12 specification, "Schema Fingerprints").
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import fastavro.schema

HERE = Path(__file__).parent
SINGLE_OBJECT_MARKER = b"\xc3\x01"


@dataclass(frozen=True)
class RecordSchema:
    """One Avro schema.

    Attributes:
        name: of the record, as in `records.RECORDS`.
        text: the schema as JSON text.
        fingerprint: eight bytes, as they stand in a single-object header (little-endian).
        release: the release that it was kept from, `None` for the current one.
    """

    name: str
    text: str
    fingerprint: bytes
    release: str | None

    @property
    def header(self) -> bytes:
        """The ten bytes before each record in single-object encoding."""
        return SINGLE_OBJECT_MARKER + self.fingerprint

    @property
    def json(self) -> dict[str, Any]:
        """The schema as a JSON value."""
        return json.loads(self.text)

    def parsed(self) -> Any:
        """The schema as fastavro wants it."""
        return _parsed(self.text)


@cache
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))


def fingerprint(text: str) -> bytes:
    """The CRC-64-AVRO fingerprint of a schema, as little-endian bytes."""
    # fastavro gives the little-endian bytes as hex digits.
    canonical = fastavro.schema.to_parsing_canonical_form(json.loads(text))
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


def _load(path: Path, release: str | None) -> RecordSchema:
    text = path.read_text()
    return RecordSchema(path.stem, text, fingerprint(text), release)


@cache
def current() -> dict[str, RecordSchema]:
    """The schemas that this version writes, by record name."""
    return {path.stem: _load(path, None) for path in sorted((HERE / "avro").glob("*.avsc"))}


@cache
def released() -> list[RecordSchema]:
    """Every schema of every released version, oldest first."""
    folders = sorted(p for p in (HERE / "released").iterdir() if p.is_dir())
    return [_load(path, folder.name) for folder in folders for path in sorted(folder.glob("*.avsc"))]


@cache
def by_fingerprint() -> dict[bytes, RecordSchema]:
    """Current and released schemas by fingerprint; the current one wins."""
    return {s.fingerprint: s for s in [*released(), *current().values()]}
