"""The Avro binary coding of a Task. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SMALL, WireError, long, read_length, read_long

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
    f6 = b[p]
    p += 1
    if f6 > 127:
        f6, p = read_long(b, p, f6)
    else:
        f6 = (f6 >> 1) ^ -(f6 & 1)
    f7 = b[p]
    p += 1
    if f7 > 127:
        f7, p = read_long(b, p, f7)
    else:
        f7 = (f7 >> 1) ^ -(f7 & 1)
    n9 = b[p]
    if n9 & 0x81:
        n9, p = read_length(b, p + 1, n9)
        f8 = b[p : p + n9].decode()
        p += n9
    else:
        n9 = p + 1 + (n9 >> 1)
        f8 = b[p + 1 : n9].decode()
        p = n9
    u11 = b[p]
    p += 1
    if u11 == 0:
        f10 = None
    elif u11 == 2:
        n12 = b[p]
        if n12 & 0x81:
            n12, p = read_length(b, p + 1, n12)
            f10 = b[p : p + n12].decode()
            p += n12
        else:
            n12 = p + 1 + (n12 >> 1)
            f10 = b[p + 1 : n12].decode()
            p = n12
    else:
        raise WireError(f"no branch {u11} in this union")
    u14 = b[p]
    p += 1
    if u14 == 0:
        f13 = None
    elif u14 == 2:
        n15 = b[p]
        if n15 & 0x81:
            n15, p = read_length(b, p + 1, n15)
            f13 = b[p : p + n15].decode()
            p += n15
        else:
            n15 = p + 1 + (n15 >> 1)
            f13 = b[p + 1 : n15].decode()
            p = n15
    else:
        raise WireError(f"no branch {u14} in this union")
    u17 = b[p]
    p += 1
    if u17 == 0:
        f16 = None
    elif u17 == 2:
        n18 = b[p]
        if n18 & 0x81:
            n18, p = read_length(b, p + 1, n18)
            f16 = b[p : p + n18].decode()
            p += n18
        else:
            n18 = p + 1 + (n18 >> 1)
            f16 = b[p + 1 : n18].decode()
            p = n18
    else:
        raise WireError(f"no branch {u17} in this union")
    f19, p = read_TaskConfig(b, p)
    f20: Any = {}
    while True:
        n21 = b[p]
        p += 1
        if n21 > 127:
            n21, p = read_long(b, p, n21)
        else:
            n21 = (n21 >> 1) ^ -(n21 & 1)
        if n21 == 0:
            break
        if n21 < 0:
            n21 = -n21
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n21):
            n24 = b[p]
            if n24 & 0x81:
                n24, p = read_length(b, p + 1, n24)
                k23 = b[p : p + n24].decode()
                p += n24
            else:
                n24 = p + 1 + (n24 >> 1)
                k23 = b[p + 1 : n24].decode()
                p = n24
            n25 = b[p]
            if n25 & 0x81:
                n25, p = read_length(b, p + 1, n25)
                v22 = b[p : p + n25].decode()
                p += n25
            else:
                n25 = p + 1 + (n25 >> 1)
                v22 = b[p + 1 : n25].decode()
                p = n25
            f20[k23] = v22
    f26 = b[p]
    p += 1
    if f26 > 127:
        f26, p = read_long(b, p, f26)
    else:
        f26 = (f26 >> 1) ^ -(f26 & 1)
    f27 = b[p]
    p += 1
    if f27 > 127:
        f27, p = read_long(b, p, f27)
    else:
        f27 = (f27 >> 1) ^ -(f27 & 1)
    return r.Task(
        rollout_id=f1,
        group_id=f3,
        group_size=f6,
        sample_index=f7,
        input=f8,
        mode=f10,
        run_id=f13,
        resources_id=f16,
        config=f19,
        metadata=f20,
        attempt=f26,
        enqueued_at=f27,
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
    p += 1
    if u2 == 0:
        f1 = None
    elif u2 == 2:
        f1 = DOUBLE.unpack_from(b, p)[0]
        p += 8
    else:
        raise WireError(f"no branch {u2} in this union")
    u4 = b[p]
    p += 1
    if u4 == 0:
        f3 = None
    elif u4 == 2:
        f3 = DOUBLE.unpack_from(b, p)[0]
        p += 8
    else:
        raise WireError(f"no branch {u4} in this union")
    f5 = b[p]
    p += 1
    if f5 > 127:
        f5, p = read_long(b, p, f5)
    else:
        f5 = (f5 >> 1) ^ -(f5 & 1)
    f6: Any = []
    while True:
        n7 = b[p]
        p += 1
        if n7 > 127:
            n7, p = read_long(b, p, n7)
        else:
            n7 = (n7 >> 1) ^ -(n7 & 1)
        if n7 == 0:
            break
        if n7 < 0:
            n7 = -n7
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n7):
            n9 = b[p]
            if n9 & 0x81:
                n9, p = read_length(b, p + 1, n9)
                v8 = b[p : p + n9].decode()
                p += n9
            else:
                n9 = p + 1 + (n9 >> 1)
                v8 = b[p + 1 : n9].decode()
                p = n9
            f6.append(v8)
    return r.TaskConfig(timeout_seconds=f1, unresponsive_seconds=f3, max_attempts=f5, retry_condition=f6), p


WRITE = write_Task
READ = read_Task
