"""The Avro binary coding of each record. Generated from the `.avsc` files."""

# pyright: reportPrivateUsage=false
from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, DOUBLES, LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


def write_Assembled(x: r.Assembled, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.state.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.attempt_id
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)
    u8 = x.trajectory
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_LogPosition(u8, put)
    i9 = x.revision
    put(SMALL[i9] if 0 <= i9 < LIMIT else long(i9))
    s10 = x.reward_ids
    if s10:
        n11 = len(s10)
        put(SMALL[n11] if 0 <= n11 < LIMIT else long(n11))
        for v12 in s10:
            b13 = v12.encode()
            n14 = len(b13)
            put(SMALL[n14] if n14 < LIMIT else long(n14))
            put(b13)
    put(b"\0")
    write_Source(x.source, put)
    i15 = x.segment
    put(SMALL[i15] if 0 <= i15 < LIMIT else long(i15))
    i16 = x.at
    put(SMALL[i16] if 0 <= i16 < LIMIT else long(i16))


def read_Assembled(b: bytes, p: int) -> tuple[r.Assembled, int]:
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
        f8, p = read_LogPosition(b, p)
    else:
        raise WireError(f"no branch {u9} in this union")
    f10 = b[p]
    p += 1
    if f10 > 127:
        f10, p = read_long(b, p, f10)
    else:
        f10 = (f10 >> 1) ^ -(f10 & 1)
    f11: Any = []
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
            n14 = b[p]
            if n14 & 0x81:
                n14, p = read_length(b, p + 1, n14)
                v13 = b[p : p + n14].decode()
                p += n14
            else:
                n14 = p + 1 + (n14 >> 1)
                v13 = b[p + 1 : n14].decode()
                p = n14
            f11.append(v13)
    f15, p = read_Source(b, p)
    f16 = b[p]
    p += 1
    if f16 > 127:
        f16, p = read_long(b, p, f16)
    else:
        f16 = (f16 >> 1) ^ -(f16 & 1)
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = (f17 >> 1) ^ -(f17 & 1)
    return r.Assembled(
        rollout_id=f1,
        state=f3,
        attempt_id=f5,
        trajectory=f8,
        revision=f10,
        reward_ids=f11,
        source=f15,
        segment=f16,
        at=f17,
    ), p


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


def write_Source(x: r.Source, put: Put) -> None:
    i1 = x.partition
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    b2 = x.attempts
    n3 = len(b2)
    put(SMALL[n3] if n3 < LIMIT else long(n3))
    put(b2)
    b4 = x.spans
    n5 = len(b4)
    put(SMALL[n5] if n5 < LIMIT else long(n5))
    put(b4)
    b6 = x.rewards
    n7 = len(b6)
    put(SMALL[n7] if n7 < LIMIT else long(n7))
    put(b6)


def read_Source(b: bytes, p: int) -> tuple[r.Source, int]:
    f1 = b[p]
    p += 1
    if f1 > 127:
        f1, p = read_long(b, p, f1)
    else:
        f1 = (f1 >> 1) ^ -(f1 & 1)
    n3 = b[p]
    if n3 & 0x81:
        n3, p = read_length(b, p + 1, n3)
        f2 = b[p : p + n3]
        p += n3
    else:
        n3 = p + 1 + (n3 >> 1)
        f2 = b[p + 1 : n3]
        p = n3
    n5 = b[p]
    if n5 & 0x81:
        n5, p = read_length(b, p + 1, n5)
        f4 = b[p : p + n5]
        p += n5
    else:
        n5 = p + 1 + (n5 >> 1)
        f4 = b[p + 1 : n5]
        p = n5
    n7 = b[p]
    if n7 & 0x81:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7]
        p += n7
    else:
        n7 = p + 1 + (n7 >> 1)
        f6 = b[p + 1 : n7]
        p = n7
    return r.Source(partition=f1, attempts=f2, spans=f4, rewards=f6), p


def write_AttemptEvent(x: r.AttemptEvent, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.attempt_id
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    i6 = x.attempt
    put(SMALL[i6] if 0 <= i6 < LIMIT else long(i6))
    i7 = x.delivery
    put(SMALL[i7] if 0 <= i7 < LIMIT else long(i7))
    b8 = x.type.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)
    put(b"\1" if x.final else b"\0")
    put(b"\1" if x.complete else b"\0")
    u10 = x.task
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_TaskFacts(u10, put)
    u11 = x.lost_reason
    if u11 is None:
        put(b"\0")
    else:
        put(b"\2")
        b12 = u11.encode()
        n13 = len(b12)
        put(SMALL[n13] if n13 < LIMIT else long(n13))
        put(b12)
    i14 = x.child_deaths
    put(SMALL[i14] if 0 <= i14 < LIMIT else long(i14))
    u15 = x.worker_id
    if u15 is None:
        put(b"\0")
    else:
        put(b"\2")
        b16 = u15.encode()
        n17 = len(b16)
        put(SMALL[n17] if n17 < LIMIT else long(n17))
        put(b16)
    u18 = x.error
    if u18 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_ErrorInfo(u18, put)
    i19 = x.at
    put(SMALL[i19] if 0 <= i19 < LIMIT else long(i19))


def read_AttemptEvent(b: bytes, p: int) -> tuple[r.AttemptEvent, int]:
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
    f10 = b[p] == 1
    p += 1
    f11 = b[p] == 1
    p += 1
    u13 = b[p]
    p += 1
    if u13 == 0:
        f12 = None
    elif u13 == 2:
        f12, p = read_TaskFacts(b, p)
    else:
        raise WireError(f"no branch {u13} in this union")
    u15 = b[p]
    p += 1
    if u15 == 0:
        f14 = None
    elif u15 == 2:
        n16 = b[p]
        if n16 & 0x81:
            n16, p = read_length(b, p + 1, n16)
            f14 = b[p : p + n16].decode()
            p += n16
        else:
            n16 = p + 1 + (n16 >> 1)
            f14 = b[p + 1 : n16].decode()
            p = n16
    else:
        raise WireError(f"no branch {u15} in this union")
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = (f17 >> 1) ^ -(f17 & 1)
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
    u22 = b[p]
    p += 1
    if u22 == 0:
        f21 = None
    elif u22 == 2:
        f21, p = read_ErrorInfo(b, p)
    else:
        raise WireError(f"no branch {u22} in this union")
    f23 = b[p]
    p += 1
    if f23 > 127:
        f23, p = read_long(b, p, f23)
    else:
        f23 = (f23 >> 1) ^ -(f23 & 1)
    return r.AttemptEvent(
        rollout_id=f1,
        attempt_id=f3,
        attempt=f6,
        delivery=f7,
        type=f8,
        final=f10,
        complete=f11,
        task=f12,
        lost_reason=f14,
        child_deaths=f17,
        worker_id=f18,
        error=f21,
        at=f23,
    ), p


def write_TaskFacts(x: r.TaskFacts, put: Put) -> None:
    u1 = x.offset
    if u1 is None:
        put(b"\0")
    else:
        put(b"\2")
        i2 = u1
        put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))
    b3 = x.origin.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.session_id
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)
    u8 = x.group_id
    if u8 is None:
        put(b"\0")
    else:
        put(b"\2")
        b9 = u8.encode()
        n10 = len(b9)
        put(SMALL[n10] if n10 < LIMIT else long(n10))
        put(b9)
    i11 = x.group_size
    put(SMALL[i11] if 0 <= i11 < LIMIT else long(i11))
    i12 = x.sample_index
    put(SMALL[i12] if 0 <= i12 < LIMIT else long(i12))
    u13 = x.mode
    if u13 is None:
        put(b"\0")
    else:
        put(b"\2")
        b14 = u13.encode()
        n15 = len(b14)
        put(SMALL[n15] if n15 < LIMIT else long(n15))
        put(b14)
    u16 = x.run_id
    if u16 is None:
        put(b"\0")
    else:
        put(b"\2")
        b17 = u16.encode()
        n18 = len(b17)
        put(SMALL[n18] if n18 < LIMIT else long(n18))
        put(b17)
    u19 = x.resources_id
    if u19 is None:
        put(b"\0")
    else:
        put(b"\2")
        b20 = u19.encode()
        n21 = len(b20)
        put(SMALL[n21] if n21 < LIMIT else long(n21))
        put(b20)
    b22 = x.input.encode()
    n23 = len(b22)
    put(SMALL[n23] if n23 < LIMIT else long(n23))
    put(b22)


def read_TaskFacts(b: bytes, p: int) -> tuple[r.TaskFacts, int]:
    u2 = b[p]
    p += 1
    if u2 == 0:
        f1 = None
    elif u2 == 2:
        f1 = b[p]
        p += 1
        if f1 > 127:
            f1, p = read_long(b, p, f1)
        else:
            f1 = (f1 >> 1) ^ -(f1 & 1)
    else:
        raise WireError(f"no branch {u2} in this union")
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
    f11 = b[p]
    p += 1
    if f11 > 127:
        f11, p = read_long(b, p, f11)
    else:
        f11 = (f11 >> 1) ^ -(f11 & 1)
    f12 = b[p]
    p += 1
    if f12 > 127:
        f12, p = read_long(b, p, f12)
    else:
        f12 = (f12 >> 1) ^ -(f12 & 1)
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
    u20 = b[p]
    p += 1
    if u20 == 0:
        f19 = None
    elif u20 == 2:
        n21 = b[p]
        if n21 & 0x81:
            n21, p = read_length(b, p + 1, n21)
            f19 = b[p : p + n21].decode()
            p += n21
        else:
            n21 = p + 1 + (n21 >> 1)
            f19 = b[p + 1 : n21].decode()
            p = n21
    else:
        raise WireError(f"no branch {u20} in this union")
    n23 = b[p]
    if n23 & 0x81:
        n23, p = read_length(b, p + 1, n23)
        f22 = b[p : p + n23].decode()
        p += n23
    else:
        n23 = p + 1 + (n23 >> 1)
        f22 = b[p + 1 : n23].decode()
        p = n23
    return r.TaskFacts(
        offset=f1,
        origin=f3,
        session_id=f5,
        group_id=f8,
        group_size=f11,
        sample_index=f12,
        mode=f13,
        run_id=f16,
        resources_id=f19,
        input=f22,
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


def write_ResourcesUpdate(x: r.ResourcesUpdate, put: Put) -> None:
    b1 = x.resources_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.name.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    i5 = x.version
    put(SMALL[i5] if 0 <= i5 < LIMIT else long(i5))
    s6 = x.resources
    if s6:
        n7 = len(s6)
        put(SMALL[n7] if 0 <= n7 < LIMIT else long(n7))
        for k9, v8 in s6.items():
            b10 = k9.encode()
            n11 = len(b10)
            put(SMALL[n11] if n11 < LIMIT else long(n11))
            put(b10)
            u12 = v8
            if isinstance(u12, r.LLM):
                put(SMALL[0])
                write_LLM(u12, put)
            elif isinstance(u12, r.ProxyLLM):
                put(SMALL[1])
                write_ProxyLLM(u12, put)
            elif isinstance(u12, r.PromptTemplate):
                put(SMALL[2])
                write_PromptTemplate(u12, put)
            else:
                put(SMALL[3])
                write_Weights(u12, put)
    put(b"\0")
    u13 = x.run_id
    if u13 is None:
        put(b"\0")
    else:
        put(b"\2")
        b14 = u13.encode()
        n15 = len(b14)
        put(SMALL[n15] if n15 < LIMIT else long(n15))
        put(b14)
    u16 = x.step
    if u16 is None:
        put(b"\0")
    else:
        put(b"\2")
        i17 = u16
        put(SMALL[i17] if 0 <= i17 < LIMIT else long(i17))
    i18 = x.created_at
    put(SMALL[i18] if 0 <= i18 < LIMIT else long(i18))


def read_ResourcesUpdate(b: bytes, p: int) -> tuple[r.ResourcesUpdate, int]:
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
    f5 = b[p]
    p += 1
    if f5 > 127:
        f5, p = read_long(b, p, f5)
    else:
        f5 = (f5 >> 1) ^ -(f5 & 1)
    f6: Any = {}
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
            n10 = b[p]
            if n10 & 0x81:
                n10, p = read_length(b, p + 1, n10)
                k9 = b[p : p + n10].decode()
                p += n10
            else:
                n10 = p + 1 + (n10 >> 1)
                k9 = b[p + 1 : n10].decode()
                p = n10
            u11 = b[p]
            p += 1
            if u11 == 0:
                v8, p = read_LLM(b, p)
            elif u11 == 2:
                v8, p = read_ProxyLLM(b, p)
            elif u11 == 4:
                v8, p = read_PromptTemplate(b, p)
            elif u11 == 6:
                v8, p = read_Weights(b, p)
            else:
                raise WireError(f"no branch {u11} in this union")
            f6[k9] = v8
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
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = (f17 >> 1) ^ -(f17 & 1)
    return r.ResourcesUpdate(
        resources_id=f1, name=f3, version=f5, resources=f6, run_id=f12, step=f15, created_at=f17
    ), p


def write_LLM(x: r.LLM, put: Put) -> None:
    b1 = x.endpoint.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.model.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.api_key_env
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)
    b8 = x.sampling_parameters.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)


def read_LLM(b: bytes, p: int) -> tuple[r.LLM, int]:
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
    n9 = b[p]
    if n9 & 0x81:
        n9, p = read_length(b, p + 1, n9)
        f8 = b[p : p + n9].decode()
        p += n9
    else:
        n9 = p + 1 + (n9 >> 1)
        f8 = b[p + 1 : n9].decode()
        p = n9
    return r.LLM(endpoint=f1, model=f3, api_key_env=f5, sampling_parameters=f8), p


def write_ProxyLLM(x: r.ProxyLLM, put: Put) -> None:
    b1 = x.endpoint.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.model.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)
    u5 = x.api_key_env
    if u5 is None:
        put(b"\0")
    else:
        put(b"\2")
        b6 = u5.encode()
        n7 = len(b6)
        put(SMALL[n7] if n7 < LIMIT else long(n7))
        put(b6)
    b8 = x.sampling_parameters.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)


def read_ProxyLLM(b: bytes, p: int) -> tuple[r.ProxyLLM, int]:
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
    n9 = b[p]
    if n9 & 0x81:
        n9, p = read_length(b, p + 1, n9)
        f8 = b[p : p + n9].decode()
        p += n9
    else:
        n9 = p + 1 + (n9 >> 1)
        f8 = b[p + 1 : n9].decode()
        p = n9
    return r.ProxyLLM(endpoint=f1, model=f3, api_key_env=f5, sampling_parameters=f8), p


def write_PromptTemplate(x: r.PromptTemplate, put: Put) -> None:
    b1 = x.template.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.engine.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)


def read_PromptTemplate(b: bytes, p: int) -> tuple[r.PromptTemplate, int]:
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
    return r.PromptTemplate(template=f1, engine=f3), p


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


def write_Reward(x: r.Reward, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.attempt_id
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    b6 = x.reward_id.encode()
    n7 = len(b6)
    put(SMALL[n7] if n7 < LIMIT else long(n7))
    put(b6)
    b8 = x.name.encode()
    n9 = len(b8)
    put(SMALL[n9] if n9 < LIMIT else long(n9))
    put(b8)
    put(b"\1" if x.primary else b"\0")
    put(DOUBLE.pack(x.value))
    u10 = x.span_id
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        b11 = u10.encode()
        n12 = len(b11)
        put(SMALL[n12] if n12 < LIMIT else long(n12))
        put(b11)
    b13 = x.source.encode()
    n14 = len(b13)
    put(SMALL[n14] if n14 < LIMIT else long(n14))
    put(b13)
    i15 = x.at
    put(SMALL[i15] if 0 <= i15 < LIMIT else long(i15))
    s16 = x.metadata
    if s16:
        n17 = len(s16)
        put(SMALL[n17] if 0 <= n17 < LIMIT else long(n17))
        for k19, v18 in s16.items():
            b20 = k19.encode()
            n21 = len(b20)
            put(SMALL[n21] if n21 < LIMIT else long(n21))
            put(b20)
            b22 = v18.encode()
            n23 = len(b22)
            put(SMALL[n23] if n23 < LIMIT else long(n23))
            put(b22)
    put(b"\0")


def read_Reward(b: bytes, p: int) -> tuple[r.Reward, int]:
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
    f10 = b[p] == 1
    p += 1
    f11 = DOUBLE.unpack_from(b, p)[0]
    p += 8
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
    n16 = b[p]
    if n16 & 0x81:
        n16, p = read_length(b, p + 1, n16)
        f15 = b[p : p + n16].decode()
        p += n16
    else:
        n16 = p + 1 + (n16 >> 1)
        f15 = b[p + 1 : n16].decode()
        p = n16
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = (f17 >> 1) ^ -(f17 & 1)
    f18: Any = {}
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
            n22 = b[p]
            if n22 & 0x81:
                n22, p = read_length(b, p + 1, n22)
                k21 = b[p : p + n22].decode()
                p += n22
            else:
                n22 = p + 1 + (n22 >> 1)
                k21 = b[p + 1 : n22].decode()
                p = n22
            n23 = b[p]
            if n23 & 0x81:
                n23, p = read_length(b, p + 1, n23)
                v20 = b[p : p + n23].decode()
                p += n23
            else:
                n23 = p + 1 + (n23 >> 1)
                v20 = b[p + 1 : n23].decode()
                p = n23
            f18[k21] = v20
    return r.Reward(
        rollout_id=f1,
        attempt_id=f3,
        reward_id=f6,
        name=f8,
        primary=f10,
        value=f11,
        span_id=f12,
        source=f15,
        at=f17,
        metadata=f18,
    ), p


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


def write_Span(x: r.Span, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.attempt_id
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    u6 = x.session_id
    if u6 is None:
        put(b"\0")
    else:
        put(b"\2")
        b7 = u6.encode()
        n8 = len(b7)
        put(SMALL[n8] if n8 < LIMIT else long(n8))
        put(b7)
    u9 = x.sequence
    if u9 is None:
        put(b"\0")
    else:
        put(b"\2")
        i10 = u9
        put(SMALL[i10] if 0 <= i10 < LIMIT else long(i10))
    b11 = x.source.encode()
    n12 = len(b11)
    put(SMALL[n12] if n12 < LIMIT else long(n12))
    put(b11)
    b13 = x.trace_id.encode()
    n14 = len(b13)
    put(SMALL[n14] if n14 < LIMIT else long(n14))
    put(b13)
    b15 = x.span_id.encode()
    n16 = len(b15)
    put(SMALL[n16] if n16 < LIMIT else long(n16))
    put(b15)
    u17 = x.parent_id
    if u17 is None:
        put(b"\0")
    else:
        put(b"\2")
        b18 = u17.encode()
        n19 = len(b18)
        put(SMALL[n19] if n19 < LIMIT else long(n19))
        put(b18)
    b20 = x.name.encode()
    n21 = len(b20)
    put(SMALL[n21] if n21 < LIMIT else long(n21))
    put(b20)
    b22 = x.kind.encode()
    n23 = len(b22)
    put(SMALL[n23] if n23 < LIMIT else long(n23))
    put(b22)
    write_SpanStatus(x.status, put)
    i24 = x.start
    put(SMALL[i24] if 0 <= i24 < LIMIT else long(i24))
    i25 = x.end
    put(SMALL[i25] if 0 <= i25 < LIMIT else long(i25))
    b26 = x.attributes.encode()
    n27 = len(b26)
    put(SMALL[n27] if n27 < LIMIT else long(n27))
    put(b26)
    b28 = x.events.encode()
    n29 = len(b28)
    put(SMALL[n29] if n29 < LIMIT else long(n29))
    put(b28)
    b30 = x.links.encode()
    n31 = len(b30)
    put(SMALL[n31] if n31 < LIMIT else long(n31))
    put(b30)
    b32 = x.resource.encode()
    n33 = len(b32)
    put(SMALL[n33] if n33 < LIMIT else long(n33))
    put(b32)
    b34 = x.scope.encode()
    n35 = len(b34)
    put(SMALL[n35] if n35 < LIMIT else long(n35))
    put(b34)
    u36 = x.llm
    if u36 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_ModelCall(u36, put)


def read_Span(b: bytes, p: int) -> tuple[r.Span, int]:
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
    u7 = b[p]
    p += 1
    if u7 == 0:
        f6 = None
    elif u7 == 2:
        n8 = b[p]
        if n8 & 0x81:
            n8, p = read_length(b, p + 1, n8)
            f6 = b[p : p + n8].decode()
            p += n8
        else:
            n8 = p + 1 + (n8 >> 1)
            f6 = b[p + 1 : n8].decode()
            p = n8
    else:
        raise WireError(f"no branch {u7} in this union")
    u10 = b[p]
    p += 1
    if u10 == 0:
        f9 = None
    elif u10 == 2:
        f9 = b[p]
        p += 1
        if f9 > 127:
            f9, p = read_long(b, p, f9)
        else:
            f9 = (f9 >> 1) ^ -(f9 & 1)
    else:
        raise WireError(f"no branch {u10} in this union")
    n12 = b[p]
    if n12 & 0x81:
        n12, p = read_length(b, p + 1, n12)
        f11 = b[p : p + n12].decode()
        p += n12
    else:
        n12 = p + 1 + (n12 >> 1)
        f11 = b[p + 1 : n12].decode()
        p = n12
    n14 = b[p]
    if n14 & 0x81:
        n14, p = read_length(b, p + 1, n14)
        f13 = b[p : p + n14].decode()
        p += n14
    else:
        n14 = p + 1 + (n14 >> 1)
        f13 = b[p + 1 : n14].decode()
        p = n14
    n16 = b[p]
    if n16 & 0x81:
        n16, p = read_length(b, p + 1, n16)
        f15 = b[p : p + n16].decode()
        p += n16
    else:
        n16 = p + 1 + (n16 >> 1)
        f15 = b[p + 1 : n16].decode()
        p = n16
    u18 = b[p]
    p += 1
    if u18 == 0:
        f17 = None
    elif u18 == 2:
        n19 = b[p]
        if n19 & 0x81:
            n19, p = read_length(b, p + 1, n19)
            f17 = b[p : p + n19].decode()
            p += n19
        else:
            n19 = p + 1 + (n19 >> 1)
            f17 = b[p + 1 : n19].decode()
            p = n19
    else:
        raise WireError(f"no branch {u18} in this union")
    n21 = b[p]
    if n21 & 0x81:
        n21, p = read_length(b, p + 1, n21)
        f20 = b[p : p + n21].decode()
        p += n21
    else:
        n21 = p + 1 + (n21 >> 1)
        f20 = b[p + 1 : n21].decode()
        p = n21
    n23 = b[p]
    if n23 & 0x81:
        n23, p = read_length(b, p + 1, n23)
        f22 = b[p : p + n23].decode()
        p += n23
    else:
        n23 = p + 1 + (n23 >> 1)
        f22 = b[p + 1 : n23].decode()
        p = n23
    f24, p = read_SpanStatus(b, p)
    f25 = b[p]
    p += 1
    if f25 > 127:
        f25, p = read_long(b, p, f25)
    else:
        f25 = (f25 >> 1) ^ -(f25 & 1)
    f26 = b[p]
    p += 1
    if f26 > 127:
        f26, p = read_long(b, p, f26)
    else:
        f26 = (f26 >> 1) ^ -(f26 & 1)
    n28 = b[p]
    if n28 & 0x81:
        n28, p = read_length(b, p + 1, n28)
        f27 = b[p : p + n28].decode()
        p += n28
    else:
        n28 = p + 1 + (n28 >> 1)
        f27 = b[p + 1 : n28].decode()
        p = n28
    n30 = b[p]
    if n30 & 0x81:
        n30, p = read_length(b, p + 1, n30)
        f29 = b[p : p + n30].decode()
        p += n30
    else:
        n30 = p + 1 + (n30 >> 1)
        f29 = b[p + 1 : n30].decode()
        p = n30
    n32 = b[p]
    if n32 & 0x81:
        n32, p = read_length(b, p + 1, n32)
        f31 = b[p : p + n32].decode()
        p += n32
    else:
        n32 = p + 1 + (n32 >> 1)
        f31 = b[p + 1 : n32].decode()
        p = n32
    n34 = b[p]
    if n34 & 0x81:
        n34, p = read_length(b, p + 1, n34)
        f33 = b[p : p + n34].decode()
        p += n34
    else:
        n34 = p + 1 + (n34 >> 1)
        f33 = b[p + 1 : n34].decode()
        p = n34
    n36 = b[p]
    if n36 & 0x81:
        n36, p = read_length(b, p + 1, n36)
        f35 = b[p : p + n36].decode()
        p += n36
    else:
        n36 = p + 1 + (n36 >> 1)
        f35 = b[p + 1 : n36].decode()
        p = n36
    u38 = b[p]
    p += 1
    if u38 == 0:
        f37 = None
    elif u38 == 2:
        f37, p = read_ModelCall(b, p)
    else:
        raise WireError(f"no branch {u38} in this union")
    return r.Span(
        rollout_id=f1,
        attempt_id=f3,
        session_id=f6,
        sequence=f9,
        source=f11,
        trace_id=f13,
        span_id=f15,
        parent_id=f17,
        name=f20,
        kind=f22,
        status=f24,
        start=f25,
        end=f26,
        attributes=f27,
        events=f29,
        links=f31,
        resource=f33,
        scope=f35,
        llm=f37,
    ), p


def write_SpanStatus(x: r.SpanStatus, put: Put) -> None:
    b1 = x.code.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    b3 = x.message.encode()
    n4 = len(b3)
    put(SMALL[n4] if n4 < LIMIT else long(n4))
    put(b3)


def read_SpanStatus(b: bytes, p: int) -> tuple[r.SpanStatus, int]:
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
    return r.SpanStatus(code=f1, message=f3), p


def write_ModelCall(x: r.ModelCall, put: Put) -> None:
    b1 = x.model.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.policy
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    u6 = x.policy_version
    if u6 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_VersionRange(u6, put)
    u7 = x.weights_id
    if u7 is None:
        put(b"\0")
    else:
        put(b"\2")
        b8 = u7.encode()
        n9 = len(b8)
        put(SMALL[n9] if n9 < LIMIT else long(n9))
        put(b8)
    u10 = x.response_id
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        b11 = u10.encode()
        n12 = len(b11)
        put(SMALL[n12] if n12 < LIMIT else long(n12))
        put(b11)
    b13 = x.prompt_token_ids
    n14 = len(b13)
    put(SMALL[n14] if n14 < LIMIT else long(n14))
    put(b13)
    s15 = x.choices
    if s15:
        n16 = len(s15)
        put(SMALL[n16] if 0 <= n16 < LIMIT else long(n16))
        for v17 in s15:
            write_Choice(v17, put)
    put(b"\0")
    u18 = x.sampling
    if u18 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_Sampling(u18, put)
    u19 = x.logprobs_mode
    if u19 is None:
        put(b"\0")
    else:
        put(b"\2")
        b20 = u19.encode()
        n21 = len(b20)
        put(SMALL[n21] if n21 < LIMIT else long(n21))
        put(b20)
    u22 = x.request
    if u22 is None:
        put(b"\0")
    else:
        put(b"\2")
        b23 = u22.encode()
        n24 = len(b23)
        put(SMALL[n24] if n24 < LIMIT else long(n24))
        put(b23)
    u25 = x.response
    if u25 is None:
        put(b"\0")
    else:
        put(b"\2")
        b26 = u25.encode()
        n27 = len(b26)
        put(SMALL[n27] if n27 < LIMIT else long(n27))
        put(b26)
    i28 = x.retry_count
    put(SMALL[i28] if 0 <= i28 < LIMIT else long(i28))
    u29 = x.usage
    if u29 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_Usage(u29, put)
    u30 = x.http_status
    if u30 is None:
        put(b"\0")
    else:
        put(b"\2")
        i31 = u30
        put(SMALL[i31] if 0 <= i31 < LIMIT else long(i31))
    u32 = x.error
    if u32 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_ErrorInfo(u32, put)


def read_ModelCall(b: bytes, p: int) -> tuple[r.ModelCall, int]:
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
    u7 = b[p]
    p += 1
    if u7 == 0:
        f6 = None
    elif u7 == 2:
        f6, p = read_VersionRange(b, p)
    else:
        raise WireError(f"no branch {u7} in this union")
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
    n15 = b[p]
    if n15 & 0x81:
        n15, p = read_length(b, p + 1, n15)
        f14 = b[p : p + n15]
        p += n15
    else:
        n15 = p + 1 + (n15 >> 1)
        f14 = b[p + 1 : n15]
        p = n15
    f16: Any = []
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
            v18, p = read_Choice(b, p)
            f16.append(v18)
    u20 = b[p]
    p += 1
    if u20 == 0:
        f19 = None
    elif u20 == 2:
        f19, p = read_Sampling(b, p)
    else:
        raise WireError(f"no branch {u20} in this union")
    u22 = b[p]
    p += 1
    if u22 == 0:
        f21 = None
    elif u22 == 2:
        n23 = b[p]
        if n23 & 0x81:
            n23, p = read_length(b, p + 1, n23)
            f21 = b[p : p + n23].decode()
            p += n23
        else:
            n23 = p + 1 + (n23 >> 1)
            f21 = b[p + 1 : n23].decode()
            p = n23
    else:
        raise WireError(f"no branch {u22} in this union")
    u25 = b[p]
    p += 1
    if u25 == 0:
        f24 = None
    elif u25 == 2:
        n26 = b[p]
        if n26 & 0x81:
            n26, p = read_length(b, p + 1, n26)
            f24 = b[p : p + n26].decode()
            p += n26
        else:
            n26 = p + 1 + (n26 >> 1)
            f24 = b[p + 1 : n26].decode()
            p = n26
    else:
        raise WireError(f"no branch {u25} in this union")
    u28 = b[p]
    p += 1
    if u28 == 0:
        f27 = None
    elif u28 == 2:
        n29 = b[p]
        if n29 & 0x81:
            n29, p = read_length(b, p + 1, n29)
            f27 = b[p : p + n29].decode()
            p += n29
        else:
            n29 = p + 1 + (n29 >> 1)
            f27 = b[p + 1 : n29].decode()
            p = n29
    else:
        raise WireError(f"no branch {u28} in this union")
    f30 = b[p]
    p += 1
    if f30 > 127:
        f30, p = read_long(b, p, f30)
    else:
        f30 = (f30 >> 1) ^ -(f30 & 1)
    u32 = b[p]
    p += 1
    if u32 == 0:
        f31 = None
    elif u32 == 2:
        f31, p = read_Usage(b, p)
    else:
        raise WireError(f"no branch {u32} in this union")
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
    u36 = b[p]
    p += 1
    if u36 == 0:
        f35 = None
    elif u36 == 2:
        f35, p = read_ErrorInfo(b, p)
    else:
        raise WireError(f"no branch {u36} in this union")
    return r.ModelCall(
        model=f1,
        policy=f3,
        policy_version=f6,
        weights_id=f8,
        response_id=f11,
        prompt_token_ids=f14,
        choices=f16,
        sampling=f19,
        logprobs_mode=f21,
        request=f24,
        response=f27,
        retry_count=f30,
        usage=f31,
        http_status=f33,
        error=f35,
    ), p


def write_VersionRange(x: r.VersionRange, put: Put) -> None:
    i1 = x.min
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.max
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))


def read_VersionRange(b: bytes, p: int) -> tuple[r.VersionRange, int]:
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
    return r.VersionRange(min=f1, max=f2), p


def write_Choice(x: r.Choice, put: Put) -> None:
    i1 = x.index
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    b2 = x.response_token_ids
    n3 = len(b2)
    put(SMALL[n3] if n3 < LIMIT else long(n3))
    put(b2)
    u4 = x.logprobs
    if u4 is None:
        put(b"\0")
    else:
        put(b"\2")
        b5 = u4
        n6 = len(b5)
        put(SMALL[n6] if n6 < LIMIT else long(n6))
        put(b5)
    u7 = x.finish_reason
    if u7 is None:
        put(b"\0")
    else:
        put(b"\2")
        b8 = u7.encode()
        n9 = len(b8)
        put(SMALL[n9] if n9 < LIMIT else long(n9))
        put(b8)
    u10 = x.text
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        b11 = u10.encode()
        n12 = len(b11)
        put(SMALL[n12] if n12 < LIMIT else long(n12))
        put(b11)
    b13 = x.tool_calls.encode()
    n14 = len(b13)
    put(SMALL[n14] if n14 < LIMIT else long(n14))
    put(b13)


def read_Choice(b: bytes, p: int) -> tuple[r.Choice, int]:
    f1 = b[p]
    p += 1
    if f1 > 127:
        f1, p = read_long(b, p, f1)
    else:
        f1 = (f1 >> 1) ^ -(f1 & 1)
    n3 = b[p]
    if n3 & 0x81:
        n3, p = read_length(b, p + 1, n3)
        f2 = b[p : p + n3]
        p += n3
    else:
        n3 = p + 1 + (n3 >> 1)
        f2 = b[p + 1 : n3]
        p = n3
    u5 = b[p]
    p += 1
    if u5 == 0:
        f4 = None
    elif u5 == 2:
        n6 = b[p]
        if n6 & 0x81:
            n6, p = read_length(b, p + 1, n6)
            f4 = b[p : p + n6]
            p += n6
        else:
            n6 = p + 1 + (n6 >> 1)
            f4 = b[p + 1 : n6]
            p = n6
    else:
        raise WireError(f"no branch {u5} in this union")
    u8 = b[p]
    p += 1
    if u8 == 0:
        f7 = None
    elif u8 == 2:
        n9 = b[p]
        if n9 & 0x81:
            n9, p = read_length(b, p + 1, n9)
            f7 = b[p : p + n9].decode()
            p += n9
        else:
            n9 = p + 1 + (n9 >> 1)
            f7 = b[p + 1 : n9].decode()
            p = n9
    else:
        raise WireError(f"no branch {u8} in this union")
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
    n14 = b[p]
    if n14 & 0x81:
        n14, p = read_length(b, p + 1, n14)
        f13 = b[p : p + n14].decode()
        p += n14
    else:
        n14 = p + 1 + (n14 >> 1)
        f13 = b[p + 1 : n14].decode()
        p = n14
    return r.Choice(index=f1, response_token_ids=f2, logprobs=f4, finish_reason=f7, text=f10, tool_calls=f13), p


def write_Sampling(x: r.Sampling, put: Put) -> None:
    put(DOUBLES[2].pack(x.temperature, x.top_p))
    i1 = x.top_k
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    put(DOUBLES[4].pack(x.min_p, x.presence_penalty, x.frequency_penalty, x.repetition_penalty))
    u2 = x.constraints
    if u2 is None:
        put(b"\0")
    else:
        put(b"\2")
        b3 = u2.encode()
        n4 = len(b3)
        put(SMALL[n4] if n4 < LIMIT else long(n4))
        put(b3)


def read_Sampling(b: bytes, p: int) -> tuple[r.Sampling, int]:
    f1, f2 = DOUBLES[2].unpack_from(b, p)
    p += 16
    f3 = b[p]
    p += 1
    if f3 > 127:
        f3, p = read_long(b, p, f3)
    else:
        f3 = (f3 >> 1) ^ -(f3 & 1)
    f4, f5, f6, f7 = DOUBLES[4].unpack_from(b, p)
    p += 32
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
    return r.Sampling(
        temperature=f1,
        top_p=f2,
        top_k=f3,
        min_p=f4,
        presence_penalty=f5,
        frequency_penalty=f6,
        repetition_penalty=f7,
        constraints=f8,
    ), p


def write_Usage(x: r.Usage, put: Put) -> None:
    i1 = x.input_tokens
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.output_tokens
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))


def read_Usage(b: bytes, p: int) -> tuple[r.Usage, int]:
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
    return r.Usage(input_tokens=f1, output_tokens=f2), p


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


def write_Trajectory(x: r.Trajectory, put: Put) -> None:
    b1 = x.rollout_id.encode()
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.attempt_id
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        b4 = u3.encode()
        n5 = len(b4)
        put(SMALL[n5] if n5 < LIMIT else long(n5))
        put(b4)
    u6 = x.group_id
    if u6 is None:
        put(b"\0")
    else:
        put(b"\2")
        b7 = u6.encode()
        n8 = len(b7)
        put(SMALL[n8] if n8 < LIMIT else long(n8))
        put(b7)
    i9 = x.group_size
    put(SMALL[i9] if 0 <= i9 < LIMIT else long(i9))
    i10 = x.sample_index
    put(SMALL[i10] if 0 <= i10 < LIMIT else long(i10))
    u11 = x.mode
    if u11 is None:
        put(b"\0")
    else:
        put(b"\2")
        b12 = u11.encode()
        n13 = len(b12)
        put(SMALL[n13] if n13 < LIMIT else long(n13))
        put(b12)
    u14 = x.run_id
    if u14 is None:
        put(b"\0")
    else:
        put(b"\2")
        b15 = u14.encode()
        n16 = len(b15)
        put(SMALL[n16] if n16 < LIMIT else long(n16))
        put(b15)
    b17 = x.origin.encode()
    n18 = len(b17)
    put(SMALL[n18] if n18 < LIMIT else long(n18))
    put(b17)
    u19 = x.session_id
    if u19 is None:
        put(b"\0")
    else:
        put(b"\2")
        b20 = u19.encode()
        n21 = len(b20)
        put(SMALL[n21] if n21 < LIMIT else long(n21))
        put(b20)
    b22 = x.input.encode()
    n23 = len(b22)
    put(SMALL[n23] if n23 < LIMIT else long(n23))
    put(b22)
    b24 = x.status.encode()
    n25 = len(b24)
    put(SMALL[n25] if n25 < LIMIT else long(n25))
    put(b24)
    s26 = x.triplets
    if s26:
        n27 = len(s26)
        put(SMALL[n27] if 0 <= n27 < LIMIT else long(n27))
        for v28 in s26:
            write_Triplet(v28, put)
    put(b"\0")
    u29 = x.final_reward
    if u29 is None:
        put(b"\0")
    else:
        put(b"\2")
        put(DOUBLE.pack(u29))
    s30 = x.rewards
    if s30:
        n31 = len(s30)
        put(SMALL[n31] if 0 <= n31 < LIMIT else long(n31))
        for k33, v32 in s30.items():
            b34 = k33.encode()
            n35 = len(b34)
            put(SMALL[n35] if n35 < LIMIT else long(n35))
            put(b34)
            put(DOUBLE.pack(v32))
    put(b"\0")
    u36 = x.conversations
    if u36 is None:
        put(b"\0")
    else:
        put(b"\2")
        b37 = u36.encode()
        n38 = len(b37)
        put(SMALL[n38] if n38 < LIMIT else long(n38))
        put(b37)
    u39 = x.resources_id
    if u39 is None:
        put(b"\0")
    else:
        put(b"\2")
        b40 = u39.encode()
        n41 = len(b40)
        put(SMALL[n41] if n41 < LIMIT else long(n41))
        put(b40)
    u42 = x.policy
    if u42 is None:
        put(b"\0")
    else:
        put(b"\2")
        b43 = u42.encode()
        n44 = len(b43)
        put(SMALL[n44] if n44 < LIMIT else long(n44))
        put(b43)
    u45 = x.policy_version
    if u45 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_VersionRange(u45, put)
    write_Diagnostics(x.diagnostics, put)
    i46 = x.revision
    put(SMALL[i46] if 0 <= i46 < LIMIT else long(i46))
    u47 = x.supersedes
    if u47 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_LogPosition(u47, put)
    u48 = x.source
    if u48 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_Source(u48, put)
    i49 = x.assembled_at
    put(SMALL[i49] if 0 <= i49 < LIMIT else long(i49))


def read_Trajectory(b: bytes, p: int) -> tuple[r.Trajectory, int]:
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
    u7 = b[p]
    p += 1
    if u7 == 0:
        f6 = None
    elif u7 == 2:
        n8 = b[p]
        if n8 & 0x81:
            n8, p = read_length(b, p + 1, n8)
            f6 = b[p : p + n8].decode()
            p += n8
        else:
            n8 = p + 1 + (n8 >> 1)
            f6 = b[p + 1 : n8].decode()
            p = n8
    else:
        raise WireError(f"no branch {u7} in this union")
    f9 = b[p]
    p += 1
    if f9 > 127:
        f9, p = read_long(b, p, f9)
    else:
        f9 = (f9 >> 1) ^ -(f9 & 1)
    f10 = b[p]
    p += 1
    if f10 > 127:
        f10, p = read_long(b, p, f10)
    else:
        f10 = (f10 >> 1) ^ -(f10 & 1)
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
        n16 = b[p]
        if n16 & 0x81:
            n16, p = read_length(b, p + 1, n16)
            f14 = b[p : p + n16].decode()
            p += n16
        else:
            n16 = p + 1 + (n16 >> 1)
            f14 = b[p + 1 : n16].decode()
            p = n16
    else:
        raise WireError(f"no branch {u15} in this union")
    n18 = b[p]
    if n18 & 0x81:
        n18, p = read_length(b, p + 1, n18)
        f17 = b[p : p + n18].decode()
        p += n18
    else:
        n18 = p + 1 + (n18 >> 1)
        f17 = b[p + 1 : n18].decode()
        p = n18
    u20 = b[p]
    p += 1
    if u20 == 0:
        f19 = None
    elif u20 == 2:
        n21 = b[p]
        if n21 & 0x81:
            n21, p = read_length(b, p + 1, n21)
            f19 = b[p : p + n21].decode()
            p += n21
        else:
            n21 = p + 1 + (n21 >> 1)
            f19 = b[p + 1 : n21].decode()
            p = n21
    else:
        raise WireError(f"no branch {u20} in this union")
    n23 = b[p]
    if n23 & 0x81:
        n23, p = read_length(b, p + 1, n23)
        f22 = b[p : p + n23].decode()
        p += n23
    else:
        n23 = p + 1 + (n23 >> 1)
        f22 = b[p + 1 : n23].decode()
        p = n23
    n25 = b[p]
    if n25 & 0x81:
        n25, p = read_length(b, p + 1, n25)
        f24 = b[p : p + n25].decode()
        p += n25
    else:
        n25 = p + 1 + (n25 >> 1)
        f24 = b[p + 1 : n25].decode()
        p = n25
    f26: Any = []
    while True:
        n27 = b[p]
        p += 1
        if n27 > 127:
            n27, p = read_long(b, p, n27)
        else:
            n27 = (n27 >> 1) ^ -(n27 & 1)
        if n27 == 0:
            break
        if n27 < 0:
            n27 = -n27
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n27):
            v28, p = read_Triplet(b, p)
            f26.append(v28)
    u30 = b[p]
    p += 1
    if u30 == 0:
        f29 = None
    elif u30 == 2:
        f29 = DOUBLE.unpack_from(b, p)[0]
        p += 8
    else:
        raise WireError(f"no branch {u30} in this union")
    f31: Any = {}
    while True:
        n32 = b[p]
        p += 1
        if n32 > 127:
            n32, p = read_long(b, p, n32)
        else:
            n32 = (n32 >> 1) ^ -(n32 & 1)
        if n32 == 0:
            break
        if n32 < 0:
            n32 = -n32
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n32):
            n35 = b[p]
            if n35 & 0x81:
                n35, p = read_length(b, p + 1, n35)
                k34 = b[p : p + n35].decode()
                p += n35
            else:
                n35 = p + 1 + (n35 >> 1)
                k34 = b[p + 1 : n35].decode()
                p = n35
            v33 = DOUBLE.unpack_from(b, p)[0]
            p += 8
            f31[k34] = v33
    u37 = b[p]
    p += 1
    if u37 == 0:
        f36 = None
    elif u37 == 2:
        n38 = b[p]
        if n38 & 0x81:
            n38, p = read_length(b, p + 1, n38)
            f36 = b[p : p + n38].decode()
            p += n38
        else:
            n38 = p + 1 + (n38 >> 1)
            f36 = b[p + 1 : n38].decode()
            p = n38
    else:
        raise WireError(f"no branch {u37} in this union")
    u40 = b[p]
    p += 1
    if u40 == 0:
        f39 = None
    elif u40 == 2:
        n41 = b[p]
        if n41 & 0x81:
            n41, p = read_length(b, p + 1, n41)
            f39 = b[p : p + n41].decode()
            p += n41
        else:
            n41 = p + 1 + (n41 >> 1)
            f39 = b[p + 1 : n41].decode()
            p = n41
    else:
        raise WireError(f"no branch {u40} in this union")
    u43 = b[p]
    p += 1
    if u43 == 0:
        f42 = None
    elif u43 == 2:
        n44 = b[p]
        if n44 & 0x81:
            n44, p = read_length(b, p + 1, n44)
            f42 = b[p : p + n44].decode()
            p += n44
        else:
            n44 = p + 1 + (n44 >> 1)
            f42 = b[p + 1 : n44].decode()
            p = n44
    else:
        raise WireError(f"no branch {u43} in this union")
    u46 = b[p]
    p += 1
    if u46 == 0:
        f45 = None
    elif u46 == 2:
        f45, p = read_VersionRange(b, p)
    else:
        raise WireError(f"no branch {u46} in this union")
    f47, p = read_Diagnostics(b, p)
    f48 = b[p]
    p += 1
    if f48 > 127:
        f48, p = read_long(b, p, f48)
    else:
        f48 = (f48 >> 1) ^ -(f48 & 1)
    u50 = b[p]
    p += 1
    if u50 == 0:
        f49 = None
    elif u50 == 2:
        f49, p = read_LogPosition(b, p)
    else:
        raise WireError(f"no branch {u50} in this union")
    u52 = b[p]
    p += 1
    if u52 == 0:
        f51 = None
    elif u52 == 2:
        f51, p = read_Source(b, p)
    else:
        raise WireError(f"no branch {u52} in this union")
    f53 = b[p]
    p += 1
    if f53 > 127:
        f53, p = read_long(b, p, f53)
    else:
        f53 = (f53 >> 1) ^ -(f53 & 1)
    return r.Trajectory(
        rollout_id=f1,
        attempt_id=f3,
        group_id=f6,
        group_size=f9,
        sample_index=f10,
        mode=f11,
        run_id=f14,
        origin=f17,
        session_id=f19,
        input=f22,
        status=f24,
        triplets=f26,
        final_reward=f29,
        rewards=f31,
        conversations=f36,
        resources_id=f39,
        policy=f42,
        policy_version=f45,
        diagnostics=f47,
        revision=f48,
        supersedes=f49,
        source=f51,
        assembled_at=f53,
    ), p


def write_Triplet(x: r.Triplet, put: Put) -> None:
    b1 = x.prompt_token_ids
    n2 = len(b1)
    put(SMALL[n2] if n2 < LIMIT else long(n2))
    put(b1)
    u3 = x.prompt_prefix
    if u3 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_PromptPrefix(u3, put)
    b4 = x.response_token_ids
    n5 = len(b4)
    put(SMALL[n5] if n5 < LIMIT else long(n5))
    put(b4)
    u6 = x.logprobs
    if u6 is None:
        put(b"\0")
    else:
        put(b"\2")
        b7 = u6
        n8 = len(b7)
        put(SMALL[n8] if n8 < LIMIT else long(n8))
        put(b7)
    u9 = x.reward
    if u9 is None:
        put(b"\0")
    else:
        put(b"\2")
        put(DOUBLE.pack(u9))
    u10 = x.agent_name
    if u10 is None:
        put(b"\0")
    else:
        put(b"\2")
        b11 = u10.encode()
        n12 = len(b11)
        put(SMALL[n12] if n12 < LIMIT else long(n12))
        put(b11)
    u13 = x.response_id
    if u13 is None:
        put(b"\0")
    else:
        put(b"\2")
        b14 = u13.encode()
        n15 = len(b14)
        put(SMALL[n15] if n15 < LIMIT else long(n15))
        put(b14)
    b16 = x.span_id.encode()
    n17 = len(b16)
    put(SMALL[n17] if n17 < LIMIT else long(n17))
    put(b16)
    i18 = x.choice
    put(SMALL[i18] if 0 <= i18 < LIMIT else long(i18))
    b19 = x.model.encode()
    n20 = len(b19)
    put(SMALL[n20] if n20 < LIMIT else long(n20))
    put(b19)
    u21 = x.policy
    if u21 is None:
        put(b"\0")
    else:
        put(b"\2")
        b22 = u21.encode()
        n23 = len(b22)
        put(SMALL[n23] if n23 < LIMIT else long(n23))
        put(b22)
    u24 = x.policy_version
    if u24 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_VersionRange(u24, put)
    u25 = x.sampling
    if u25 is None:
        put(b"\0")
    else:
        put(b"\2")
        write_Sampling(u25, put)
    u26 = x.logprobs_mode
    if u26 is None:
        put(b"\0")
    else:
        put(b"\2")
        b27 = u26.encode()
        n28 = len(b27)
        put(SMALL[n28] if n28 < LIMIT else long(n28))
        put(b27)
    u29 = x.finish_reason
    if u29 is None:
        put(b"\0")
    else:
        put(b"\2")
        b30 = u29.encode()
        n31 = len(b30)
        put(SMALL[n31] if n31 < LIMIT else long(n31))
        put(b30)
    u32 = x.messages
    if u32 is None:
        put(b"\0")
    else:
        put(b"\2")
        b33 = u32.encode()
        n34 = len(b33)
        put(SMALL[n34] if n34 < LIMIT else long(n34))
        put(b33)


def read_Triplet(b: bytes, p: int) -> tuple[r.Triplet, int]:
    n2 = b[p]
    if n2 & 0x81:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2]
        p += n2
    else:
        n2 = p + 1 + (n2 >> 1)
        f1 = b[p + 1 : n2]
        p = n2
    u4 = b[p]
    p += 1
    if u4 == 0:
        f3 = None
    elif u4 == 2:
        f3, p = read_PromptPrefix(b, p)
    else:
        raise WireError(f"no branch {u4} in this union")
    n6 = b[p]
    if n6 & 0x81:
        n6, p = read_length(b, p + 1, n6)
        f5 = b[p : p + n6]
        p += n6
    else:
        n6 = p + 1 + (n6 >> 1)
        f5 = b[p + 1 : n6]
        p = n6
    u8 = b[p]
    p += 1
    if u8 == 0:
        f7 = None
    elif u8 == 2:
        n9 = b[p]
        if n9 & 0x81:
            n9, p = read_length(b, p + 1, n9)
            f7 = b[p : p + n9]
            p += n9
        else:
            n9 = p + 1 + (n9 >> 1)
            f7 = b[p + 1 : n9]
            p = n9
    else:
        raise WireError(f"no branch {u8} in this union")
    u11 = b[p]
    p += 1
    if u11 == 0:
        f10 = None
    elif u11 == 2:
        f10 = DOUBLE.unpack_from(b, p)[0]
        p += 8
    else:
        raise WireError(f"no branch {u11} in this union")
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
    u16 = b[p]
    p += 1
    if u16 == 0:
        f15 = None
    elif u16 == 2:
        n17 = b[p]
        if n17 & 0x81:
            n17, p = read_length(b, p + 1, n17)
            f15 = b[p : p + n17].decode()
            p += n17
        else:
            n17 = p + 1 + (n17 >> 1)
            f15 = b[p + 1 : n17].decode()
            p = n17
    else:
        raise WireError(f"no branch {u16} in this union")
    n19 = b[p]
    if n19 & 0x81:
        n19, p = read_length(b, p + 1, n19)
        f18 = b[p : p + n19].decode()
        p += n19
    else:
        n19 = p + 1 + (n19 >> 1)
        f18 = b[p + 1 : n19].decode()
        p = n19
    f20 = b[p]
    p += 1
    if f20 > 127:
        f20, p = read_long(b, p, f20)
    else:
        f20 = (f20 >> 1) ^ -(f20 & 1)
    n22 = b[p]
    if n22 & 0x81:
        n22, p = read_length(b, p + 1, n22)
        f21 = b[p : p + n22].decode()
        p += n22
    else:
        n22 = p + 1 + (n22 >> 1)
        f21 = b[p + 1 : n22].decode()
        p = n22
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
    u27 = b[p]
    p += 1
    if u27 == 0:
        f26 = None
    elif u27 == 2:
        f26, p = read_VersionRange(b, p)
    else:
        raise WireError(f"no branch {u27} in this union")
    u29 = b[p]
    p += 1
    if u29 == 0:
        f28 = None
    elif u29 == 2:
        f28, p = read_Sampling(b, p)
    else:
        raise WireError(f"no branch {u29} in this union")
    u31 = b[p]
    p += 1
    if u31 == 0:
        f30 = None
    elif u31 == 2:
        n32 = b[p]
        if n32 & 0x81:
            n32, p = read_length(b, p + 1, n32)
            f30 = b[p : p + n32].decode()
            p += n32
        else:
            n32 = p + 1 + (n32 >> 1)
            f30 = b[p + 1 : n32].decode()
            p = n32
    else:
        raise WireError(f"no branch {u31} in this union")
    u34 = b[p]
    p += 1
    if u34 == 0:
        f33 = None
    elif u34 == 2:
        n35 = b[p]
        if n35 & 0x81:
            n35, p = read_length(b, p + 1, n35)
            f33 = b[p : p + n35].decode()
            p += n35
        else:
            n35 = p + 1 + (n35 >> 1)
            f33 = b[p + 1 : n35].decode()
            p = n35
    else:
        raise WireError(f"no branch {u34} in this union")
    u37 = b[p]
    p += 1
    if u37 == 0:
        f36 = None
    elif u37 == 2:
        n38 = b[p]
        if n38 & 0x81:
            n38, p = read_length(b, p + 1, n38)
            f36 = b[p : p + n38].decode()
            p += n38
        else:
            n38 = p + 1 + (n38 >> 1)
            f36 = b[p + 1 : n38].decode()
            p = n38
    else:
        raise WireError(f"no branch {u37} in this union")
    return r.Triplet(
        prompt_token_ids=f1,
        prompt_prefix=f3,
        response_token_ids=f5,
        logprobs=f7,
        reward=f10,
        agent_name=f12,
        response_id=f15,
        span_id=f18,
        choice=f20,
        model=f21,
        policy=f23,
        policy_version=f26,
        sampling=f28,
        logprobs_mode=f30,
        finish_reason=f33,
        messages=f36,
    ), p


def write_PromptPrefix(x: r.PromptPrefix, put: Put) -> None:
    i1 = x.triplet
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.length
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))


def read_PromptPrefix(b: bytes, p: int) -> tuple[r.PromptPrefix, int]:
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
    return r.PromptPrefix(triplet=f1, length=f2), p


def write_Diagnostics(x: r.Diagnostics, put: Put) -> None:
    i1 = x.calls
    put(SMALL[i1] if 0 <= i1 < LIMIT else long(i1))
    i2 = x.kept
    put(SMALL[i2] if 0 <= i2 < LIMIT else long(i2))
    s3 = x.dropped
    if s3:
        n4 = len(s3)
        put(SMALL[n4] if 0 <= n4 < LIMIT else long(n4))
        for k6, v5 in s3.items():
            b7 = k6.encode()
            n8 = len(b7)
            put(SMALL[n8] if n8 < LIMIT else long(n8))
            put(b7)
            i9 = v5
            put(SMALL[i9] if 0 <= i9 < LIMIT else long(i9))
    put(b"\0")


def read_Diagnostics(b: bytes, p: int) -> tuple[r.Diagnostics, int]:
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
    f3: Any = {}
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
            n7 = b[p]
            if n7 & 0x81:
                n7, p = read_length(b, p + 1, n7)
                k6 = b[p : p + n7].decode()
                p += n7
            else:
                n7 = p + 1 + (n7 >> 1)
                k6 = b[p + 1 : n7].decode()
                p = n7
            v5 = b[p]
            p += 1
            if v5 > 127:
                v5, p = read_long(b, p, v5)
            else:
                v5 = (v5 >> 1) ^ -(v5 & 1)
            f3[k6] = v5
    return r.Diagnostics(calls=f1, kept=f2, dropped=f3), p


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


WRITERS: dict[str, Callable[[Any, Put], None]] = {
    "Assembled": write_Assembled,
    "AttemptEvent": write_AttemptEvent,
    "ResourcesUpdate": write_ResourcesUpdate,
    "Reward": write_Reward,
    "RolloutState": write_RolloutState,
    "RunManifest": write_RunManifest,
    "Span": write_Span,
    "Task": write_Task,
    "TrainingStep": write_TrainingStep,
    "Trajectory": write_Trajectory,
    "WorkerState": write_WorkerState,
}
READERS: dict[str, Callable[[bytes, int], tuple[r.Record, int]]] = {
    "Assembled": read_Assembled,
    "AttemptEvent": read_AttemptEvent,
    "ResourcesUpdate": read_ResourcesUpdate,
    "Reward": read_Reward,
    "RolloutState": read_RolloutState,
    "RunManifest": read_RunManifest,
    "Span": read_Span,
    "Task": read_Task,
    "TrainingStep": read_TrainingStep,
    "Trajectory": read_Trajectory,
    "WorkerState": read_WorkerState,
}
