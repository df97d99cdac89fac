"""The Avro binary coding of a Span. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLES, LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


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


WRITE = write_Span
READ = read_Span
