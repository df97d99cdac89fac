"""The Avro binary coding of a RunManifest. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_RunManifest(x: r.RunManifest, put: Put) -> None:
    b1 = x.run_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.algorithm.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    b5 = x.policy.encode()
    n6 = len(b5)
    put(SMALL[n6] if n6 < LIMIT else long(n6))
    put(b5)
    b7 = x.settings.encode()
    n8 = len(b7)
    put(SMALL[n8] if n8 < LIMIT else long(n8))
    put(b7)
    i9 = x.seed
    put(SMALL[i9] if 0 <= i9 < LIMIT else long(i9))
    u10 = x.base_weights
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_Weights(u10, put)
    u11 = x.parent
    if u11 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_ParentRun(u11, put)
    s12 = x.versions
    if s12:
        n13 = len(s12)
        put(SMALL[n13] if 0 <= n13 < LIMIT else long(n13))
        for k15, v14 in s12.items():
            b16 = k15.encode()
            n17 = len(b16)
            put(SMALL[n17] if n17 < LIMIT else long(n17))
            put(b16)
            b18 = v14.encode()
            n19 = len(b18)
            put(SMALL[n19] if n19 < LIMIT else long(n19))
            put(b18)
    put(b"\0")
    b20 = x.device.encode()
    n21 = len(b20)
    put(SMALL[n21] if n21 < LIMIT else long(n21))
    put(b20)
    i22 = x.threads
    put(SMALL[i22] if 0 <= i22 < LIMIT else long(i22))
    b23 = x.dtype.encode()
    n24 = len(b23)
    put(SMALL[n24] if n24 < LIMIT else long(n24))
    put(b23)
    put(b"\1" if x.offline else b"\0")
    i25 = x.created_at
    put(SMALL[i25] if 0 <= i25 < LIMIT else long(i25))


def read_RunManifest(b: bytes, p: int) -> tuple[r.RunManifest, int]:
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
    n8 = b[p]
    if n8 & 0x81:
        n8, p = read_length(b, p + 1, n8)
        f7 = b[p : p + n8].decode()
        p += n8
    else:
        n8 = p + 1 + (n8 >> 1)
        f7 = b[p + 1 : n8].decode()
        p = n8
    f9 = b[p]
    p += 1
    if f9 > 127:
        f9, p = read_long(b, p, f9)
    else:
        f9 = (f9 >> 1) ^ -(f9 & 1)
    u11 = b[p]
    p += 1
    if u11 == 0:
        f10 = None
    elif u11 == 2:
        f10, p = read_Weights(b, p)
    else:
        raise WireError(f"no branch {u11} in this union")
    u13 = b[p]
    p += 1
    if u13 == 0:
        f12 = None
    elif u13 == 2:
        f12, p = read_ParentRun(b, p)
    else:
        raise WireError(f"no branch {u13} in this union")
    f14: Any = {}
    while True:
        n15 = b[p]
        p += 1
        if n15 > 127:
            n15, p = read_long(b, p, n15)
        else:
            n15 = (n15 >> 1) ^ -(n15 & 1)
        if n15 == 0:
            break
        if n15 < 0:
            n15 = -n15
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n15):
            n18 = b[p]
            if n18 & 0x81:
                n18, p = read_length(b, p + 1, n18)
                k17 = b[p : p + n18].decode()
                p += n18
            else:
                n18 = p + 1 + (n18 >> 1)
                k17 = b[p + 1 : n18].decode()
                p = n18
            n19 = b[p]
            if n19 & 0x81:
                n19, p = read_length(b, p + 1, n19)
                v16 = b[p : p + n19].decode()
                p += n19
            else:
                n19 = p + 1 + (n19 >> 1)
                v16 = b[p + 1 : n19].decode()
                p = n19
            f14[k17] = v16
    n21 = b[p]
    if n21 & 0x81:
        n21, p = read_length(b, p + 1, n21)
        f20 = b[p : p + n21].decode()
        p += n21
    else:
        n21 = p + 1 + (n21 >> 1)
        f20 = b[p + 1 : n21].decode()
        p = n21
    f22 = b[p]
    p += 1
    if f22 > 127:
        f22, p = read_long(b, p, f22)
    else:
        f22 = (f22 >> 1) ^ -(f22 & 1)
    n24 = b[p]
    if n24 & 0x81:
        n24, p = read_length(b, p + 1, n24)
        f23 = b[p : p + n24].decode()
        p += n24
    else:
        n24 = p + 1 + (n24 >> 1)
        f23 = b[p + 1 : n24].decode()
        p = n24
    f25 = b[p] == 1
    p += 1
    f26 = b[p]
    p += 1
    if f26 > 127:
        f26, p = read_long(b, p, f26)
    else:
        f26 = (f26 >> 1) ^ -(f26 & 1)
    return r.RunManifest(
        run_id=f1,
        algorithm=f3,
        policy=f5,
        settings=f7,
        seed=f9,
        base_weights=f10,
        parent=f12,
        versions=f14,
        device=f20,
        threads=f22,
        dtype=f23,
        offline=f25,
        created_at=f26,
    ), p


def write_Weights(x: r.Weights, put: Put) -> None:
    b1 = x.policy.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    i3 = x.version
    put(SMALL[i3] if 0 <= i3 < LIMIT else long(i3))
    b4 = x.weights_id.encode()
    n5 = len(b4)
    put(SMALL[n5] if n5 < LIMIT else long(n5))
    put(b4)
    b6 = x.transport.encode()
    n7 = len(b6)
    put(SMALL[n7] if n7 < LIMIT else long(n7))
    put(b6)
    b8 = x.uri.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)
    b10 = x.format.encode()
    n11 = len(b10)
    put(SMALL[n11] if n11 < LIMIT else long(n11))
    put(b10)
    u12 = x.base_model
    if u12 is None:
        put(b"\0")
    else:
        put(b"\2")
        b13 = u12.encode()
        n14 = len(b13)
        put(SMALL[n14] if n14 < LIMIT else long(n14))
        put(b13)
    s15 = x.sha256
    if s15:
        n16 = len(s15)
        put(SMALL[n16] if 0 <= n16 < LIMIT else long(n16))
        for k18, v17 in s15.items():
            b19 = k18.encode()
            n20 = len(b19)
            put(SMALL[n20] if n20 < LIMIT else long(n20))
            put(b19)
            b21 = v17.encode()
            n22 = len(b21)
            put(SMALL[n22] if n22 < LIMIT else long(n22))
            put(b21)
    put(b"\0")
    i23 = x.bytes
    put(SMALL[i23] if 0 <= i23 < LIMIT else long(i23))


def read_Weights(b: bytes, p: int) -> tuple[r.Weights, int]:
    n2 = b[p]
    if n2 & 0x81:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2].decode()
        p += n2
    else:
        n2 = p + 1 + (n2 >> 1)
        f1 = b[p + 1 : n2].decode()
        p = n2
    f3 = b[p]
    p += 1
    if f3 > 127:
        f3, p = read_long(b, p, f3)
    else:
        f3 = (f3 >> 1) ^ -(f3 & 1)
    n5 = b[p]
    if n5 & 0x81:
        n5, p = read_length(b, p + 1, n5)
        f4 = b[p : p + n5].decode()
        p += n5
    else:
        n5 = p + 1 + (n5 >> 1)
        f4 = b[p + 1 : n5].decode()
        p = n5
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
    n11 = b[p]
    if n11 & 0x81:
        n11, p = read_length(b, p + 1, n11)
        f10 = b[p : p + n11].decode()
        p += n11
    else:
        n11 = p + 1 + (n11 >> 1)
        f10 = b[p + 1 : n11].decode()
        p = n11
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
    f15: Any = {}
    while True:
        n16 = b[p]
        p += 1
        if n16 > 127:
            n16, p = read_long(b, p, n16)
        else:
            n16 = (n16 >> 1) ^ -(n16 & 1)
        if n16 == 0:
            break
        if n16 < 0:
            n16 = -n16
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n16):
            n19 = b[p]
            if n19 & 0x81:
                n19, p = read_length(b, p + 1, n19)
                k18 = b[p : p + n19].decode()
                p += n19
            else:
                n19 = p + 1 + (n19 >> 1)
                k18 = b[p + 1 : n19].decode()
                p = n19
            n20 = b[p]
            if n20 & 0x81:
                n20, p = read_length(b, p + 1, n20)
                v17 = b[p : p + n20].decode()
                p += n20
            else:
                n20 = p + 1 + (n20 >> 1)
                v17 = b[p + 1 : n20].decode()
                p = n20
            f15[k18] = v17
    f21 = b[p]
    p += 1
    if f21 > 127:
        f21, p = read_long(b, p, f21)
    else:
        f21 = (f21 >> 1) ^ -(f21 & 1)
    return r.Weights(
        policy=f1, version=f3, weights_id=f4, transport=f6, uri=f8, format=f10, base_model=f12, sha256=f15, bytes=f21
    ), p


def write_ParentRun(x: r.ParentRun, put: Put) -> None:
    b1 = x.run_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    i3 = x.step
    put(SMALL[i3] if 0 <= i3 < LIMIT else long(i3))


def read_ParentRun(b: bytes, p: int) -> tuple[r.ParentRun, int]:
    n2 = b[p]
    if n2 & 0x81:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2].decode()
        p += n2
    else:
        n2 = p + 1 + (n2 >> 1)
        f1 = b[p + 1 : n2].decode()
        p = n2
    f3 = b[p]
    p += 1
    if f3 > 127:
        f3, p = read_long(b, p, f3)
    else:
        f3 = (f3 >> 1) ^ -(f3 & 1)
    return r.ParentRun(run_id=f1, step=f3), p


WRITE = write_RunManifest
READ = read_RunManifest
