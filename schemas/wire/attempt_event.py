"""The Avro binary coding of a AttemptEvent. Generated from the `.avsc` files."""

from collections.abc import Callable

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    f16 = b[p] == 1
    p += 1
    f17 = b[p] == 1
    p += 1
    u19 = b[p]
    if not u19:
        f18 = None
        p += 1
    elif u19 == 2:
        f18, p = read_TaskFacts(b, p + 1)
    else:
        raise WireError(f"no branch {u19} in this union")
    u21 = b[p]
    if not u21:
        f20 = None
        p += 1
    elif u21 == 2:
        n22 = b[p + 1]
        if not n22 & 0x81:
            q24 = p + 2
            p = q24 + (n22 >> 1)
            f20 = b[q24:p].decode()
        elif not n22 & 1 and (m23 := b[p + 2]) < 128:
            q24 = p + 3
            p = q24 + (n22 >> 1 & 0x3F | m23 << 6)
            f20 = b[q24:p].decode()
        else:
            n22, p = read_length(b, p + 2, n22)
            f20 = b[p : p + n22].decode()
            p += n22
    else:
        raise WireError(f"no branch {u21} in this union")
    f25 = b[p]
    p += 1
    if f25 > 127:
        f25, p = read_long(b, p, f25)
    else:
        f25 = SIGNED[f25]
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
    u32 = b[p]
    if not u32:
        f31 = None
        p += 1
    elif u32 == 2:
        f31, p = read_ErrorInfo(b, p + 1)
    else:
        raise WireError(f"no branch {u32} in this union")
    f33 = b[p]
    p += 1
    if f33 > 127:
        f33, p = read_long(b, p, f33)
    else:
        f33 = SIGNED[f33]
    return r.AttemptEvent(
        rollout_id=f1,
        attempt_id=f5,
        attempt=f10,
        delivery=f11,
        type=f12,
        final=f16,
        complete=f17,
        task=f18,
        lost_reason=f20,
        child_deaths=f25,
        worker_id=f26,
        error=f31,
        at=f33,
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
    if not u2:
        f1 = None
        p += 1
    elif u2 == 2:
        f1 = b[p + 1]
        p += 2
        if f1 > 127:
            f1, p = read_long(b, p, f1)
        else:
            f1 = SIGNED[f1]
    else:
        raise WireError(f"no branch {u2} in this union")
    n4 = b[p]
    if not n4 & 0x81:
        q6 = p + 1
        p = q6 + (n4 >> 1)
        f3 = b[q6:p].decode()
    elif not n4 & 1 and (m5 := b[p + 1]) < 128:
        q6 = p + 2
        p = q6 + (n4 >> 1 & 0x3F | m5 << 6)
        f3 = b[q6:p].decode()
    else:
        n4, p = read_length(b, p + 1, n4)
        f3 = b[p : p + n4].decode()
        p += n4
    u8 = b[p]
    if not u8:
        f7 = None
        p += 1
    elif u8 == 2:
        n9 = b[p + 1]
        if not n9 & 0x81:
            q11 = p + 2
            p = q11 + (n9 >> 1)
            f7 = b[q11:p].decode()
        elif not n9 & 1 and (m10 := b[p + 2]) < 128:
            q11 = p + 3
            p = q11 + (n9 >> 1 & 0x3F | m10 << 6)
            f7 = b[q11:p].decode()
        else:
            n9, p = read_length(b, p + 2, n9)
            f7 = b[p : p + n9].decode()
            p += n9
    else:
        raise WireError(f"no branch {u8} in this union")
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
    f17 = b[p]
    p += 1
    if f17 > 127:
        f17, p = read_long(b, p, f17)
    else:
        f17 = SIGNED[f17]
    f18 = b[p]
    p += 1
    if f18 > 127:
        f18, p = read_long(b, p, f18)
    else:
        f18 = SIGNED[f18]
    u20 = b[p]
    if not u20:
        f19 = None
        p += 1
    elif u20 == 2:
        n21 = b[p + 1]
        if not n21 & 0x81:
            q23 = p + 2
            p = q23 + (n21 >> 1)
            f19 = b[q23:p].decode()
        elif not n21 & 1 and (m22 := b[p + 2]) < 128:
            q23 = p + 3
            p = q23 + (n21 >> 1 & 0x3F | m22 << 6)
            f19 = b[q23:p].decode()
        else:
            n21, p = read_length(b, p + 2, n21)
            f19 = b[p : p + n21].decode()
            p += n21
    else:
        raise WireError(f"no branch {u20} in this union")
    u25 = b[p]
    if not u25:
        f24 = None
        p += 1
    elif u25 == 2:
        n26 = b[p + 1]
        if not n26 & 0x81:
            q28 = p + 2
            p = q28 + (n26 >> 1)
            f24 = b[q28:p].decode()
        elif not n26 & 1 and (m27 := b[p + 2]) < 128:
            q28 = p + 3
            p = q28 + (n26 >> 1 & 0x3F | m27 << 6)
            f24 = b[q28:p].decode()
        else:
            n26, p = read_length(b, p + 2, n26)
            f24 = b[p : p + n26].decode()
            p += n26
    else:
        raise WireError(f"no branch {u25} in this union")
    u30 = b[p]
    if not u30:
        f29 = None
        p += 1
    elif u30 == 2:
        n31 = b[p + 1]
        if not n31 & 0x81:
            q33 = p + 2
            p = q33 + (n31 >> 1)
            f29 = b[q33:p].decode()
        elif not n31 & 1 and (m32 := b[p + 2]) < 128:
            q33 = p + 3
            p = q33 + (n31 >> 1 & 0x3F | m32 << 6)
            f29 = b[q33:p].decode()
        else:
            n31, p = read_length(b, p + 2, n31)
            f29 = b[p : p + n31].decode()
            p += n31
    else:
        raise WireError(f"no branch {u30} in this union")
    n35 = b[p]
    if not n35 & 0x81:
        q37 = p + 1
        p = q37 + (n35 >> 1)
        f34 = b[q37:p].decode()
    elif not n35 & 1 and (m36 := b[p + 1]) < 128:
        q37 = p + 2
        p = q37 + (n35 >> 1 & 0x3F | m36 << 6)
        f34 = b[q37:p].decode()
    else:
        n35, p = read_length(b, p + 1, n35)
        f34 = b[p : p + n35].decode()
        p += n35
    return r.TaskFacts(
        offset=f1,
        origin=f3,
        session_id=f7,
        group_id=f12,
        group_size=f17,
        sample_index=f18,
        mode=f19,
        run_id=f24,
        resources_id=f29,
        input=f34,
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


WRITE = write_AttemptEvent
READ = read_AttemptEvent
