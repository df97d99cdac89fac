"""The Avro binary coding of a RolloutState. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_RolloutState(x: r.RolloutState, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.status.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.mode
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)
    u8 = x.resources_id
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        b9 = u8.encode()
        n10 = len(b9)
        put(SMALL[n10] if n10 < LIMIT else long(n10))
        put(b9)
    write_TaskConfig(x.config, put)
    s11 = x.metadata
    if s11:
        n12 = len(s11)
        put(SMALL[n12] if 0 <= n12 < LIMIT else long(n12))
        for k14, v13 in s11.items():
            b15 = k14.encode()
            n16 = len(b15)
            put(SMALL[n16] if n16 < LIMIT else long(n16))
            put(b15)
            b17 = v13.encode()
            n18 = len(b17)
            put(SMALL[n18] if n18 < LIMIT else long(n18))
            put(b17)
    put(b"\0")
    s19 = x.attempts
    if s19:
        n20 = len(s19)
        put(SMALL[n20] if 0 <= n20 < LIMIT else long(n20))
        for v21 in s19:
            write_AttemptState(v21, put)
    put(b"\0")
    u22 = x.task_offset
    if u22 is None:
        put(b"\0")
    else:
        put(b"\2")
        i23 = u22
        put(SMALL[i23] if 0 <= i23 < LIMIT else long(i23))
    u24 = x.group_id
    if u24 is None:
        put(b"\0")
    else:
        put(b"\2")
        b25 = u24.encode()
        n26 = len(b25)
        put(SMALL[n26] if n26 < LIMIT else long(n26))
        put(b25)
    i27 = x.group_size
    put(SMALL[i27] if 0 <= i27 < LIMIT else long(i27))
    i28 = x.sample_index
    put(SMALL[i28] if 0 <= i28 < LIMIT else long(i28))
    u29 = x.run_id
    if u29 is None:
        put(b"\0")
    else:
        put(b"\2")
        b30 = u29.encode()
        n31 = len(b30)
        put(SMALL[n31] if n31 < LIMIT else long(n31))
        put(b30)
    b32 = x.origin.encode()
    n33 = len(b32)
    put(SMALL[n33] if n33 < LIMIT else long(n33))
    put(b32)
    u34 = x.cancel_requested_at
    if u34 is None:
        put(b"\0")
    else:
        put(b"\2")
        i35 = u34
        put(SMALL[i35] if 0 <= i35 < LIMIT else long(i35))
    write_AppliedOffsets(x.applied, put)
    i36 = x.enqueued_at
    put(SMALL[i36] if 0 <= i36 < LIMIT else long(i36))
    u37 = x.ended_at
    if u37 is None:
        put(b"\0")
    else:
        put(b"\2")
        i38 = u37
        put(SMALL[i38] if 0 <= i38 < LIMIT else long(i38))


def read_RolloutState(b: bytes, p: int) -> tuple[r.RolloutState, int]:
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
    u6 = b[p]
    p += 1
    if u6 == 0:
        f5 = None
    elif u6 == 2:
        n7 = b[p]
        if n7 & 0x81:
            n7, p = read_length(b, p + 1, n7)
            f5 = b[p : p + n7].decode()
            p += n7
        else:
            n7 = p + 1 + (n7 >> 1)
            f5 = b[p + 1 : n7].decode()
            p = n7
    else:
        raise WireError(f"no branch {u6} in this union")
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
    f11, p = read_TaskConfig(b, p)
    f12: Any = {}
    while True:
        n13 = b[p]
        p += 1
        if n13 > 127:
            n13, p = read_long(b, p, n13)
        else:
            n13 = (n13 >> 1) ^ -(n13 & 1)
        if n13 == 0:
            break
        if n13 < 0:
            n13 = -n13
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n13):
            n16 = b[p]
            if n16 & 0x81:
                n16, p = read_length(b, p + 1, n16)
                k15 = b[p : p + n16].decode()
                p += n16
            else:
                n16 = p + 1 + (n16 >> 1)
                k15 = b[p + 1 : n16].decode()
                p = n16
            n17 = b[p]
            if n17 & 0x81:
                n17, p = read_length(b, p + 1, n17)
                v14 = b[p : p + n17].decode()
                p += n17
            else:
                n17 = p + 1 + (n17 >> 1)
                v14 = b[p + 1 : n17].decode()
                p = n17
            f12[k15] = v14
    f18: Any = []
    while True:
        n19 = b[p]
        p += 1
        if n19 > 127:
            n19, p = read_long(b, p, n19)
        else:
            n19 = (n19 >> 1) ^ -(n19 & 1)
        if n19 == 0:
            break
        if n19 < 0:
            n19 = -n19
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n19):
            v20, p = read_AttemptState(b, p)
            f18.append(v20)
    u22 = b[p]
    p += 1
    if u22 == 0:
        f21 = None
    elif u22 == 2:
        f21 = b[p]
        p += 1
        if f21 > 127:
            f21, p = read_long(b, p, f21)
        else:
            f21 = (f21 >> 1) ^ -(f21 & 1)
    else:
        raise WireError(f"no branch {u22} in this union")
    u24 = b[p]
    p += 1
    if u24 == 0:
        f23 = None
    elif u24 == 2:
        n25 = b[p]
        if n25 & 0x81:
            n25, p = read_length(b, p + 1, n25)
            f23 = b[p : p + n25].decode()
            p += n25
        else:
            n25 = p + 1 + (n25 >> 1)
            f23 = b[p + 1 : n25].decode()
            p = n25
    else:
        raise WireError(f"no branch {u24} in this union")
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
    u29 = b[p]
    p += 1
    if u29 == 0:
        f28 = None
    elif u29 == 2:
        n30 = b[p]
        if n30 & 0x81:
            n30, p = read_length(b, p + 1, n30)
            f28 = b[p : p + n30].decode()
            p += n30
        else:
            n30 = p + 1 + (n30 >> 1)
            f28 = b[p + 1 : n30].decode()
            p = n30
    else:
        raise WireError(f"no branch {u29} in this union")
    n32 = b[p]
    if n32 & 0x81:
        n32, p = read_length(b, p + 1, n32)
        f31 = b[p : p + n32].decode()
        p += n32
    else:
        n32 = p + 1 + (n32 >> 1)
        f31 = b[p + 1 : n32].decode()
        p = n32
    u34 = b[p]
    p += 1
    if u34 == 0:
        f33 = None
    elif u34 == 2:
        f33 = b[p]
        p += 1
        if f33 > 127:
            f33, p = read_long(b, p, f33)
        else:
            f33 = (f33 >> 1) ^ -(f33 & 1)
    else:
        raise WireError(f"no branch {u34} in this union")
    f35, p = read_AppliedOffsets(b, p)
    f36 = b[p]
    p += 1
    if f36 > 127:
        f36, p = read_long(b, p, f36)
    else:
        f36 = (f36 >> 1) ^ -(f36 & 1)
    u38 = b[p]
    p += 1
    if u38 == 0:
        f37 = None
    elif u38 == 2:
        f37 = b[p]
        p += 1
        if f37 > 127:
            f37, p = read_long(b, p, f37)
        else:
            f37 = (f37 >> 1) ^ -(f37 & 1)
    else:
        raise WireError(f"no branch {u38} in this union")
    return r.RolloutState(
        rollout_id=f1,
        status=f3,
        mode=f5,
        resources_id=f8,
        config=f11,
        metadata=f12,
        attempts=f18,
        task_offset=f21,
        group_id=f23,
        group_size=f26,
        sample_index=f27,
        run_id=f28,
        origin=f31,
        cancel_requested_at=f33,
        applied=f35,
        enqueued_at=f36,
        ended_at=f37,
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


def write_AttemptState(x: r.AttemptState, put: Put) -> None:
    u1 = x.attempt_id
    if u1 is None:
        put(b"\0")
    else:
        put(b"\2")
        b2 = u1.encode()
        n3 = len(b2)
        put(SMALL[n3] if n3 < LIMIT else long(n3))
        put(b2)
    i4 = x.attempt
    put(SMALL[i4] if 0 <= i4 < LIMIT else long(i4))
    i5 = x.delivery
    put(SMALL[i5] if 0 <= i5 < LIMIT else long(i5))
    b6 = x.status.encode()
    n7 = len(b6)
    put(SMALL[n7] if n7 < LIMIT else long(n7))
    put(b6)
    u8 = x.worker_id
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        b9 = u8.encode()
        n10 = len(b9)
        put(SMALL[n10] if n10 < LIMIT else long(n10))
        put(b9)
    u11 = x.started_at
    if u11 is None:
        put(b"\0")
    else:
        put(b"\2")
        i12 = u11
        put(SMALL[i12] if 0 <= i12 < LIMIT else long(i12))
    u13 = x.last_heartbeat_at
    if u13 is None:
        put(b"\0")
    else:
        put(b"\2")
        i14 = u13
        put(SMALL[i14] if 0 <= i14 < LIMIT else long(i14))
    u15 = x.last_activity_at
    if u15 is None:
        put(b"\0")
    else:
        put(b"\2")
        i16 = u15
        put(SMALL[i16] if 0 <= i16 < LIMIT else long(i16))
    u17 = x.ended_at
    if u17 is None:
        put(b"\0")
    else:
        put(b"\2")
        i18 = u17
        put(SMALL[i18] if 0 <= i18 < LIMIT else long(i18))
    u19 = x.error
    if u19 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_ErrorInfo(u19, put)


def read_AttemptState(b: bytes, p: int) -> tuple[r.AttemptState, int]:
    u2 = b[p]
    p += 1
    if u2 == 0:
        f1 = None
    elif u2 == 2:
        n3 = b[p]
        if n3 & 0x81:
            n3, p = read_length(b, p + 1, n3)
            f1 = b[p : p + n3].decode()
            p += n3
        else:
            n3 = p + 1 + (n3 >> 1)
            f1 = b[p + 1 : n3].decode()
            p = n3
    else:
        raise WireError(f"no branch {u2} in this union")
    f4 = b[p]
    p += 1
    if f4 > 127:
        f4, p = read_long(b, p, f4)
    else:
        f4 = (f4 >> 1) ^ -(f4 & 1)
    f5 = b[p]
    p += 1
    if f5 > 127:
        f5, p = read_long(b, p, f5)
    else:
        f5 = (f5 >> 1) ^ -(f5 & 1)
    n7 = b[p]
    if n7 & 0x81:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7].decode()
        p += n7
    else:
        n7 = p + 1 + (n7 >> 1)
        f6 = b[p + 1 : n7].decode()
        p = n7
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
        f11 = b[p]
        p += 1
        if f11 > 127:
            f11, p = read_long(b, p, f11)
        else:
            f11 = (f11 >> 1) ^ -(f11 & 1)
    else:
        raise WireError(f"no branch {u12} in this union")
    u14 = b[p]
    p += 1
    if u14 == 0:
        f13 = None
    elif u14 == 2:
        f13 = b[p]
        p += 1
        if f13 > 127:
            f13, p = read_long(b, p, f13)
        else:
            f13 = (f13 >> 1) ^ -(f13 & 1)
    else:
        raise WireError(f"no branch {u14} in this union")
    u16 = b[p]
    p += 1
    if u16 == 0:
        f15 = None
    elif u16 == 2:
        f15 = b[p]
        p += 1
        if f15 > 127:
            f15, p = read_long(b, p, f15)
        else:
            f15 = (f15 >> 1) ^ -(f15 & 1)
    else:
        raise WireError(f"no branch {u16} in this union")
    u18 = b[p]
    p += 1
    if u18 == 0:
        f17 = None
    elif u18 == 2:
        f17 = b[p]
        p += 1
        if f17 > 127:
            f17, p = read_long(b, p, f17)
        else:
            f17 = (f17 >> 1) ^ -(f17 & 1)
    else:
        raise WireError(f"no branch {u18} in this union")
    u20 = b[p]
    p += 1
    if u20 == 0:
        f19 = None
    elif u20 == 2:
        f19, p = read_ErrorInfo(b, p)
    else:
        raise WireError(f"no branch {u20} in this union")
    return r.AttemptState(
        attempt_id=f1,
        attempt=f4,
        delivery=f5,
        status=f6,
        worker_id=f8,
        started_at=f11,
        last_heartbeat_at=f13,
        last_activity_at=f15,
        ended_at=f17,
        error=f19,
    ), p


def write_ErrorInfo(x: r.ErrorInfo, put: Put) -> None:
    b1 = x.type.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.message.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.stacktrace
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)


def read_ErrorInfo(b: bytes, p: int) -> tuple[r.ErrorInfo, int]:
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
    u6 = b[p]
    p += 1
    if u6 == 0:
        f5 = None
    elif u6 == 2:
        n7 = b[p]
        if n7 & 0x81:
            n7, p = read_length(b, p + 1, n7)
            f5 = b[p : p + n7].decode()
            p += n7
        else:
            n7 = p + 1 + (n7 >> 1)
            f5 = b[p + 1 : n7].decode()
            p = n7
    else:
        raise WireError(f"no branch {u6} in this union")
    return r.ErrorInfo(type=f1, message=f3, stacktrace=f5), p


def write_AppliedOffsets(x: r.AppliedOffsets, put: Put) -> None:
    i1 = x.tasks
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.attempts
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))


def read_AppliedOffsets(b: bytes, p: int) -> tuple[r.AppliedOffsets, int]:
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
    return r.AppliedOffsets(tasks=f1, attempts=f2), p


WRITE = write_RolloutState
READ = read_RolloutState
