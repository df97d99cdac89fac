"""The Avro binary coding of a TrainingStep. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    f10 = b[p]
    p += 1
    if f10 > 127:
        f10, p = read_long(b, p, f10)
    else:
        f10 = SIGNED[f10]
    f11, p = read_Window(b, p)
    f12 = b[p]
    p += 1
    if f12 > 127:
        f12, p = read_long(b, p, f12)
    else:
        f12 = SIGNED[f12]
    u14 = b[p]
    if not u14:
        f13 = None
        p += 1
    elif u14 == 2:
        f13, p = read_TrainerState(b, p + 1)
    else:
        raise WireError(f"no branch {u14} in this union")
    f15: Any = {}
    while True:
        n16 = b[p]
        p += 1
        if n16 > 127:
            n16, p = read_long(b, p, n16)
        else:
            n16 = SIGNED[n16]
        if n16 == 0:
            break
        if n16 < 0:
            n16 = -n16
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n16):
            n19 = b[p]
            if not n19 & 0x81:
                q21 = p + 1
                p = q21 + (n19 >> 1)
                k18 = b[q21:p].decode()
            elif not n19 & 1 and (m20 := b[p + 1]) < 128:
                q21 = p + 2
                p = q21 + (n19 >> 1 & 0x3F | m20 << 6)
                k18 = b[q21:p].decode()
            else:
                n19, p = read_length(b, p + 1, n19)
                k18 = b[p : p + n19].decode()
                p += n19
            v17 = DOUBLE.unpack_from(b, p)[0]
            p += 8
            f15[k18] = v17
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
            v24 = b[p]
            p += 1
            if v24 > 127:
                v24, p = read_long(b, p, v24)
            else:
                v24 = SIGNED[v24]
            f22[k25] = v24
    f29 = b[p]
    p += 1
    if f29 > 127:
        f29, p = read_long(b, p, f29)
    else:
        f29 = SIGNED[f29]
    f30 = b[p]
    p += 1
    if f30 > 127:
        f30, p = read_long(b, p, f30)
    else:
        f30 = SIGNED[f30]
    return r.TrainingStep(
        run_id=f1,
        step=f5,
        policy=f6,
        policy_version=f10,
        window=f11,
        decided=f12,
        state=f13,
        metrics=f15,
        staleness=f22,
        started_at=f29,
        ended_at=f30,
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
            n2 = SIGNED[n2]
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
            n5 = SIGNED[n5]
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
            n8 = SIGNED[n8]
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
            n11 = SIGNED[n11]
        if n11 == 0:
            break
        if n11 < 0:
            n11 = -n11
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n11):
            n13 = b[p]
            if not n13 & 0x81:
                q15 = p + 1
                p = q15 + (n13 >> 1)
                v12 = b[q15:p].decode()
            elif not n13 & 1 and (m14 := b[p + 1]) < 128:
                q15 = p + 2
                p = q15 + (n13 >> 1 & 0x3F | m14 << 6)
                v12 = b[q15:p].decode()
            else:
                n13, p = read_length(b, p + 1, n13)
                v12 = b[p : p + n13].decode()
                p += n13
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
    f3: Any = []
    while True:
        n4 = b[p]
        p += 1
        if n4 > 127:
            n4, p = read_long(b, p, n4)
        else:
            n4 = SIGNED[n4]
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
    f5: Any = []
    while True:
        n6 = b[p]
        p += 1
        if n6 > 127:
            n6, p = read_long(b, p, n6)
        else:
            n6 = SIGNED[n6]
        if n6 == 0:
            break
        if n6 < 0:
            n6 = -n6
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n6):
            v7, p = read_LogPosition(b, p)
            f5.append(v7)
    return r.Dropped(reason=f1, samples=f5), p


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
    return r.TrainerState(uri=f1, sha256=f5), p


WRITE = write_TrainingStep
READ = read_TrainingStep
