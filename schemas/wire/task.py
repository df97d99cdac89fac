"""The Avro binary coding of a Task. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_Task(x: r.Task, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.group_id
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    i6 = x.group_size
    put(SMALL[i6] if 0 <= i6 < LIMIT else long(i6))
    i7 = x.sample_index
    put(SMALL[i7] if 0 <= i7 < LIMIT else long(i7))
    b8 = x.input.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)
    u10 = x.mode
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        b11 = u10.encode()
        n12 = len(b11)
        put(SMALL[n12] if n12 < LIMIT else long(n12))
        put(b11)
    u13 = x.run_id
    if u13 is None:
        put(b"\0")
    else:
        put(b"\2")
        b14 = u13.encode()
        n15 = len(b14)
        put(SMALL[n15] if n15 < LIMIT else long(n15))
        put(b14)
    u16 = x.resources_id
    if u16 is None:
        put(b"\0")
    else:
        put(b"\2")
        b17 = u16.encode()
        n18 = len(b17)
        put(SMALL[n18] if n18 < LIMIT else long(n18))
        put(b17)
    write_TaskConfig(x.config, put)
    s19 = x.metadata
    if s19:
        n20 = len(s19)
        put(SMALL[n20] if 0 <= n20 < LIMIT else long(n20))
        for k22, v21 in s19.items():
            b23 = k22.encode()
            n24 = len(b23)
            put(SMALL[n24] if n24 < LIMIT else long(n24))
            put(b23)
            b25 = v21.encode()
            n26 = len(b25)
            put(SMALL[n26] if n26 < LIMIT else long(n26))
            put(b25)
    put(b"\0")
    i27 = x.attempt
    put(SMALL[i27] if 0 <= i27 < LIMIT else long(i27))
    i28 = x.enqueued_at
    put(SMALL[i28] if 0 <= i28 < LIMIT else long(i28))


def read_Task(b: bytes, p: int) -> tuple[r.Task, int]:
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
    f10 = b[p]
    p += 1
    if f10 > 127:
        f10, p = read_long(b, p, f10)
    else:
        f10 = SIGNED[f10]
    f11 = b[p]
    p += 1
    if f11 > 127:
        f11, p = read_long(b, p, f11)
    else:
        f11 = SIGNED[f11]
    n13 = b[p]
    if not n13 & 0x81:
        q15 = p + 1
        p = q15 + (n13 >> 1)
        f12 = b[q15:p].decode()
    elif not n13 & 1 and (m14 := b[p + 1]) < 128:
        q15 = p + 2
        p = q15 + (n13 >> 1 & 0x3F | m14 << 6)
        f12 = b[q15:p].decode()
    else:
        n13, p = read_length(b, p + 1, n13)
        f12 = b[p : p + n13].decode()
        p += n13
    u17 = b[p]
    if not u17:
        f16 = None
        p += 1
    elif u17 == 2:
        n18 = b[p + 1]
        if not n18 & 0x81:
            q20 = p + 2
            p = q20 + (n18 >> 1)
            f16 = b[q20:p].decode()
        elif not n18 & 1 and (m19 := b[p + 2]) < 128:
            q20 = p + 3
            p = q20 + (n18 >> 1 & 0x3F | m19 << 6)
            f16 = b[q20:p].decode()
        else:
            n18, p = read_length(b, p + 2, n18)
            f16 = b[p : p + n18].decode()
            p += n18
    else:
        raise WireError(f"no branch {u17} in this union")
    u22 = b[p]
    if not u22:
        f21 = None
        p += 1
    elif u22 == 2:
        n23 = b[p + 1]
        if not n23 & 0x81:
            q25 = p + 2
            p = q25 + (n23 >> 1)
            f21 = b[q25:p].decode()
        elif not n23 & 1 and (m24 := b[p + 2]) < 128:
            q25 = p + 3
            p = q25 + (n23 >> 1 & 0x3F | m24 << 6)
            f21 = b[q25:p].decode()
        else:
            n23, p = read_length(b, p + 2, n23)
            f21 = b[p : p + n23].decode()
            p += n23
    else:
        raise WireError(f"no branch {u22} in this union")
    u27 = b[p]
    if not u27:
        f26 = None
        p += 1
    elif u27 == 2:
        n28 = b[p + 1]
        if not n28 & 0x81:
            q30 = p + 2
            p = q30 + (n28 >> 1)
            f26 = b[q30:p].decode()
        elif not n28 & 1 and (m29 := b[p + 2]) < 128:
            q30 = p + 3
            p = q30 + (n28 >> 1 & 0x3F | m29 << 6)
            f26 = b[q30:p].decode()
        else:
            n28, p = read_length(b, p + 2, n28)
            f26 = b[p : p + n28].decode()
            p += n28
    else:
        raise WireError(f"no branch {u27} in this union")
    f31, p = read_TaskConfig(b, p)
    f32: Any = {}
    while True:
        n33 = b[p]
        p += 1
        if n33 > 127:
            n33, p = read_long(b, p, n33)
        else:
            n33 = SIGNED[n33]
        if n33 == 0:
            break
        if n33 < 0:
            n33 = -n33
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n33):
            n36 = b[p]
            if not n36 & 0x81:
                q38 = p + 1
                p = q38 + (n36 >> 1)
                k35 = b[q38:p].decode()
            elif not n36 & 1 and (m37 := b[p + 1]) < 128:
                q38 = p + 2
                p = q38 + (n36 >> 1 & 0x3F | m37 << 6)
                k35 = b[q38:p].decode()
            else:
                n36, p = read_length(b, p + 1, n36)
                k35 = b[p : p + n36].decode()
                p += n36
            n39 = b[p]
            if not n39 & 0x81:
                q41 = p + 1
                p = q41 + (n39 >> 1)
                v34 = b[q41:p].decode()
            elif not n39 & 1 and (m40 := b[p + 1]) < 128:
                q41 = p + 2
                p = q41 + (n39 >> 1 & 0x3F | m40 << 6)
                v34 = b[q41:p].decode()
            else:
                n39, p = read_length(b, p + 1, n39)
                v34 = b[p : p + n39].decode()
                p += n39
            f32[k35] = v34
    f42 = b[p]
    p += 1
    if f42 > 127:
        f42, p = read_long(b, p, f42)
    else:
        f42 = SIGNED[f42]
    f43 = b[p]
    p += 1
    if f43 > 127:
        f43, p = read_long(b, p, f43)
    else:
        f43 = SIGNED[f43]
    return r.Task(
        rollout_id=f1,
        group_id=f5,
        group_size=f10,
        sample_index=f11,
        input=f12,
        mode=f16,
        run_id=f21,
        resources_id=f26,
        config=f31,
        metadata=f32,
        attempt=f42,
        enqueued_at=f43,
    ), p


def write_TaskConfig(x: r.TaskConfig, put: Put) -> None:
    u1 = x.timeout_seconds
    if u1 is None:
        put(b"\0")
    else:
        put(b"\2")
        put(DOUBLE.pack(u1))
    u2 = x.unresponsive_seconds
    if u2 is None:
        put(b"\0")
    else:
        put(b"\2")
        put(DOUBLE.pack(u2))
    i3 = x.max_attempts
    put(SMALL[i3] if 0 <= i3 < LIMIT else long(i3))
    s4 = x.retry_condition
    if s4:
        n5 = len(s4)
        put(SMALL[n5] if 0 <= n5 < LIMIT else long(n5))
        for v6 in s4:
            b7 = v6.encode()
            n8 = len(b7)
            put(SMALL[n8] if n8 < LIMIT else long(n8))
            put(b7)
    put(b"\0")


def read_TaskConfig(b: bytes, p: int) -> tuple[r.TaskConfig, int]:
    u2 = b[p]
    if not u2:
        f1 = None
        p += 1
    elif u2 == 2:
        f1 = DOUBLE.unpack_from(b, p + 1)[0]
        p += 9
    else:
        raise WireError(f"no branch {u2} in this union")
    u4 = b[p]
    if not u4:
        f3 = None
        p += 1
    elif u4 == 2:
        f3 = DOUBLE.unpack_from(b, p + 1)[0]
        p += 9
    else:
        raise WireError(f"no branch {u4} in this union")
    f5 = b[p]
    p += 1
    if f5 > 127:
        f5, p = read_long(b, p, f5)
    else:
        f5 = SIGNED[f5]
    f6: Any = []
    while True:
        n7 = b[p]
        p += 1
        if n7 > 127:
            n7, p = read_long(b, p, n7)
        else:
            n7 = SIGNED[n7]
        if n7 == 0:
            break
        if n7 < 0:
            n7 = -n7
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n7):
            n9 = b[p]
            if not n9 & 0x81:
                q11 = p + 1
                p = q11 + (n9 >> 1)
                v8 = b[q11:p].decode()
            elif not n9 & 1 and (m10 := b[p + 1]) < 128:
                q11 = p + 2
                p = q11 + (n9 >> 1 & 0x3F | m10 << 6)
                v8 = b[q11:p].decode()
            else:
                n9, p = read_length(b, p + 1, n9)
                v8 = b[p : p + n9].decode()
                p += n9
            f6.append(v8)
    return r.TaskConfig(timeout_seconds=f1, unresponsive_seconds=f3, max_attempts=f5, retry_condition=f6), p


WRITE = write_Task
READ = read_Task
