"""The Avro binary coding of a WorkerState. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SMALL, WireError, long, read_length, read_long

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
    n6 = b[p]
    if n6 & 0x81:
        n6, p = read_length(b, p + 1, n6)
        f5 = b[p : p + n6].decode()
        p += n6
    else:
        n6 = p + 1 + (n6 >> 1)
        f5 = b[p + 1 : n6].decode()
        p = n6
    f7 = b[p]
    p += 1
    if f7 > 127:
        f7, p = read_long(b, p, f7)
    else:
        f7 = (f7 >> 1) ^ -(f7 & 1)
    u9 = b[p]
    p += 1
    if u9 == 0:
        f8 = None
    elif u9 == 2:
        n10 = b[p]
        if n10 & 0x81:
            n10, p = read_length(b, p + 1, n10)
            f8 = b[p : p + n10].decode()
            p += n10
        else:
            n10 = p + 1 + (n10 >> 1)
            f8 = b[p + 1 : n10].decode()
            p = n10
    else:
        raise WireError(f"no branch {u9} in this union")
    u12 = b[p]
    p += 1
    if u12 == 0:
        f11 = None
    elif u12 == 2:
        n13 = b[p]
        if n13 & 0x81:
            n13, p = read_length(b, p + 1, n13)
            f11 = b[p : p + n13].decode()
            p += n13
        else:
            n13 = p + 1 + (n13 >> 1)
            f11 = b[p + 1 : n13].decode()
            p = n13
    else:
        raise WireError(f"no branch {u12} in this union")
    u15 = b[p]
    p += 1
    if u15 == 0:
        f14 = None
    elif u15 == 2:
        f14 = b[p]
        p += 1
        if f14 > 127:
            f14, p = read_long(b, p, f14)
        else:
            f14 = (f14 >> 1) ^ -(f14 & 1)
    else:
        raise WireError(f"no branch {u15} in this union")
    u17 = b[p]
    p += 1
    if u17 == 0:
        f16 = None
    elif u17 == 2:
        f16 = b[p]
        p += 1
        if f16 > 127:
            f16, p = read_long(b, p, f16)
        else:
            f16 = (f16 >> 1) ^ -(f16 & 1)
    else:
        raise WireError(f"no branch {u17} in this union")
    u19 = b[p]
    p += 1
    if u19 == 0:
        f18 = None
    elif u19 == 2:
        n20 = b[p]
        if n20 & 0x81:
            n20, p = read_length(b, p + 1, n20)
            f18 = b[p : p + n20].decode()
            p += n20
        else:
            n20 = p + 1 + (n20 >> 1)
            f18 = b[p + 1 : n20].decode()
            p = n20
    else:
        raise WireError(f"no branch {u19} in this union")
    n22 = b[p]
    if n22 & 0x81:
        n22, p = read_length(b, p + 1, n22)
        f21 = b[p : p + n22].decode()
        p += n22
    else:
        n22 = p + 1 + (n22 >> 1)
        f21 = b[p + 1 : n22].decode()
        p = n22
    f23: Any = {}
    while True:
        n24 = b[p]
        p += 1
        if n24 > 127:
            n24, p = read_long(b, p, n24)
        else:
            n24 = (n24 >> 1) ^ -(n24 & 1)
        if n24 == 0:
            break
        if n24 < 0:
            n24 = -n24
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n24):
            n27 = b[p]
            if n27 & 0x81:
                n27, p = read_length(b, p + 1, n27)
                k26 = b[p : p + n27].decode()
                p += n27
            else:
                n27 = p + 1 + (n27 >> 1)
                k26 = b[p + 1 : n27].decode()
                p = n27
            v25 = b[p]
            p += 1
            if v25 > 127:
                v25, p = read_long(b, p, v25)
            else:
                v25 = (v25 >> 1) ^ -(v25 & 1)
            f23[k26] = v25
    n29 = b[p]
    if n29 & 0x81:
        n29, p = read_length(b, p + 1, n29)
        f28 = b[p : p + n29].decode()
        p += n29
    else:
        n29 = p + 1 + (n29 >> 1)
        f28 = b[p + 1 : n29].decode()
        p = n29
    f30 = b[p]
    p += 1
    if f30 > 127:
        f30, p = read_long(b, p, f30)
    else:
        f30 = (f30 >> 1) ^ -(f30 & 1)
    f31 = b[p]
    p += 1
    if f31 > 127:
        f31, p = read_long(b, p, f31)
    else:
        f31 = (f31 >> 1) ^ -(f31 & 1)
    return r.WorkerState(
        worker_id=f1,
        kind=f3,
        host=f5,
        pid=f7,
        endpoint=f8,
        policy=f11,
        loading_version=f14,
        loaded_version=f16,
        weights_id=f18,
        status=f21,
        counters=f23,
        version=f28,
        started_at=f30,
        last_heartbeat_at=f31,
    ), p


WRITE = write_WorkerState
READ = read_WorkerState
