"""The Avro binary coding of a RunManifest. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = SIGNED[f17]
    u19 = b[p]
    if not u19:
        f18 = None
        p += 1
    elif u19 == 2:
        f18, p = read_Weights(b, p + 1)
    else:
        raise WireError(f"no branch {u19} in this union")
    u21 = b[p]
    if not u21:
        f20 = None
        p += 1
    elif u21 == 2:
        f20, p = read_ParentRun(b, p + 1)
    else:
        raise WireError(f"no branch {u21} in this union")
    f22: Any = {}
    while True:
        n23 = b[p]
        p += 1
        if n23 > 127:
            n23, p = read_long(b, p, n23)
        else:
            n23 = SIGNED[n23]
        if n23 == 0:
            break
        if n23 < 0:
            n23 = -n23
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n23):
            n26 = b[p]
            if not n26 & 0x81:
                q28 = p + 1
                p = q28 + (n26 >> 1)
                k25 = b[q28:p].decode()
            elif not n26 & 1 and (m27 := b[p + 1]) < 128:
                q28 = p + 2
                p = q28 + (n26 >> 1 & 0x3F | m27 << 6)
                k25 = b[q28:p].decode()
            else:
                n26, p = read_length(b, p + 1, n26)
                k25 = b[p : p + n26].decode()
                p += n26
            n29 = b[p]
            if not n29 & 0x81:
                q31 = p + 1
                p = q31 + (n29 >> 1)
                v24 = b[q31:p].decode()
            elif not n29 & 1 and (m30 := b[p + 1]) < 128:
                q31 = p + 2
                p = q31 + (n29 >> 1 & 0x3F | m30 << 6)
                v24 = b[q31:p].decode()
            else:
                n29, p = read_length(b, p + 1, n29)
                v24 = b[p : p + n29].decode()
                p += n29
            f22[k25] = v24
    n33 = b[p]
    if not n33 & 0x81:
        q35 = p + 1
        p = q35 + (n33 >> 1)
        f32 = b[q35:p].decode()
    elif not n33 & 1 and (m34 := b[p + 1]) < 128:
        q35 = p + 2
        p = q35 + (n33 >> 1 & 0x3F | m34 << 6)
        f32 = b[q35:p].decode()
    else:
        n33, p = read_length(b, p + 1, n33)
        f32 = b[p : p + n33].decode()
        p += n33
    f36 = b[p]
    p += 1
    if f36 > 127:
        f36, p = read_long(b, p, f36)
    else:
        f36 = SIGNED[f36]
    n38 = b[p]
    if not n38 & 0x81:
        q40 = p + 1
        p = q40 + (n38 >> 1)
        f37 = b[q40:p].decode()
    elif not n38 & 1 and (m39 := b[p + 1]) < 128:
        q40 = p + 2
        p = q40 + (n38 >> 1 & 0x3F | m39 << 6)
        f37 = b[q40:p].decode()
    else:
        n38, p = read_length(b, p + 1, n38)
        f37 = b[p : p + n38].decode()
        p += n38
    f41 = b[p] == 1
    p += 1
    f42 = b[p]
    p += 1
    if f42 > 127:
        f42, p = read_long(b, p, f42)
    else:
        f42 = SIGNED[f42]
    return r.RunManifest(
        run_id=f1,
        algorithm=f5,
        policy=f9,
        settings=f13,
        seed=f17,
        base_weights=f18,
        parent=f20,
        versions=f22,
        device=f32,
        threads=f36,
        dtype=f37,
        offline=f41,
        created_at=f42,
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
    s24 = x.base_sha256
    if s24:
        n25 = len(s24)
        put(SMALL[n25] if 0 <= n25 < LIMIT else long(n25))
        for k27, v26 in s24.items():
            b28 = k27.encode()
            n29 = len(b28)
            put(SMALL[n29] if n29 < LIMIT else long(n29))
            put(b28)
            b30 = v26.encode()
            n31 = len(b30)
            put(SMALL[n31] if n31 < LIMIT else long(n31))
            put(b30)
    put(b"\0")


def read_Weights(b: bytes, p: int) -> tuple[r.Weights, int]:
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
    f5 = b[p]
    p += 1
    if f5 > 127:
        f5, p = read_long(b, p, f5)
    else:
        f5 = SIGNED[f5]
    n7 = b[p]
    if not n7 & 0x81:
        q9 = p + 1
        p = q9 + (n7 >> 1)
        f6 = b[q9:p].decode()
    elif not n7 & 1 and (m8 := b[p + 1]) < 128:
        q9 = p + 2
        p = q9 + (n7 >> 1 & 0x3F | m8 << 6)
        f6 = b[q9:p].decode()
    else:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7].decode()
        p += n7
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
    n19 = b[p]
    if not n19 & 0x81:
        q21 = p + 1
        p = q21 + (n19 >> 1)
        f18 = b[q21:p].decode()
    elif not n19 & 1 and (m20 := b[p + 1]) < 128:
        q21 = p + 2
        p = q21 + (n19 >> 1 & 0x3F | m20 << 6)
        f18 = b[q21:p].decode()
    else:
        n19, p = read_length(b, p + 1, n19)
        f18 = b[p : p + n19].decode()
        p += n19
    u23 = b[p]
    if not u23:
        f22 = None
        p += 1
    elif u23 == 2:
        n24 = b[p + 1]
        if not n24 & 0x81:
            q26 = p + 2
            p = q26 + (n24 >> 1)
            f22 = b[q26:p].decode()
        elif not n24 & 1 and (m25 := b[p + 2]) < 128:
            q26 = p + 3
            p = q26 + (n24 >> 1 & 0x3F | m25 << 6)
            f22 = b[q26:p].decode()
        else:
            n24, p = read_length(b, p + 2, n24)
            f22 = b[p : p + n24].decode()
            p += n24
    else:
        raise WireError(f"no branch {u23} in this union")
    f27: Any = {}
    while True:
        n28 = b[p]
        p += 1
        if n28 > 127:
            n28, p = read_long(b, p, n28)
        else:
            n28 = SIGNED[n28]
        if n28 == 0:
            break
        if n28 < 0:
            n28 = -n28
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n28):
            n31 = b[p]
            if not n31 & 0x81:
                q33 = p + 1
                p = q33 + (n31 >> 1)
                k30 = b[q33:p].decode()
            elif not n31 & 1 and (m32 := b[p + 1]) < 128:
                q33 = p + 2
                p = q33 + (n31 >> 1 & 0x3F | m32 << 6)
                k30 = b[q33:p].decode()
            else:
                n31, p = read_length(b, p + 1, n31)
                k30 = b[p : p + n31].decode()
                p += n31
            n34 = b[p]
            if not n34 & 0x81:
                q36 = p + 1
                p = q36 + (n34 >> 1)
                v29 = b[q36:p].decode()
            elif not n34 & 1 and (m35 := b[p + 1]) < 128:
                q36 = p + 2
                p = q36 + (n34 >> 1 & 0x3F | m35 << 6)
                v29 = b[q36:p].decode()
            else:
                n34, p = read_length(b, p + 1, n34)
                v29 = b[p : p + n34].decode()
                p += n34
            f27[k30] = v29
    f37 = b[p]
    p += 1
    if f37 > 127:
        f37, p = read_long(b, p, f37)
    else:
        f37 = SIGNED[f37]
    f38: Any = {}
    while True:
        n39 = b[p]
        p += 1
        if n39 > 127:
            n39, p = read_long(b, p, n39)
        else:
            n39 = SIGNED[n39]
        if n39 == 0:
            break
        if n39 < 0:
            n39 = -n39
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n39):
            n42 = b[p]
            if not n42 & 0x81:
                q44 = p + 1
                p = q44 + (n42 >> 1)
                k41 = b[q44:p].decode()
            elif not n42 & 1 and (m43 := b[p + 1]) < 128:
                q44 = p + 2
                p = q44 + (n42 >> 1 & 0x3F | m43 << 6)
                k41 = b[q44:p].decode()
            else:
                n42, p = read_length(b, p + 1, n42)
                k41 = b[p : p + n42].decode()
                p += n42
            n45 = b[p]
            if not n45 & 0x81:
                q47 = p + 1
                p = q47 + (n45 >> 1)
                v40 = b[q47:p].decode()
            elif not n45 & 1 and (m46 := b[p + 1]) < 128:
                q47 = p + 2
                p = q47 + (n45 >> 1 & 0x3F | m46 << 6)
                v40 = b[q47:p].decode()
            else:
                n45, p = read_length(b, p + 1, n45)
                v40 = b[p : p + n45].decode()
                p += n45
            f38[k41] = v40
    return r.Weights(
        policy=f1,
        version=f5,
        weights_id=f6,
        transport=f10,
        uri=f14,
        format=f18,
        base_model=f22,
        sha256=f27,
        bytes=f37,
        base_sha256=f38,
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
    f5 = b[p]
    p += 1
    if f5 > 127:
        f5, p = read_long(b, p, f5)
    else:
        f5 = SIGNED[f5]
    return r.ParentRun(run_id=f1, step=f5), p


WRITE = write_RunManifest
READ = read_RunManifest
