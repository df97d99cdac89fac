"""Bodies of OTLP requests: decompressed within a limit."""

import zlib

GZIP_BITS = 16 + zlib.MAX_WBITS
MOST_MEMBERS = 1000  # each costs a copy of what is left
PLAIN = frozenset({"", "identity"})


class TooLarge(Exception):
    """The body is larger than the limit, as it came or decompressed."""


class NotReadable(Exception):
    """The body is not what its Content-Encoding says."""


class UnknownEncoding(Exception):
    """A Content-Encoding that is not taken."""


def decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    """The body without its Content-Encoding: gzip, deflate (with zlib's header, or raw as some write it) or none.

    Args:
        limit: largest result, in bytes; no more is ever decompressed.

    Raises:
        TooLarge, NotReadable, UnknownEncoding: as their names say.
    """
    name = encoding.strip().lower()
    if name in PLAIN:
        if len(body) > limit:
            raise TooLarge
        return body
    if name == "gzip":
        return _members(body, limit)
    if name == "deflate":
        try:
            return _one(body, zlib.MAX_WBITS, limit)[0]
        except NotReadable:
            return _one(body, -zlib.MAX_WBITS, limit)[0]
    raise UnknownEncoding


def _members(body: bytes, limit: int) -> bytes:
    """gzip allows several members, one behind the other (RFC 1952)."""
    parts: list[bytes] = []
    size = 0
    while body:
        if len(parts) >= MOST_MEMBERS:
            raise NotReadable(f"more than {MOST_MEMBERS} gzip members")
        part, body = _one(body, GZIP_BITS, limit - size)
        parts.append(part)
        size += len(part)
    if not parts:
        raise NotReadable("an empty body is no gzip")
    return b"".join(parts) if len(parts) > 1 else parts[0]


def _one(body: bytes, bits: int, limit: int) -> tuple[bytes, bytes]:
    inflate = zlib.decompressobj(bits)
    try:
        found = inflate.decompress(body, limit + 1)
    except zlib.error as error:
        raise NotReadable(str(error)) from error
    if len(found) > limit:
        raise TooLarge
    if not inflate.eof:
        raise NotReadable("it ends too early")
    return found, inflate.unused_data
