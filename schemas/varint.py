"""Avro's variable-length zigzag numbers, and what the generated coding shares."""

import struct

DOUBLE = struct.Struct("<d")
DOUBLES = [struct.Struct(f"<{n}d") for n in range(9)]
MAX_VARINT_BYTES = 10  # 64 bits in groups of seven


class WireError(ValueError):
    """The bytes are not what the schema says."""


def long(n: int) -> bytes:
    """A long as zigzag varint.

    Raises:
        ValueError: it does not fit 64 bits.
    """
    if not -(1 << 63) <= n < 1 << 63:
        raise ValueError(f"{n} does not fit an Avro long")
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


LIMIT = 8192  # covers all two-byte numbers: most lengths
SMALL = [long(n) for n in range(LIMIT)]
SIGNED = tuple((n >> 1) ^ -(n & 1) for n in range(128))  # what one byte means


def read_long(b: bytes, p: int, first: int) -> tuple[int, int]:
    """The long whose first byte is `first`, at `p - 1`; and the place behind it."""
    n = first & 0x7F
    shift = 7
    while first & 0x80:
        first = b[p]
        p += 1
        n |= (first & 0x7F) << shift
        shift += 7
        if shift > 7 * MAX_VARINT_BYTES:
            raise WireError("a number of more than 64 bits")
    if n >> 64:
        raise WireError("a number of more than 64 bits")
    return (n >> 1) ^ -(n & 1), p


def read_length(b: bytes, p: int, first: int) -> tuple[int, int]:
    """As `read_long`, for the length of a text: neither negative nor beyond the end."""
    n, p = read_long(b, p, first)
    if n < 0 or p + n > len(b):
        raise WireError(f"a length of {n} at byte {p} of {len(b)}")
    return n, p
