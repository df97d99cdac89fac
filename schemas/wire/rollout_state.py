"""The Avro binary coding of a RolloutState. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    f19, p = read_TaskConfig(b, p)
    f20: Any = {}
    while True:
        n21 = b[p]
        p += 1
        if n21 > 127:
            n21, p = read_long(b, p, n21)
        else:
            n21 = SIGNED[n21]
        if n21 == 0:
            break
        if n21 < 0:
            n21 = -n21
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n21):
            n24 = b[p]
            if not n24 & 0x81:
                q26 = p + 1
                p = q26 + (n24 >> 1)
                k23 = b[q26:p].decode()
            elif not n24 & 1 and (m25 := b[p + 1]) < 128:
                q26 = p + 2
                p = q26 + (n24 >> 1 & 0x3F | m25 << 6)
                k23 = b[q26:p].decode()
            else:
                n24, p = read_length(b, p + 1, n24)
                k23 = b[p : p + n24].decode()
                p += n24
            n27 = b[p]
            if not n27 & 0x81:
                q29 = p + 1
                p = q29 + (n27 >> 1)
                v22 = b[q29:p].decode()
            elif not n27 & 1 and (m28 := b[p + 1]) < 128:
                q29 = p + 2
                p = q29 + (n27 >> 1 & 0x3F | m28 << 6)
                v22 = b[q29:p].decode()
            else:
                n27, p = read_length(b, p + 1, n27)
                v22 = b[p : p + n27].decode()
                p += n27
            f20[k23] = v22
    f30: Any = []
    while True:
        n31 = b[p]
        p += 1
        if n31 > 127:
            n31, p = read_long(b, p, n31)
        else:
            n31 = SIGNED[n31]
        if n31 == 0:
            break
        if n31 < 0:
            n31 = -n31
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n31):
            v32, p = read_AttemptState(b, p)
            f30.append(v32)
    u34 = b[p]
    if not u34:
        f33 = None
        p += 1
    elif u34 == 2:
        f33 = b[p + 1]
        p += 2
        if f33 > 127:
            f33, p = read_long(b, p, f33)
        else:
            f33 = SIGNED[f33]
    else:
        raise WireError(f"no branch {u34} in this union")
    u36 = b[p]
    if not u36:
        f35 = None
        p += 1
    elif u36 == 2:
        n37 = b[p + 1]
        if not n37 & 0x81:
            q39 = p + 2
            p = q39 + (n37 >> 1)
            f35 = b[q39:p].decode()
        elif not n37 & 1 and (m38 := b[p + 2]) < 128:
            q39 = p + 3
            p = q39 + (n37 >> 1 & 0x3F | m38 << 6)
            f35 = b[q39:p].decode()
        else:
            n37, p = read_length(b, p + 2, n37)
            f35 = b[p : p + n37].decode()
            p += n37
    else:
        raise WireError(f"no branch {u36} in this union")
    f40 = b[p]
    p += 1
    if f40 > 127:
        f40, p = read_long(b, p, f40)
    else:
        f40 = SIGNED[f40]
    f41 = b[p]
    p += 1
    if f41 > 127:
        f41, p = read_long(b, p, f41)
    else:
        f41 = SIGNED[f41]
    u43 = b[p]
    if not u43:
        f42 = None
        p += 1
    elif u43 == 2:
        n44 = b[p + 1]
        if not n44 & 0x81:
            q46 = p + 2
            p = q46 + (n44 >> 1)
            f42 = b[q46:p].decode()
        elif not n44 & 1 and (m45 := b[p + 2]) < 128:
            q46 = p + 3
            p = q46 + (n44 >> 1 & 0x3F | m45 << 6)
            f42 = b[q46:p].decode()
        else:
            n44, p = read_length(b, p + 2, n44)
            f42 = b[p : p + n44].decode()
            p += n44
    else:
        raise WireError(f"no branch {u43} in this union")
    n48 = b[p]
    if not n48 & 0x81:
        q50 = p + 1
        p = q50 + (n48 >> 1)
        f47 = b[q50:p].decode()
    elif not n48 & 1 and (m49 := b[p + 1]) < 128:
        q50 = p + 2
        p = q50 + (n48 >> 1 & 0x3F | m49 << 6)
        f47 = b[q50:p].decode()
    else:
        n48, p = read_length(b, p + 1, n48)
        f47 = b[p : p + n48].decode()
        p += n48
    u52 = b[p]
    if not u52:
        f51 = None
        p += 1
    elif u52 == 2:
        f51 = b[p + 1]
        p += 2
        if f51 > 127:
            f51, p = read_long(b, p, f51)
        else:
            f51 = SIGNED[f51]
    else:
        raise WireError(f"no branch {u52} in this union")
    f53, p = read_AppliedOffsets(b, p)
    f54 = b[p]
    p += 1
    if f54 > 127:
        f54, p = read_long(b, p, f54)
    else:
        f54 = SIGNED[f54]
    u56 = b[p]
    if not u56:
        f55 = None
        p += 1
    elif u56 == 2:
        f55 = b[p + 1]
        p += 2
        if f55 > 127:
            f55, p = read_long(b, p, f55)
        else:
            f55 = SIGNED[f55]
    else:
        raise WireError(f"no branch {u56} in this union")
    return r.RolloutState(
        rollout_id=f1,
        status=f5,
        mode=f9,
        resources_id=f14,
        config=f19,
        metadata=f20,
        attempts=f30,
        task_offset=f33,
        group_id=f35,
        group_size=f40,
        sample_index=f41,
        run_id=f42,
        origin=f47,
        cancel_requested_at=f51,
        applied=f53,
        enqueued_at=f54,
        ended_at=f55,
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
    if not u2:
        f1 = None
        p += 1
    elif u2 == 2:
        n3 = b[p + 1]
        if not n3 & 0x81:
            q5 = p + 2
            p = q5 + (n3 >> 1)
            f1 = b[q5:p].decode()
        elif not n3 & 1 and (m4 := b[p + 2]) < 128:
            q5 = p + 3
            p = q5 + (n3 >> 1 & 0x3F | m4 << 6)
            f1 = b[q5:p].decode()
        else:
            n3, p = read_length(b, p + 2, n3)
            f1 = b[p : p + n3].decode()
            p += n3
    else:
        raise WireError(f"no branch {u2} in this union")
    f6 = b[p]
    p += 1
    if f6 > 127:
        f6, p = read_long(b, p, f6)
    else:
        f6 = SIGNED[f6]
    f7 = b[p]
    p += 1
    if f7 > 127:
        f7, p = read_long(b, p, f7)
    else:
        f7 = SIGNED[f7]
    n9 = b[p]
    if not n9 & 0x81:
        q11 = p + 1
        p = q11 + (n9 >> 1)
        f8 = b[q11:p].decode()
    elif not n9 & 1 and (m10 := b[p + 1]) < 128:
        q11 = p + 2
        p = q11 + (n9 >> 1 & 0x3F | m10 << 6)
        f8 = b[q11:p].decode()
    else:
        n9, p = read_length(b, p + 1, n9)
        f8 = b[p : p + n9].decode()
        p += n9
    u13 = b[p]
    if not u13:
        f12 = None
        p += 1
    elif u13 == 2:
        n14 = b[p + 1]
        if not n14 & 0x81:
            q16 = p + 2
            p = q16 + (n14 >> 1)
            f12 = b[q16:p].decode()
        elif not n14 & 1 and (m15 := b[p + 2]) < 128:
            q16 = p + 3
            p = q16 + (n14 >> 1 & 0x3F | m15 << 6)
            f12 = b[q16:p].decode()
        else:
            n14, p = read_length(b, p + 2, n14)
            f12 = b[p : p + n14].decode()
            p += n14
    else:
        raise WireError(f"no branch {u13} in this union")
    u18 = b[p]
    if not u18:
        f17 = None
        p += 1
    elif u18 == 2:
        f17 = b[p + 1]
        p += 2
        if f17 > 127:
            f17, p = read_long(b, p, f17)
        else:
            f17 = SIGNED[f17]
    else:
        raise WireError(f"no branch {u18} in this union")
    u20 = b[p]
    if not u20:
        f19 = None
        p += 1
    elif u20 == 2:
        f19 = b[p + 1]
        p += 2
        if f19 > 127:
            f19, p = read_long(b, p, f19)
        else:
            f19 = SIGNED[f19]
    else:
        raise WireError(f"no branch {u20} in this union")
    u22 = b[p]
    if not u22:
        f21 = None
        p += 1
    elif u22 == 2:
        f21 = b[p + 1]
        p += 2
        if f21 > 127:
            f21, p = read_long(b, p, f21)
        else:
            f21 = SIGNED[f21]
    else:
        raise WireError(f"no branch {u22} in this union")
    u24 = b[p]
    if not u24:
        f23 = None
        p += 1
    elif u24 == 2:
        f23 = b[p + 1]
        p += 2
        if f23 > 127:
            f23, p = read_long(b, p, f23)
        else:
            f23 = SIGNED[f23]
    else:
        raise WireError(f"no branch {u24} in this union")
    u26 = b[p]
    if not u26:
        f25 = None
        p += 1
    elif u26 == 2:
        f25, p = read_ErrorInfo(b, p + 1)
    else:
        raise WireError(f"no branch {u26} in this union")
    return r.AttemptState(
        attempt_id=f1,
        attempt=f6,
        delivery=f7,
        status=f8,
        worker_id=f12,
        started_at=f17,
        last_heartbeat_at=f19,
        last_activity_at=f21,
        ended_at=f23,
        error=f25,
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
    return r.ErrorInfo(type=f1, message=f5, stacktrace=f9), p


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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
    return r.AppliedOffsets(tasks=f1, attempts=f2), p


WRITE = write_RolloutState
READ = read_RolloutState
