"""The Avro binary coding of a WorkerState. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_WorkerState(x: r.WorkerState, put: Put) -> None:
    b1 = x.worker_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.kind.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    b5 = x.host.encode()
    n6 = len(b5)
    put(SMALL[n6] if n6 < LIMIT else long(n6))
    put(b5)
    i7 = x.pid
    put(SMALL[i7] if 0 <= i7 < LIMIT else long(i7))
    u8 = x.endpoint
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        b9 = u8.encode()
        n10 = len(b9)
        put(SMALL[n10] if n10 < LIMIT else long(n10))
        put(b9)
    u11 = x.policy
    if u11 is None:
        put(b"\0")
    else:
        put(b"\2")
        b12 = u11.encode()
        n13 = len(b12)
        put(SMALL[n13] if n13 < LIMIT else long(n13))
        put(b12)
    u14 = x.loading_version
    if u14 is None:
        put(b"\0")
    else:
        put(b"\2")
        i15 = u14
        put(SMALL[i15] if 0 <= i15 < LIMIT else long(i15))
    u16 = x.loaded_version
    if u16 is None:
        put(b"\0")
    else:
        put(b"\2")
        i17 = u16
        put(SMALL[i17] if 0 <= i17 < LIMIT else long(i17))
    u18 = x.weights_id
    if u18 is None:
        put(b"\0")
    else:
        put(b"\2")
        b19 = u18.encode()
        n20 = len(b19)
        put(SMALL[n20] if n20 < LIMIT else long(n20))
        put(b19)
    b21 = x.status.encode()
    n22 = len(b21)
    put(SMALL[n22] if n22 < LIMIT else long(n22))
    put(b21)
    s23 = x.counters
    if s23:
        n24 = len(s23)
        put(SMALL[n24] if 0 <= n24 < LIMIT else long(n24))
        for k26, v25 in s23.items():
            b27 = k26.encode()
            n28 = len(b27)
            put(SMALL[n28] if n28 < LIMIT else long(n28))
            put(b27)
            i29 = v25
            put(SMALL[i29] if 0 <= i29 < LIMIT else long(i29))
    put(b"\0")
    b30 = x.version.encode()
    n31 = len(b30)
    put(SMALL[n31] if n31 < LIMIT else long(n31))
    put(b30)
    i32 = x.started_at
    put(SMALL[i32] if 0 <= i32 < LIMIT else long(i32))
    i33 = x.last_heartbeat_at
    put(SMALL[i33] if 0 <= i33 < LIMIT else long(i33))


def read_WorkerState(b: bytes, p: int) -> tuple[r.WorkerState, int]:
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
    f13 = b[p]
    p += 1
    if f13 > 127:
        f13, p = read_long(b, p, f13)
    else:
        f13 = SIGNED[f13]
    u15 = b[p]
    if not u15:
        f14 = None
        p += 1
    elif u15 == 2:
        n16 = b[p + 1]
        if not n16 & 0x81:
            q18 = p + 2
            p = q18 + (n16 >> 1)
            f14 = b[q18:p].decode()
        elif not n16 & 1 and (m17 := b[p + 2]) < 128:
            q18 = p + 3
            p = q18 + (n16 >> 1 & 0x3F | m17 << 6)
            f14 = b[q18:p].decode()
        else:
            n16, p = read_length(b, p + 2, n16)
            f14 = b[p : p + n16].decode()
            p += n16
    else:
        raise WireError(f"no branch {u15} in this union")
    u20 = b[p]
    if not u20:
        f19 = None
        p += 1
    elif u20 == 2:
        n21 = b[p + 1]
        if not n21 & 0x81:
            q23 = p + 2
            p = q23 + (n21 >> 1)
            f19 = b[q23:p].decode()
        elif not n21 & 1 and (m22 := b[p + 2]) < 128:
            q23 = p + 3
            p = q23 + (n21 >> 1 & 0x3F | m22 << 6)
            f19 = b[q23:p].decode()
        else:
            n21, p = read_length(b, p + 2, n21)
            f19 = b[p : p + n21].decode()
            p += n21
    else:
        raise WireError(f"no branch {u20} in this union")
    u25 = b[p]
    if not u25:
        f24 = None
        p += 1
    elif u25 == 2:
        f24 = b[p + 1]
        p += 2
        if f24 > 127:
            f24, p = read_long(b, p, f24)
        else:
            f24 = SIGNED[f24]
    else:
        raise WireError(f"no branch {u25} in this union")
    u27 = b[p]
    if not u27:
        f26 = None
        p += 1
    elif u27 == 2:
        f26 = b[p + 1]
        p += 2
        if f26 > 127:
            f26, p = read_long(b, p, f26)
        else:
            f26 = SIGNED[f26]
    else:
        raise WireError(f"no branch {u27} in this union")
    u29 = b[p]
    if not u29:
        f28 = None
        p += 1
    elif u29 == 2:
        n30 = b[p + 1]
        if not n30 & 0x81:
            q32 = p + 2
            p = q32 + (n30 >> 1)
            f28 = b[q32:p].decode()
        elif not n30 & 1 and (m31 := b[p + 2]) < 128:
            q32 = p + 3
            p = q32 + (n30 >> 1 & 0x3F | m31 << 6)
            f28 = b[q32:p].decode()
        else:
            n30, p = read_length(b, p + 2, n30)
            f28 = b[p : p + n30].decode()
            p += n30
    else:
        raise WireError(f"no branch {u29} in this union")
    n34 = b[p]
    if not n34 & 0x81:
        q36 = p + 1
        p = q36 + (n34 >> 1)
        f33 = b[q36:p].decode()
    elif not n34 & 1 and (m35 := b[p + 1]) < 128:
        q36 = p + 2
        p = q36 + (n34 >> 1 & 0x3F | m35 << 6)
        f33 = b[q36:p].decode()
    else:
        n34, p = read_length(b, p + 1, n34)
        f33 = b[p : p + n34].decode()
        p += n34
    f37: Any = {}
    while True:
        n38 = b[p]
        p += 1
        if n38 > 127:
            n38, p = read_long(b, p, n38)
        else:
            n38 = SIGNED[n38]
        if n38 == 0:
            break
        if n38 < 0:
            n38 = -n38
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n38):
            n41 = b[p]
            if not n41 & 0x81:
                q43 = p + 1
                p = q43 + (n41 >> 1)
                k40 = b[q43:p].decode()
            elif not n41 & 1 and (m42 := b[p + 1]) < 128:
                q43 = p + 2
                p = q43 + (n41 >> 1 & 0x3F | m42 << 6)
                k40 = b[q43:p].decode()
            else:
                n41, p = read_length(b, p + 1, n41)
                k40 = b[p : p + n41].decode()
                p += n41
            v39 = b[p]
            p += 1
            if v39 > 127:
                v39, p = read_long(b, p, v39)
            else:
                v39 = SIGNED[v39]
            f37[k40] = v39
    n45 = b[p]
    if not n45 & 0x81:
        q47 = p + 1
        p = q47 + (n45 >> 1)
        f44 = b[q47:p].decode()
    elif not n45 & 1 and (m46 := b[p + 1]) < 128:
        q47 = p + 2
        p = q47 + (n45 >> 1 & 0x3F | m46 << 6)
        f44 = b[q47:p].decode()
    else:
        n45, p = read_length(b, p + 1, n45)
        f44 = b[p : p + n45].decode()
        p += n45
    f48 = b[p]
    p += 1
    if f48 > 127:
        f48, p = read_long(b, p, f48)
    else:
        f48 = SIGNED[f48]
    f49 = b[p]
    p += 1
    if f49 > 127:
        f49, p = read_long(b, p, f49)
    else:
        f49 = SIGNED[f49]
    return r.WorkerState(
        worker_id=f1,
        kind=f5,
        host=f9,
        pid=f13,
        endpoint=f14,
        policy=f19,
        loading_version=f24,
        loaded_version=f26,
        weights_id=f28,
        status=f33,
        counters=f37,
        version=f44,
        started_at=f48,
        last_heartbeat_at=f49,
    ), p


WRITE = write_WorkerState
READ = read_WorkerState
