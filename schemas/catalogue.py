"""The schemas by name and by fingerprint, current and released.

A fingerprint is CRC-64-AVRO of the Parsing Canonical Form (Avro 1.12 specification, "Schema Fingerprints").
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).parent
CURRENT = HERE / "avro"
RELEASED = HERE / "released"
FINGERPRINTS = HERE / "fingerprints.json"
"""Generated: the fingerprints by the SHA-256 of the schemas' text."""
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
    import fastavro

    return fastavro.parse_schema(json.loads(text))


def sha256(text: str) -> str:
    """The SHA-256 of a schema's text, in hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(text: str) -> bytes:
    """The CRC-64-AVRO fingerprint of a schema, as little-endian bytes."""
    known = _fingerprints().get(sha256(text))
    return bytes.fromhex(known) if known else computed_fingerprint(text)


def computed_fingerprint(text: str) -> bytes:
    """As `fingerprint`, computed in milliseconds."""
    import fastavro.schema

    # fastavro gives the little-endian bytes as hex digits.
    canonical = fastavro.schema.to_parsing_canonical_form(json.loads(text))
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


@cache
def _fingerprints() -> dict[str, str]:
    return cast(dict[str, str], json.loads(FINGERPRINTS.read_text())) if FINGERPRINTS.exists() else {}


def load(path: Path, release: str | None = None) -> RecordSchema:
    """The schema of an `.avsc` file, named as the file is."""
    text = path.read_text()
    return RecordSchema(path.stem, text, fingerprint(text), release)


@cache
def current() -> dict[str, RecordSchema]:
    """The schemas that this version writes, by record name."""
    return {path.stem: load(path) for path in sorted(CURRENT.glob("*.avsc"))}


@cache
def released() -> list[RecordSchema]:
    """Every schema of every released version, oldest first."""
    return [load(path, version) for version in releases() for path in sorted((RELEASED / version).glob("*.avsc"))]


def releases() -> list[str]:
    """The released versions, oldest first."""
    if not RELEASED.is_dir():
        return []
    return sorted((p.name for p in RELEASED.iterdir() if p.is_dir()), key=version_key)


def version_key(version: str) -> tuple[int, ...]:
    """Orders versions of whole numbers with dots.

    Raises:
        ValueError: it is no such version.
    """
    return tuple(int(part) for part in version.split("."))


@cache
def by_fingerprint() -> dict[bytes, RecordSchema]:
    """Current and released schemas by fingerprint; the current one wins."""
    return {s.fingerprint: s for s in [*released(), *current().values()]}
