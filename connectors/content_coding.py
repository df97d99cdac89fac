"""Bodies of HTTP requests: decompressed within a limit, so that a small one cannot become large (RFC 9110, 8.4)."""

import zlib

GZIP_BITS = 16 + zlib.MAX_WBITS
SLICE_BYTES = 64 * 1024  # what is behind a member is copied, so no more than this is given at once
MOST_MEMBERS = 1000
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
            return _one(body, 0, zlib.MAX_WBITS, limit)[0]
        except NotReadable:
            return _one(body, 0, -zlib.MAX_WBITS, limit)[0]
    raise UnknownEncoding


def _members(body: bytes, limit: int) -> bytes:
    """gzip allows several members, one behind the other (RFC 1952)."""
    parts: list[bytes] = []
    size = at = 0
    while at < len(body):
        if len(parts) >= MOST_MEMBERS:
            raise NotReadable(f"more than {MOST_MEMBERS} gzip members")
        part, at = _one(body, at, GZIP_BITS, limit - size)
        parts.append(part)
        size += len(part)
    if not parts:
        raise NotReadable("an empty body is no gzip")
    return b"".join(parts) if len(parts) > 1 else parts[0]


def _one(body: bytes, at: int, bits: int, limit: int) -> tuple[bytes, int]:
    """What begins at a place, decompressed, and the place of its end."""
    inflate = zlib.decompressobj(bits)
    found: list[bytes] = []
    left = limit + 1
    while at < len(body) and not inflate.eof:
        given = body[at : at + SLICE_BYTES]
        at += len(given)
        try:
            found.append(inflate.decompress(given, left))
        except zlib.error as error:
            raise NotReadable(str(error)) from error
        left -= len(found[-1])
        if left <= 0:
            raise TooLarge
    if not inflate.eof:
        raise NotReadable("it ends too early")
    return b"".join(found), at - len(inflate.unused_data)
