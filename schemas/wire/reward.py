"""The Avro binary coding of a Reward. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    u6 = b[p]
    if not u6:
        f5 = None
        p += 1
    elif u6 == 2:
        n7 = b[p + 1]
        if not n7 & 0x81:
            q9 = p + 2
            p = q9 + (n7 >> 1)
            f5 = b[q9:p].decode()
        elif not n7 & 1 and (m8 := b[p + 2]) < 128:
            q9 = p + 3
            p = q9 + (n7 >> 1 & 0x3F | m8 << 6)
            f5 = b[q9:p].decode()
        else:
            n7, p = read_length(b, p + 2, n7)
            f5 = b[p : p + n7].decode()
            p += n7
    else:
        raise WireError(f"no branch {u6} in this union")
    n11 = b[p]
    if not n11 & 0x81:
        q13 = p + 1
        p = q13 + (n11 >> 1)
        f10 = b[q13:p].decode()
    elif not n11 & 1 and (m12 := b[p + 1]) < 128:
        q13 = p + 2
        p = q13 + (n11 >> 1 & 0x3F | m12 << 6)
        f10 = b[q13:p].decode()
    else:
        n11, p = read_length(b, p + 1, n11)
        f10 = b[p : p + n11].decode()
        p += n11
    n15 = b[p]
    if not n15 & 0x81:
        q17 = p + 1
        p = q17 + (n15 >> 1)
        f14 = b[q17:p].decode()
    elif not n15 & 1 and (m16 := b[p + 1]) < 128:
        q17 = p + 2
        p = q17 + (n15 >> 1 & 0x3F | m16 << 6)
        f14 = b[q17:p].decode()
    else:
        n15, p = read_length(b, p + 1, n15)
        f14 = b[p : p + n15].decode()
        p += n15
    f18 = b[p] == 1
    p += 1
    f19 = DOUBLE.unpack_from(b, p)[0]
    p += 8
    u21 = b[p]
    if not u21:
        f20 = None
        p += 1
    elif u21 == 2:
        n22 = b[p + 1]
        if not n22 & 0x81:
            q24 = p + 2
            p = q24 + (n22 >> 1)
            f20 = b[q24:p].decode()
        elif not n22 & 1 and (m23 := b[p + 2]) < 128:
            q24 = p + 3
            p = q24 + (n22 >> 1 & 0x3F | m23 << 6)
            f20 = b[q24:p].decode()
        else:
            n22, p = read_length(b, p + 2, n22)
            f20 = b[p : p + n22].decode()
            p += n22
    else:
        raise WireError(f"no branch {u21} in this union")
    n26 = b[p]
    if not n26 & 0x81:
        q28 = p + 1
        p = q28 + (n26 >> 1)
        f25 = b[q28:p].decode()
    elif not n26 & 1 and (m27 := b[p + 1]) < 128:
        q28 = p + 2
        p = q28 + (n26 >> 1 & 0x3F | m27 << 6)
        f25 = b[q28:p].decode()
    else:
        n26, p = read_length(b, p + 1, n26)
        f25 = b[p : p + n26].decode()
        p += n26
    f29 = b[p]
    p += 1
    if f29 > 127:
        f29, p = read_long(b, p, f29)
    else:
        f29 = SIGNED[f29]
    f30: Any = {}
    while True:
        n31 = b[p]
        p += 1
        if n31 > 127:
            n31, p = read_long(b, p, n31)
        else:
            n31 = SIGNED[n31]
        if n31 == 0:
            break
        if n31 < 0:
            n31 = -n31
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n31):
            n34 = b[p]
            if not n34 & 0x81:
                q36 = p + 1
                p = q36 + (n34 >> 1)
                k33 = b[q36:p].decode()
            elif not n34 & 1 and (m35 := b[p + 1]) < 128:
                q36 = p + 2
                p = q36 + (n34 >> 1 & 0x3F | m35 << 6)
                k33 = b[q36:p].decode()
            else:
                n34, p = read_length(b, p + 1, n34)
                k33 = b[p : p + n34].decode()
                p += n34
            n37 = b[p]
            if not n37 & 0x81:
                q39 = p + 1
                p = q39 + (n37 >> 1)
                v32 = b[q39:p].decode()
            elif not n37 & 1 and (m38 := b[p + 1]) < 128:
                q39 = p + 2
                p = q39 + (n37 >> 1 & 0x3F | m38 << 6)
                v32 = b[q39:p].decode()
            else:
                n37, p = read_length(b, p + 1, n37)
                v32 = b[p : p + n37].decode()
                p += n37
            f30[k33] = v32
    return r.Reward(
        rollout_id=f1,
        attempt_id=f5,
        reward_id=f10,
        name=f14,
        primary=f18,
        value=f19,
        span_id=f20,
        source=f25,
        at=f29,
        metadata=f30,
    ), p


WRITE = write_Reward
READ = read_Reward
