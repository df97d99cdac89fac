"""What stands in a topic for a value that is too large for it: where the value is, its size and its SHA-256.

A claim check (Hohpe and Woolf, Enterprise Integration Patterns) is Avro in single-object encoding, like the records,
in a schema of its own (`ClaimCheck.avsc`). Who looks up the fingerprint sees what it is. Who takes it for the record
of the topic, and skips the header, reads the size as the length of the first text, which goes beyond the end: an
error, and no wrong record. It belongs to no topic, and so is no row of the catalogue.
"""

from pathlib import Path
from typing import NamedTuple

from headrace.schemas import catalogue
from headrace.schemas.varint import WireError, long, read_length, read_long

SCHEMA = catalogue.load(Path(__file__).parent / "ClaimCheck.avsc")
HEADER = SCHEMA.header


class ClaimCheck(NamedTuple):
    """A reference to a value.

    Attributes:
        bytes: size of the value.
        sha256: of the value, in hex digits.
        uri: where it is, as fsspec names it.
    """

    bytes: int
    sha256: str
    uri: str


def is_claim_check(value: bytes | None) -> bool:
    """Whether a value stands for another one."""
    return value is not None and value.startswith(HEADER)


def encode(claim: ClaimCheck) -> bytes:
    """The value that stands for another one."""
    parts = [HEADER, long(claim.bytes)]
    for text in (claim.sha256.encode(), claim.uri.encode()):
        parts += [long(len(text)), text]
    return b"".join(parts)


def decode(value: bytes) -> ClaimCheck:
    """What a value of `encode` refers to.

    Raises:
        WireError, IndexError, UnicodeDecodeError: it is none.
    """
    size, place = read_long(value, len(HEADER) + 1, value[len(HEADER)])
    texts: list[str] = []
    for _ in range(2):
        length, place = read_length(value, place + 1, value[place])
        texts.append(value[place : place + length].decode())
        place += length
    if place != len(value) or size < 0:
        raise WireError(f"no claim check: {len(value) - place} bytes after it, {size} bytes claimed")
    return ClaimCheck(size, *texts)
