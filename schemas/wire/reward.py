"""The Avro binary coding of a Reward. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_Reward(x: r.Reward, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.attempt_id
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    b6 = x.reward_id.encode()
    n7 = len(b6)
    put(SMALL[n7] if n7 < LIMIT else long(n7))
    put(b6)
    b8 = x.name.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)
    put(b"\1" if x.primary else b"\0")
    put(DOUBLE.pack(x.value))
    u10 = x.span_id
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        b11 = u10.encode()
        n12 = len(b11)
        put(SMALL[n12] if n12 < LIMIT else long(n12))
        put(b11)
    b13 = x.source.encode()
    n14 = len(b13)
    put(SMALL[n14] if n14 < LIMIT else long(n14))
    put(b13)
    i15 = x.at
    put(SMALL[i15] if 0 <= i15 < LIMIT else long(i15))
    s16 = x.metadata
    if s16:
        n17 = len(s16)
        put(SMALL[n17] if 0 <= n17 < LIMIT else long(n17))
        for k19, v18 in s16.items():
            b20 = k19.encode()
            n21 = len(b20)
            put(SMALL[n21] if n21 < LIMIT else long(n21))
            put(b20)
            b22 = v18.encode()
            n23 = len(b22)
            put(SMALL[n23] if n23 < LIMIT else long(n23))
            put(b22)
    put(b"\0")


def read_Reward(b: bytes, p: int) -> tuple[r.Reward, int]:
    n2 = b[p]
    if n2 & 0x81:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2].decode()
        p += n2
    else:
        n2 = p + 1 + (n2 >> 1)
        f1 = b[p + 1 : n2].decode()
        p = n2
    u4 = b[p]
    p += 1
    if u4 == 0:
        f3 = None
    elif u4 == 2:
        n5 = b[p]
        if n5 & 0x81:
            n5, p = read_length(b, p + 1, n5)
            f3 = b[p : p + n5].decode()
            p += n5
        else:
            n5 = p + 1 + (n5 >> 1)
            f3 = b[p + 1 : n5].decode()
            p = n5
    else:
        raise WireError(f"no branch {u4} in this union")
    n7 = b[p]
    if n7 & 0x81:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7].decode()
        p += n7
    else:
        n7 = p + 1 + (n7 >> 1)
        f6 = b[p + 1 : n7].decode()
        p = n7
    n9 = b[p]
    if n9 & 0x81:
        n9, p = read_length(b, p + 1, n9)
        f8 = b[p : p + n9].decode()
        p += n9
    else:
        n9 = p + 1 + (n9 >> 1)
        f8 = b[p + 1 : n9].decode()
        p = n9
    f10 = b[p] == 1
    p += 1
    f11 = DOUBLE.unpack_from(b, p)[0]
    p += 8
    u13 = b[p]
    p += 1
    if u13 == 0:
        f12 = None
    elif u13 == 2:
        n14 = b[p]
        if n14 & 0x81:
            n14, p = read_length(b, p + 1, n14)
            f12 = b[p : p + n14].decode()
            p += n14
        else:
            n14 = p + 1 + (n14 >> 1)
            f12 = b[p + 1 : n14].decode()
            p = n14
    else:
        raise WireError(f"no branch {u13} in this union")
    n16 = b[p]
    if n16 & 0x81:
        n16, p = read_length(b, p + 1, n16)
        f15 = b[p : p + n16].decode()
        p += n16
    else:
        n16 = p + 1 + (n16 >> 1)
        f15 = b[p + 1 : n16].decode()
        p = n16
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = (f17 >> 1) ^ -(f17 & 1)
    f18: Any = {}
    while True:
        n19 = b[p]
        p += 1
        if n19 > 127:
            n19, p = read_long(b, p, n19)
        else:
            n19 = (n19 >> 1) ^ -(n19 & 1)
        if n19 == 0:
            break
        if n19 < 0:
            n19 = -n19
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n19):
            n22 = b[p]
            if n22 & 0x81:
                n22, p = read_length(b, p + 1, n22)
                k21 = b[p : p + n22].decode()
                p += n22
            else:
                n22 = p + 1 + (n22 >> 1)
                k21 = b[p + 1 : n22].decode()
                p = n22
            n23 = b[p]
            if n23 & 0x81:
                n23, p = read_length(b, p + 1, n23)
                v20 = b[p : p + n23].decode()
                p += n23
            else:
                n23 = p + 1 + (n23 >> 1)
                v20 = b[p + 1 : n23].decode()
                p = n23
            f18[k21] = v20
    return r.Reward(
        rollout_id=f1,
        attempt_id=f3,
        reward_id=f6,
        name=f8,
        primary=f10,
        value=f11,
        span_id=f12,
        source=f15,
        at=f17,
        metadata=f18,
    ), p


WRITE = write_Reward
READ = read_Reward
