"""The Avro binary coding of a Assembled. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_Assembled(x: r.Assembled, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.state.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.attempt_id
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)
    u8 = x.trajectory
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_LogPosition(u8, put)
    i9 = x.revision
    put(SMALL[i9] if 0 <= i9 < LIMIT else long(i9))
    s10 = x.reward_ids
    if s10:
        n11 = len(s10)
        put(SMALL[n11] if 0 <= n11 < LIMIT else long(n11))
        for v12 in s10:
            b13 = v12.encode()
            n14 = len(b13)
            put(SMALL[n14] if n14 < LIMIT else long(n14))
            put(b13)
    put(b"\0")
    write_Source(x.source, put)
    i15 = x.segment
    put(SMALL[i15] if 0 <= i15 < LIMIT else long(i15))
    i16 = x.at
    put(SMALL[i16] if 0 <= i16 < LIMIT else long(i16))


def read_Assembled(b: bytes, p: int) -> tuple[r.Assembled, int]:
    n2 = b[p]
    if n2 & 0x81:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2].decode()
        p += n2
    else:
        n2 = p + 1 + (n2 >> 1)
        f1 = b[p + 1 : n2].decode()
        p = n2
    n4 = b[p]
    if n4 & 0x81:
        n4, p = read_length(b, p + 1, n4)
        f3 = b[p : p + n4].decode()
        p += n4
    else:
        n4 = p + 1 + (n4 >> 1)
        f3 = b[p + 1 : n4].decode()
        p = n4
    u6 = b[p]
    p += 1
    if u6 == 0:
        f5 = None
    elif u6 == 2:
        n7 = b[p]
        if n7 & 0x81:
            n7, p = read_length(b, p + 1, n7)
            f5 = b[p : p + n7].decode()
            p += n7
        else:
            n7 = p + 1 + (n7 >> 1)
            f5 = b[p + 1 : n7].decode()
            p = n7
    else:
        raise WireError(f"no branch {u6} in this union")
    u9 = b[p]
    p += 1
    if u9 == 0:
        f8 = None
    elif u9 == 2:
        f8, p = read_LogPosition(b, p)
    else:
        raise WireError(f"no branch {u9} in this union")
    f10 = b[p]
    p += 1
    if f10 > 127:
        f10, p = read_long(b, p, f10)
    else:
        f10 = (f10 >> 1) ^ -(f10 & 1)
    f11: Any = []
    while True:
        n12 = b[p]
        p += 1
        if n12 > 127:
            n12, p = read_long(b, p, n12)
        else:
            n12 = (n12 >> 1) ^ -(n12 & 1)
        if n12 == 0:
            break
        if n12 < 0:
            n12 = -n12
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n12):
            n14 = b[p]
            if n14 & 0x81:
                n14, p = read_length(b, p + 1, n14)
                v13 = b[p : p + n14].decode()
                p += n14
            else:
                n14 = p + 1 + (n14 >> 1)
                v13 = b[p + 1 : n14].decode()
                p = n14
            f11.append(v13)
    f15, p = read_Source(b, p)
    f16 = b[p]
    p += 1
    if f16 > 127:
        f16, p = read_long(b, p, f16)
    else:
        f16 = (f16 >> 1) ^ -(f16 & 1)
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = (f17 >> 1) ^ -(f17 & 1)
    return r.Assembled(
        rollout_id=f1,
        state=f3,
        attempt_id=f5,
        trajectory=f8,
        revision=f10,
        reward_ids=f11,
        source=f15,
        segment=f16,
        at=f17,
    ), p


def write_LogPosition(x: r.LogPosition, put: Put) -> None:
    i1 = x.partition
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.offset
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))


def read_LogPosition(b: bytes, p: int) -> tuple[r.LogPosition, int]:
    f1 = b[p]
    p += 1
    if f1 > 127:
        f1, p = read_long(b, p, f1)
    else:
        f1 = (f1 >> 1) ^ -(f1 & 1)
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = (f2 >> 1) ^ -(f2 & 1)
    return r.LogPosition(partition=f1, offset=f2), p


def write_Source(x: r.Source, put: Put) -> None:
    i1 = x.partition
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    b2 = x.attempts
    n3 = len(b2)
    put(SMALL[n3] if n3 < LIMIT else long(n3))
    put(b2)
    b4 = x.spans
    n5 = len(b4)
    put(SMALL[n5] if n5 < LIMIT else long(n5))
    put(b4)
    b6 = x.rewards
    n7 = len(b6)
    put(SMALL[n7] if n7 < LIMIT else long(n7))
    put(b6)


def read_Source(b: bytes, p: int) -> tuple[r.Source, int]:
    f1 = b[p]
    p += 1
    if f1 > 127:
        f1, p = read_long(b, p, f1)
    else:
        f1 = (f1 >> 1) ^ -(f1 & 1)
    n3 = b[p]
    if n3 & 0x81:
        n3, p = read_length(b, p + 1, n3)
        f2 = b[p : p + n3]
        p += n3
    else:
        n3 = p + 1 + (n3 >> 1)
        f2 = b[p + 1 : n3]
        p = n3
    n5 = b[p]
    if n5 & 0x81:
        n5, p = read_length(b, p + 1, n5)
        f4 = b[p : p + n5]
        p += n5
    else:
        n5 = p + 1 + (n5 >> 1)
        f4 = b[p + 1 : n5]
        p = n5
    n7 = b[p]
    if n7 & 0x81:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7]
        p += n7
    else:
        n7 = p + 1 + (n7 >> 1)
        f6 = b[p + 1 : n7]
        p = n7
    return r.Source(partition=f1, attempts=f2, spans=f4, rewards=f6), p


WRITE = write_Assembled
READ = read_Assembled
