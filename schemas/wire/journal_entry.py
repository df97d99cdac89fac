"""The Avro binary coding of a JournalEntry. Generated from the `.avsc` files."""

from collections.abc import Callable

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SIGNED, SMALL, long, read_length, read_long

Put = Callable[[bytes], object]


def write_JournalEntry(x: r.JournalEntry, put: Put) -> None:
    b1 = x.run_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.place.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    b5 = x.kind.encode()
    n6 = len(b5)
    put(SMALL[n6] if n6 < LIMIT else long(n6))
    put(b5)
    b7 = x.name.encode()
    n8 = len(b7)
    put(SMALL[n8] if n8 < LIMIT else long(n8))
    put(b7)
    b9 = x.request.encode()
    n10 = len(b9)
    put(SMALL[n10] if n10 < LIMIT else long(n10))
    put(b9)
    b11 = x.result.encode()
    n12 = len(b11)
    put(SMALL[n12] if n12 < LIMIT else long(n12))
    put(b11)
    i13 = x.at
    put(SMALL[i13] if 0 <= i13 < LIMIT else long(i13))


def read_JournalEntry(b: bytes, p: int) -> tuple[r.JournalEntry, int]:
    n2 = b[p]
    if not n2 & 0x81:
        q4 = p + 1
        p = q4 + (n2 >> 1)
        f1 = b[q4:p].decode()
    elif not n2 & 1 and (m3 := b[p + 1]) < 128:
        q4 = p + 2
        p = q4 + (n2 >> 1 & 0x3F | m3 << 6)
        f1 = b[q4:p].decode()
    else:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2].decode()
        p += n2
    n6 = b[p]
    if not n6 & 0x81:
        q8 = p + 1
        p = q8 + (n6 >> 1)
        f5 = b[q8:p].decode()
    elif not n6 & 1 and (m7 := b[p + 1]) < 128:
        q8 = p + 2
        p = q8 + (n6 >> 1 & 0x3F | m7 << 6)
        f5 = b[q8:p].decode()
    else:
        n6, p = read_length(b, p + 1, n6)
        f5 = b[p : p + n6].decode()
        p += n6
    n10 = b[p]
    if not n10 & 0x81:
        q12 = p + 1
        p = q12 + (n10 >> 1)
        f9 = b[q12:p].decode()
    elif not n10 & 1 and (m11 := b[p + 1]) < 128:
        q12 = p + 2
        p = q12 + (n10 >> 1 & 0x3F | m11 << 6)
        f9 = b[q12:p].decode()
    else:
        n10, p = read_length(b, p + 1, n10)
        f9 = b[p : p + n10].decode()
        p += n10
    n14 = b[p]
    if not n14 & 0x81:
        q16 = p + 1
        p = q16 + (n14 >> 1)
        f13 = b[q16:p].decode()
    elif not n14 & 1 and (m15 := b[p + 1]) < 128:
        q16 = p + 2
        p = q16 + (n14 >> 1 & 0x3F | m15 << 6)
        f13 = b[q16:p].decode()
    else:
        n14, p = read_length(b, p + 1, n14)
        f13 = b[p : p + n14].decode()
        p += n14
    n18 = b[p]
    if not n18 & 0x81:
        q20 = p + 1
        p = q20 + (n18 >> 1)
        f17 = b[q20:p].decode()
    elif not n18 & 1 and (m19 := b[p + 1]) < 128:
        q20 = p + 2
        p = q20 + (n18 >> 1 & 0x3F | m19 << 6)
        f17 = b[q20:p].decode()
    else:
        n18, p = read_length(b, p + 1, n18)
        f17 = b[p : p + n18].decode()
        p += n18
    n22 = b[p]
    if not n22 & 0x81:
        q24 = p + 1
        p = q24 + (n22 >> 1)
        f21 = b[q24:p].decode()
    elif not n22 & 1 and (m23 := b[p + 1]) < 128:
        q24 = p + 2
        p = q24 + (n22 >> 1 & 0x3F | m23 << 6)
        f21 = b[q24:p].decode()
    else:
        n22, p = read_length(b, p + 1, n22)
        f21 = b[p : p + n22].decode()
        p += n22
    f25 = b[p]
    p += 1
    if f25 > 127:
        f25, p = read_long(b, p, f25)
    else:
        f25 = SIGNED[f25]
    return r.JournalEntry(run_id=f1, place=f5, kind=f9, name=f13, request=f17, result=f21, at=f25), p


WRITE = write_JournalEntry
READ = read_JournalEntry
