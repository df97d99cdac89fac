"""The Avro binary coding of a ResourcesUpdate. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import LIMIT, SMALL, WireError, long, read_length, read_long

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


WRITE = write_ResourcesUpdate
READ = read_ResourcesUpdate
