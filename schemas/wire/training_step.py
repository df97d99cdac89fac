"""The Avro binary coding of a TrainingStep. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_TrainingStep(x: r.TrainingStep, put: Put) -> None:
    b1 = x.run_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    i3 = x.step
    put(SMALL[i3] if 0 <= i3 < LIMIT else long(i3))
    b4 = x.policy.encode()
    n5 = len(b4)
    put(SMALL[n5] if n5 < LIMIT else long(n5))
    put(b4)
    i6 = x.policy_version
    put(SMALL[i6] if 0 <= i6 < LIMIT else long(i6))
    write_Window(x.window, put)
    i7 = x.decided
    put(SMALL[i7] if 0 <= i7 < LIMIT else long(i7))
    u8 = x.state
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_TrainerState(u8, put)
    s9 = x.metrics
    if s9:
        n10 = len(s9)
        put(SMALL[n10] if 0 <= n10 < LIMIT else long(n10))
        for k12, v11 in s9.items():
            b13 = k12.encode()
            n14 = len(b13)
            put(SMALL[n14] if n14 < LIMIT else long(n14))
            put(b13)
            put(DOUBLE.pack(v11))
    put(b"\0")
    s15 = x.staleness
    if s15:
        n16 = len(s15)
        put(SMALL[n16] if 0 <= n16 < LIMIT else long(n16))
        for k18, v17 in s15.items():
            b19 = k18.encode()
            n20 = len(b19)
            put(SMALL[n20] if n20 < LIMIT else long(n20))
            put(b19)
            i21 = v17
            put(SMALL[i21] if 0 <= i21 < LIMIT else long(i21))
    put(b"\0")
    i22 = x.started_at
    put(SMALL[i22] if 0 <= i22 < LIMIT else long(i22))
    i23 = x.ended_at
    put(SMALL[i23] if 0 <= i23 < LIMIT else long(i23))


def read_TrainingStep(b: bytes, p: int) -> tuple[r.TrainingStep, int]:
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
    f6 = b[p]
    p += 1
    if f6 > 127:
        f6, p = read_long(b, p, f6)
    else:
        f6 = (f6 >> 1) ^ -(f6 & 1)
    f7, p = read_Window(b, p)
    f8 = b[p]
    p += 1
    if f8 > 127:
        f8, p = read_long(b, p, f8)
    else:
        f8 = (f8 >> 1) ^ -(f8 & 1)
    u10 = b[p]
    p += 1
    if u10 == 0:
        f9 = None
    elif u10 == 2:
        f9, p = read_TrainerState(b, p)
    else:
        raise WireError(f"no branch {u10} in this union")
    f11: Any = {}
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
            n15 = b[p]
            if n15 & 0x81:
                n15, p = read_length(b, p + 1, n15)
                k14 = b[p : p + n15].decode()
                p += n15
            else:
                n15 = p + 1 + (n15 >> 1)
                k14 = b[p + 1 : n15].decode()
                p = n15
            v13 = DOUBLE.unpack_from(b, p)[0]
            p += 8
            f11[k14] = v13
    f16: Any = {}
    while True:
        n17 = b[p]
        p += 1
        if n17 > 127:
            n17, p = read_long(b, p, n17)
        else:
            n17 = (n17 >> 1) ^ -(n17 & 1)
        if n17 == 0:
            break
        if n17 < 0:
            n17 = -n17
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n17):
            n20 = b[p]
            if n20 & 0x81:
                n20, p = read_length(b, p + 1, n20)
                k19 = b[p : p + n20].decode()
                p += n20
            else:
                n20 = p + 1 + (n20 >> 1)
                k19 = b[p + 1 : n20].decode()
                p = n20
            v18 = b[p]
            p += 1
            if v18 > 127:
                v18, p = read_long(b, p, v18)
            else:
                v18 = (v18 >> 1) ^ -(v18 & 1)
            f16[k19] = v18
    f21 = b[p]
    p += 1
    if f21 > 127:
        f21, p = read_long(b, p, f21)
    else:
        f21 = (f21 >> 1) ^ -(f21 & 1)
    f22 = b[p]
    p += 1
    if f22 > 127:
        f22, p = read_long(b, p, f22)
    else:
        f22 = (f22 >> 1) ^ -(f22 & 1)
    return r.TrainingStep(
        run_id=f1,
        step=f3,
        policy=f4,
        policy_version=f6,
        window=f7,
        decided=f8,
        state=f9,
        metrics=f11,
        staleness=f16,
        started_at=f21,
        ended_at=f22,
    ), p


def write_Window(x: r.Window, put: Put) -> None:
    s1 = x.position
    if s1:
        n2 = len(s1)
        put(SMALL[n2] if 0 <= n2 < LIMIT else long(n2))
        for v3 in s1:
            write_PartitionPosition(v3, put)
    put(b"\0")
    s4 = x.samples
    if s4:
        n5 = len(s4)
        put(SMALL[n5] if 0 <= n5 < LIMIT else long(n5))
        for v6 in s4:
            write_LogPosition(v6, put)
    put(b"\0")
    s7 = x.dropped
    if s7:
        n8 = len(s7)
        put(SMALL[n8] if 0 <= n8 < LIMIT else long(n8))
        for v9 in s7:
            write_Dropped(v9, put)
    put(b"\0")
    s10 = x.group_ids
    if s10:
        n11 = len(s10)
        put(SMALL[n11] if 0 <= n11 < LIMIT else long(n11))
        for v12 in s10:
            b13 = v12.encode()
            n14 = len(b13)
            put(SMALL[n14] if n14 < LIMIT else long(n14))
            put(b13)
    put(b"\0")


def read_Window(b: bytes, p: int) -> tuple[r.Window, int]:
    f1: Any = []
    while True:
        n2 = b[p]
        p += 1
        if n2 > 127:
            n2, p = read_long(b, p, n2)
        else:
            n2 = (n2 >> 1) ^ -(n2 & 1)
        if n2 == 0:
            break
        if n2 < 0:
            n2 = -n2
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n2):
            v3, p = read_PartitionPosition(b, p)
            f1.append(v3)
    f4: Any = []
    while True:
        n5 = b[p]
        p += 1
        if n5 > 127:
            n5, p = read_long(b, p, n5)
        else:
            n5 = (n5 >> 1) ^ -(n5 & 1)
        if n5 == 0:
            break
        if n5 < 0:
            n5 = -n5
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n5):
            v6, p = read_LogPosition(b, p)
            f4.append(v6)
    f7: Any = []
    while True:
        n8 = b[p]
        p += 1
        if n8 > 127:
            n8, p = read_long(b, p, n8)
        else:
            n8 = (n8 >> 1) ^ -(n8 & 1)
        if n8 == 0:
            break
        if n8 < 0:
            n8 = -n8
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n8):
            v9, p = read_Dropped(b, p)
            f7.append(v9)
    f10: Any = []
    while True:
        n11 = b[p]
        p += 1
        if n11 > 127:
            n11, p = read_long(b, p, n11)
        else:
            n11 = (n11 >> 1) ^ -(n11 & 1)
        if n11 == 0:
            break
        if n11 < 0:
            n11 = -n11
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n11):
            n13 = b[p]
            if n13 & 0x81:
                n13, p = read_length(b, p + 1, n13)
                v12 = b[p : p + n13].decode()
                p += n13
            else:
                n13 = p + 1 + (n13 >> 1)
                v12 = b[p + 1 : n13].decode()
                p = n13
            f10.append(v12)
    return r.Window(position=f1, samples=f4, dropped=f7, group_ids=f10), p


def write_PartitionPosition(x: r.PartitionPosition, put: Put) -> None:
    i1 = x.partition
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.next
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))
    s3 = x.finished
    if s3:
        n4 = len(s3)
        put(SMALL[n4] if 0 <= n4 < LIMIT else long(n4))
        for v5 in s3:
            write_OffsetRun(v5, put)
    put(b"\0")


def read_PartitionPosition(b: bytes, p: int) -> tuple[r.PartitionPosition, int]:
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
    f3: Any = []
    while True:
        n4 = b[p]
        p += 1
        if n4 > 127:
            n4, p = read_long(b, p, n4)
        else:
            n4 = (n4 >> 1) ^ -(n4 & 1)
        if n4 == 0:
            break
        if n4 < 0:
            n4 = -n4
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n4):
            v5, p = read_OffsetRun(b, p)
            f3.append(v5)
    return r.PartitionPosition(partition=f1, next=f2, finished=f3), p


def write_OffsetRun(x: r.OffsetRun, put: Put) -> None:
    i1 = x.first
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.last
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))


def read_OffsetRun(b: bytes, p: int) -> tuple[r.OffsetRun, int]:
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
    return r.OffsetRun(first=f1, last=f2), p


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


def write_Dropped(x: r.Dropped, put: Put) -> None:
    b1 = x.reason.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    s3 = x.samples
    if s3:
        n4 = len(s3)
        put(SMALL[n4] if 0 <= n4 < LIMIT else long(n4))
        for v5 in s3:
            write_LogPosition(v5, put)
    put(b"\0")


def read_Dropped(b: bytes, p: int) -> tuple[r.Dropped, int]:
    n2 = b[p]
    if n2 & 0x81:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2].decode()
        p += n2
    else:
        n2 = p + 1 + (n2 >> 1)
        f1 = b[p + 1 : n2].decode()
        p = n2
    f3: Any = []
    while True:
        n4 = b[p]
        p += 1
        if n4 > 127:
            n4, p = read_long(b, p, n4)
        else:
            n4 = (n4 >> 1) ^ -(n4 & 1)
        if n4 == 0:
            break
        if n4 < 0:
            n4 = -n4
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n4):
            v5, p = read_LogPosition(b, p)
            f3.append(v5)
    return r.Dropped(reason=f1, samples=f3), p


def write_TrainerState(x: r.TrainerState, put: Put) -> None:
    b1 = x.uri.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.sha256.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)


def read_TrainerState(b: bytes, p: int) -> tuple[r.TrainerState, int]:
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
    return r.TrainerState(uri=f1, sha256=f3), p


WRITE = write_TrainingStep
READ = read_TrainingStep
