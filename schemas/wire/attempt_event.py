"""The Avro binary coding of a AttemptEvent. Generated from the `.avsc` files."""

from collections.abc import Callable

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


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


WRITE = write_AttemptEvent
READ = read_AttemptEvent
