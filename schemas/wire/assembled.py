"""The Avro binary coding of a Assembled. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    b16 = x.traces
    n17 = len(b16)
    put(SMALL[n17] if n17 < LIMIT else long(n17))
    put(b16)
    i18 = x.at
    put(SMALL[i18] if 0 <= i18 < LIMIT else long(i18))


def read_Assembled(b: bytes, p: int) -> tuple[r.Assembled, int]:
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
    u10 = b[p]
    if not u10:
        f9 = None
        p += 1
    elif u10 == 2:
        n11 = b[p + 1]
        if not n11 & 0x81:
            q13 = p + 2
            p = q13 + (n11 >> 1)
            f9 = b[q13:p].decode()
        elif not n11 & 1 and (m12 := b[p + 2]) < 128:
            q13 = p + 3
            p = q13 + (n11 >> 1 & 0x3F | m12 << 6)
            f9 = b[q13:p].decode()
        else:
            n11, p = read_length(b, p + 2, n11)
            f9 = b[p : p + n11].decode()
            p += n11
    else:
        raise WireError(f"no branch {u10} in this union")
    u15 = b[p]
    if not u15:
        f14 = None
        p += 1
    elif u15 == 2:
        f14, p = read_LogPosition(b, p + 1)
    else:
        raise WireError(f"no branch {u15} in this union")
    f16 = b[p]
    p += 1
    if f16 > 127:
        f16, p = read_long(b, p, f16)
    else:
        f16 = SIGNED[f16]
    f17: Any = []
    while True:
        n18 = b[p]
        p += 1
        if n18 > 127:
            n18, p = read_long(b, p, n18)
        else:
            n18 = SIGNED[n18]
        if n18 == 0:
            break
        if n18 < 0:
            n18 = -n18
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n18):
            n20 = b[p]
            if not n20 & 0x81:
                q22 = p + 1
                p = q22 + (n20 >> 1)
                v19 = b[q22:p].decode()
            elif not n20 & 1 and (m21 := b[p + 1]) < 128:
                q22 = p + 2
                p = q22 + (n20 >> 1 & 0x3F | m21 << 6)
                v19 = b[q22:p].decode()
            else:
                n20, p = read_length(b, p + 1, n20)
                v19 = b[p : p + n20].decode()
                p += n20
            f17.append(v19)
    f23, p = read_Source(b, p)
    f24 = b[p]
    p += 1
    if f24 > 127:
        f24, p = read_long(b, p, f24)
    else:
        f24 = SIGNED[f24]
    n26 = b[p]
    if not n26 & 0x81:
        q28 = p + 1
        p = q28 + (n26 >> 1)
        f25 = b[q28:p]
    elif not n26 & 1 and (m27 := b[p + 1]) < 128:
        q28 = p + 2
        p = q28 + (n26 >> 1 & 0x3F | m27 << 6)
        f25 = b[q28:p]
    else:
        n26, p = read_length(b, p + 1, n26)
        f25 = b[p : p + n26]
        p += n26
    f29 = b[p]
    p += 1
    if f29 > 127:
        f29, p = read_long(b, p, f29)
    else:
        f29 = SIGNED[f29]
    return r.Assembled(
        rollout_id=f1,
        state=f5,
        attempt_id=f9,
        trajectory=f14,
        revision=f16,
        reward_ids=f17,
        source=f23,
        segment=f24,
        traces=f25,
        at=f29,
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
        f1 = SIGNED[f1]
    n3 = b[p]
    if not n3 & 0x81:
        q5 = p + 1
        p = q5 + (n3 >> 1)
        f2 = b[q5:p]
    elif not n3 & 1 and (m4 := b[p + 1]) < 128:
        q5 = p + 2
        p = q5 + (n3 >> 1 & 0x3F | m4 << 6)
        f2 = b[q5:p]
    else:
        n3, p = read_length(b, p + 1, n3)
        f2 = b[p : p + n3]
        p += n3
    n7 = b[p]
    if not n7 & 0x81:
        q9 = p + 1
        p = q9 + (n7 >> 1)
        f6 = b[q9:p]
    elif not n7 & 1 and (m8 := b[p + 1]) < 128:
        q9 = p + 2
        p = q9 + (n7 >> 1 & 0x3F | m8 << 6)
        f6 = b[q9:p]
    else:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7]
        p += n7
    n11 = b[p]
    if not n11 & 0x81:
        q13 = p + 1
        p = q13 + (n11 >> 1)
        f10 = b[q13:p]
    elif not n11 & 1 and (m12 := b[p + 1]) < 128:
        q13 = p + 2
        p = q13 + (n11 >> 1 & 0x3F | m12 << 6)
        f10 = b[q13:p]
    else:
        n11, p = read_length(b, p + 1, n11)
        f10 = b[p : p + n11]
        p += n11
    return r.Source(partition=f1, attempts=f2, spans=f6, rewards=f10), p


WRITE = write_Assembled
READ = read_Assembled
