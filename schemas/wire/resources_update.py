"""The Avro binary coding of a ResourcesUpdate. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


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
    f9 = b[p]
    p += 1
    if f9 > 127:
        f9, p = read_long(b, p, f9)
    else:
        f9 = SIGNED[f9]
    f10: Any = {}
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
            n14 = b[p]
            if not n14 & 0x81:
                q16 = p + 1
                p = q16 + (n14 >> 1)
                k13 = b[q16:p].decode()
            elif not n14 & 1 and (m15 := b[p + 1]) < 128:
                q16 = p + 2
                p = q16 + (n14 >> 1 & 0x3F | m15 << 6)
                k13 = b[q16:p].decode()
            else:
                n14, p = read_length(b, p + 1, n14)
                k13 = b[p : p + n14].decode()
                p += n14
            u17 = b[p]
            if u17 == 0:
                v12, p = read_LLM(b, p + 1)
            elif u17 == 2:
                v12, p = read_ProxyLLM(b, p + 1)
            elif u17 == 4:
                v12, p = read_PromptTemplate(b, p + 1)
            elif u17 == 6:
                v12, p = read_Weights(b, p + 1)
            else:
                raise WireError(f"no branch {u17} in this union")
            f10[k13] = v12
    u19 = b[p]
    if not u19:
        f18 = None
        p += 1
    elif u19 == 2:
        n20 = b[p + 1]
        if not n20 & 0x81:
            q22 = p + 2
            p = q22 + (n20 >> 1)
            f18 = b[q22:p].decode()
        elif not n20 & 1 and (m21 := b[p + 2]) < 128:
            q22 = p + 3
            p = q22 + (n20 >> 1 & 0x3F | m21 << 6)
            f18 = b[q22:p].decode()
        else:
            n20, p = read_length(b, p + 2, n20)
            f18 = b[p : p + n20].decode()
            p += n20
    else:
        raise WireError(f"no branch {u19} in this union")
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
    f25 = b[p]
    p += 1
    if f25 > 127:
        f25, p = read_long(b, p, f25)
    else:
        f25 = SIGNED[f25]
    return r.ResourcesUpdate(
        resources_id=f1, name=f5, version=f9, resources=f10, run_id=f18, step=f23, created_at=f25
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
    return r.LLM(endpoint=f1, model=f5, api_key_env=f9, sampling_parameters=f14), p


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
    return r.ProxyLLM(endpoint=f1, model=f5, api_key_env=f9, sampling_parameters=f14), p


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
    return r.PromptTemplate(template=f1, engine=f5), p


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


WRITE = write_ResourcesUpdate
READ = read_ResourcesUpdate
