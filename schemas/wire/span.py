"""The Avro binary coding of a Span. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLES, LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    b37 = x.rest.encode()
    n38 = len(b37)
    put(SMALL[n38] if n38 < LIMIT else long(n38))
    put(b37)


def read_Span(b: bytes, p: int) -> tuple[r.Span, int]:
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
    u11 = b[p]
    if not u11:
        f10 = None
        p += 1
    elif u11 == 2:
        n12 = b[p + 1]
        if not n12 & 0x81:
            q14 = p + 2
            p = q14 + (n12 >> 1)
            f10 = b[q14:p].decode()
        elif not n12 & 1 and (m13 := b[p + 2]) < 128:
            q14 = p + 3
            p = q14 + (n12 >> 1 & 0x3F | m13 << 6)
            f10 = b[q14:p].decode()
        else:
            n12, p = read_length(b, p + 2, n12)
            f10 = b[p : p + n12].decode()
            p += n12
    else:
        raise WireError(f"no branch {u11} in this union")
    u16 = b[p]
    if not u16:
        f15 = None
        p += 1
    elif u16 == 2:
        f15 = b[p + 1]
        p += 2
        if f15 > 127:
            f15, p = read_long(b, p, f15)
        else:
            f15 = SIGNED[f15]
    else:
        raise WireError(f"no branch {u16} in this union")
    n18 = b[p]
    if not n18 & 0x81:
        q20 = p + 1
        p = q20 + (n18 >> 1)
        f17 = b[q20:p].decode()
    elif not n18 & 1 and (m19 := b[p + 1]) < 128:
        q20 = p + 2
        p = q20 + (n18 >> 1 & 0x3F | m19 << 6)
        f17 = b[q20:p].decode()
    else:
        n18, p = read_length(b, p + 1, n18)
        f17 = b[p : p + n18].decode()
        p += n18
    n22 = b[p]
    if not n22 & 0x81:
        q24 = p + 1
        p = q24 + (n22 >> 1)
        f21 = b[q24:p].decode()
    elif not n22 & 1 and (m23 := b[p + 1]) < 128:
        q24 = p + 2
        p = q24 + (n22 >> 1 & 0x3F | m23 << 6)
        f21 = b[q24:p].decode()
    else:
        n22, p = read_length(b, p + 1, n22)
        f21 = b[p : p + n22].decode()
        p += n22
    n26 = b[p]
    if not n26 & 0x81:
        q28 = p + 1
        p = q28 + (n26 >> 1)
        f25 = b[q28:p].decode()
    elif not n26 & 1 and (m27 := b[p + 1]) < 128:
        q28 = p + 2
        p = q28 + (n26 >> 1 & 0x3F | m27 << 6)
        f25 = b[q28:p].decode()
    else:
        n26, p = read_length(b, p + 1, n26)
        f25 = b[p : p + n26].decode()
        p += n26
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
    n39 = b[p]
    if not n39 & 0x81:
        q41 = p + 1
        p = q41 + (n39 >> 1)
        f38 = b[q41:p].decode()
    elif not n39 & 1 and (m40 := b[p + 1]) < 128:
        q41 = p + 2
        p = q41 + (n39 >> 1 & 0x3F | m40 << 6)
        f38 = b[q41:p].decode()
    else:
        n39, p = read_length(b, p + 1, n39)
        f38 = b[p : p + n39].decode()
        p += n39
    f42, p = read_SpanStatus(b, p)
    f43 = b[p]
    p += 1
    if f43 > 127:
        f43, p = read_long(b, p, f43)
    else:
        f43 = SIGNED[f43]
    f44 = b[p]
    p += 1
    if f44 > 127:
        f44, p = read_long(b, p, f44)
    else:
        f44 = SIGNED[f44]
    n46 = b[p]
    if not n46 & 0x81:
        q48 = p + 1
        p = q48 + (n46 >> 1)
        f45 = b[q48:p].decode()
    elif not n46 & 1 and (m47 := b[p + 1]) < 128:
        q48 = p + 2
        p = q48 + (n46 >> 1 & 0x3F | m47 << 6)
        f45 = b[q48:p].decode()
    else:
        n46, p = read_length(b, p + 1, n46)
        f45 = b[p : p + n46].decode()
        p += n46
    n50 = b[p]
    if not n50 & 0x81:
        q52 = p + 1
        p = q52 + (n50 >> 1)
        f49 = b[q52:p].decode()
    elif not n50 & 1 and (m51 := b[p + 1]) < 128:
        q52 = p + 2
        p = q52 + (n50 >> 1 & 0x3F | m51 << 6)
        f49 = b[q52:p].decode()
    else:
        n50, p = read_length(b, p + 1, n50)
        f49 = b[p : p + n50].decode()
        p += n50
    n54 = b[p]
    if not n54 & 0x81:
        q56 = p + 1
        p = q56 + (n54 >> 1)
        f53 = b[q56:p].decode()
    elif not n54 & 1 and (m55 := b[p + 1]) < 128:
        q56 = p + 2
        p = q56 + (n54 >> 1 & 0x3F | m55 << 6)
        f53 = b[q56:p].decode()
    else:
        n54, p = read_length(b, p + 1, n54)
        f53 = b[p : p + n54].decode()
        p += n54
    n58 = b[p]
    if not n58 & 0x81:
        q60 = p + 1
        p = q60 + (n58 >> 1)
        f57 = b[q60:p].decode()
    elif not n58 & 1 and (m59 := b[p + 1]) < 128:
        q60 = p + 2
        p = q60 + (n58 >> 1 & 0x3F | m59 << 6)
        f57 = b[q60:p].decode()
    else:
        n58, p = read_length(b, p + 1, n58)
        f57 = b[p : p + n58].decode()
        p += n58
    n62 = b[p]
    if not n62 & 0x81:
        q64 = p + 1
        p = q64 + (n62 >> 1)
        f61 = b[q64:p].decode()
    elif not n62 & 1 and (m63 := b[p + 1]) < 128:
        q64 = p + 2
        p = q64 + (n62 >> 1 & 0x3F | m63 << 6)
        f61 = b[q64:p].decode()
    else:
        n62, p = read_length(b, p + 1, n62)
        f61 = b[p : p + n62].decode()
        p += n62
    u66 = b[p]
    if not u66:
        f65 = None
        p += 1
    elif u66 == 2:
        f65, p = read_ModelCall(b, p + 1)
    else:
        raise WireError(f"no branch {u66} in this union")
    n68 = b[p]
    if not n68 & 0x81:
        q70 = p + 1
        p = q70 + (n68 >> 1)
        f67 = b[q70:p].decode()
    elif not n68 & 1 and (m69 := b[p + 1]) < 128:
        q70 = p + 2
        p = q70 + (n68 >> 1 & 0x3F | m69 << 6)
        f67 = b[q70:p].decode()
    else:
        n68, p = read_length(b, p + 1, n68)
        f67 = b[p : p + n68].decode()
        p += n68
    return r.Span(
        rollout_id=f1,
        attempt_id=f5,
        session_id=f10,
        sequence=f15,
        source=f17,
        trace_id=f21,
        span_id=f25,
        parent_id=f29,
        name=f34,
        kind=f38,
        status=f42,
        start=f43,
        end=f44,
        attributes=f45,
        events=f49,
        links=f53,
        resource=f57,
        scope=f61,
        llm=f65,
        rest=f67,
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
    return r.SpanStatus(code=f1, message=f5), p


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
    u11 = b[p]
    if not u11:
        f10 = None
        p += 1
    elif u11 == 2:
        f10, p = read_VersionRange(b, p + 1)
    else:
        raise WireError(f"no branch {u11} in this union")
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
        n19 = b[p + 1]
        if not n19 & 0x81:
            q21 = p + 2
            p = q21 + (n19 >> 1)
            f17 = b[q21:p].decode()
        elif not n19 & 1 and (m20 := b[p + 2]) < 128:
            q21 = p + 3
            p = q21 + (n19 >> 1 & 0x3F | m20 << 6)
            f17 = b[q21:p].decode()
        else:
            n19, p = read_length(b, p + 2, n19)
            f17 = b[p : p + n19].decode()
            p += n19
    else:
        raise WireError(f"no branch {u18} in this union")
    n23 = b[p]
    if not n23 & 0x81:
        q25 = p + 1
        p = q25 + (n23 >> 1)
        f22 = b[q25:p]
    elif not n23 & 1 and (m24 := b[p + 1]) < 128:
        q25 = p + 2
        p = q25 + (n23 >> 1 & 0x3F | m24 << 6)
        f22 = b[q25:p]
    else:
        n23, p = read_length(b, p + 1, n23)
        f22 = b[p : p + n23]
        p += n23
    f26: Any = []
    while True:
        n27 = b[p]
        p += 1
        if n27 > 127:
            n27, p = read_long(b, p, n27)
        else:
            n27 = SIGNED[n27]
        if n27 == 0:
            break
        if n27 < 0:
            n27 = -n27
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n27):
            v28, p = read_Choice(b, p)
            f26.append(v28)
    u30 = b[p]
    if not u30:
        f29 = None
        p += 1
    elif u30 == 2:
        f29, p = read_Sampling(b, p + 1)
    else:
        raise WireError(f"no branch {u30} in this union")
    u32 = b[p]
    if not u32:
        f31 = None
        p += 1
    elif u32 == 2:
        n33 = b[p + 1]
        if not n33 & 0x81:
            q35 = p + 2
            p = q35 + (n33 >> 1)
            f31 = b[q35:p].decode()
        elif not n33 & 1 and (m34 := b[p + 2]) < 128:
            q35 = p + 3
            p = q35 + (n33 >> 1 & 0x3F | m34 << 6)
            f31 = b[q35:p].decode()
        else:
            n33, p = read_length(b, p + 2, n33)
            f31 = b[p : p + n33].decode()
            p += n33
    else:
        raise WireError(f"no branch {u32} in this union")
    u37 = b[p]
    if not u37:
        f36 = None
        p += 1
    elif u37 == 2:
        n38 = b[p + 1]
        if not n38 & 0x81:
            q40 = p + 2
            p = q40 + (n38 >> 1)
            f36 = b[q40:p].decode()
        elif not n38 & 1 and (m39 := b[p + 2]) < 128:
            q40 = p + 3
            p = q40 + (n38 >> 1 & 0x3F | m39 << 6)
            f36 = b[q40:p].decode()
        else:
            n38, p = read_length(b, p + 2, n38)
            f36 = b[p : p + n38].decode()
            p += n38
    else:
        raise WireError(f"no branch {u37} in this union")
    u42 = b[p]
    if not u42:
        f41 = None
        p += 1
    elif u42 == 2:
        n43 = b[p + 1]
        if not n43 & 0x81:
            q45 = p + 2
            p = q45 + (n43 >> 1)
            f41 = b[q45:p].decode()
        elif not n43 & 1 and (m44 := b[p + 2]) < 128:
            q45 = p + 3
            p = q45 + (n43 >> 1 & 0x3F | m44 << 6)
            f41 = b[q45:p].decode()
        else:
            n43, p = read_length(b, p + 2, n43)
            f41 = b[p : p + n43].decode()
            p += n43
    else:
        raise WireError(f"no branch {u42} in this union")
    f46 = b[p]
    p += 1
    if f46 > 127:
        f46, p = read_long(b, p, f46)
    else:
        f46 = SIGNED[f46]
    u48 = b[p]
    if not u48:
        f47 = None
        p += 1
    elif u48 == 2:
        f47, p = read_Usage(b, p + 1)
    else:
        raise WireError(f"no branch {u48} in this union")
    u50 = b[p]
    if not u50:
        f49 = None
        p += 1
    elif u50 == 2:
        f49 = b[p + 1]
        p += 2
        if f49 > 127:
            f49, p = read_long(b, p, f49)
        else:
            f49 = SIGNED[f49]
    else:
        raise WireError(f"no branch {u50} in this union")
    u52 = b[p]
    if not u52:
        f51 = None
        p += 1
    elif u52 == 2:
        f51, p = read_ErrorInfo(b, p + 1)
    else:
        raise WireError(f"no branch {u52} in this union")
    return r.ModelCall(
        model=f1,
        policy=f5,
        policy_version=f10,
        weights_id=f12,
        response_id=f17,
        prompt_token_ids=f22,
        choices=f26,
        sampling=f29,
        logprobs_mode=f31,
        request=f36,
        response=f41,
        retry_count=f46,
        usage=f47,
        http_status=f49,
        error=f51,
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
        f1 = SIGNED[f1]
    n3 = b[p]
    if not n3 & 0x81:
        q5 = p + 1
        p = q5 + (n3 >> 1)
        f2 = b[q5:p]
    elif not n3 & 1 and (m4 := b[p + 1]) < 128:
        q5 = p + 2
        p = q5 + (n3 >> 1 & 0x3F | m4 << 6)
        f2 = b[q5:p]
    else:
        n3, p = read_length(b, p + 1, n3)
        f2 = b[p : p + n3]
        p += n3
    u7 = b[p]
    if not u7:
        f6 = None
        p += 1
    elif u7 == 2:
        n8 = b[p + 1]
        if not n8 & 0x81:
            q10 = p + 2
            p = q10 + (n8 >> 1)
            f6 = b[q10:p]
        elif not n8 & 1 and (m9 := b[p + 2]) < 128:
            q10 = p + 3
            p = q10 + (n8 >> 1 & 0x3F | m9 << 6)
            f6 = b[q10:p]
        else:
            n8, p = read_length(b, p + 2, n8)
            f6 = b[p : p + n8]
            p += n8
    else:
        raise WireError(f"no branch {u7} in this union")
    u12 = b[p]
    if not u12:
        f11 = None
        p += 1
    elif u12 == 2:
        n13 = b[p + 1]
        if not n13 & 0x81:
            q15 = p + 2
            p = q15 + (n13 >> 1)
            f11 = b[q15:p].decode()
        elif not n13 & 1 and (m14 := b[p + 2]) < 128:
            q15 = p + 3
            p = q15 + (n13 >> 1 & 0x3F | m14 << 6)
            f11 = b[q15:p].decode()
        else:
            n13, p = read_length(b, p + 2, n13)
            f11 = b[p : p + n13].decode()
            p += n13
    else:
        raise WireError(f"no branch {u12} in this union")
    u17 = b[p]
    if not u17:
        f16 = None
        p += 1
    elif u17 == 2:
        n18 = b[p + 1]
        if not n18 & 0x81:
            q20 = p + 2
            p = q20 + (n18 >> 1)
            f16 = b[q20:p].decode()
        elif not n18 & 1 and (m19 := b[p + 2]) < 128:
            q20 = p + 3
            p = q20 + (n18 >> 1 & 0x3F | m19 << 6)
            f16 = b[q20:p].decode()
        else:
            n18, p = read_length(b, p + 2, n18)
            f16 = b[p : p + n18].decode()
            p += n18
    else:
        raise WireError(f"no branch {u17} in this union")
    n22 = b[p]
    if not n22 & 0x81:
        q24 = p + 1
        p = q24 + (n22 >> 1)
        f21 = b[q24:p].decode()
    elif not n22 & 1 and (m23 := b[p + 1]) < 128:
        q24 = p + 2
        p = q24 + (n22 >> 1 & 0x3F | m23 << 6)
        f21 = b[q24:p].decode()
    else:
        n22, p = read_length(b, p + 1, n22)
        f21 = b[p : p + n22].decode()
        p += n22
    return r.Choice(index=f1, response_token_ids=f2, logprobs=f6, finish_reason=f11, text=f16, tool_calls=f21), p


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
        f3 = SIGNED[f3]
    f4, f5, f6, f7 = DOUBLES[4].unpack_from(b, p)
    p += 32
    u9 = b[p]
    if not u9:
        f8 = None
        p += 1
    elif u9 == 2:
        n10 = b[p + 1]
        if not n10 & 0x81:
            q12 = p + 2
            p = q12 + (n10 >> 1)
            f8 = b[q12:p].decode()
        elif not n10 & 1 and (m11 := b[p + 2]) < 128:
            q12 = p + 3
            p = q12 + (n10 >> 1 & 0x3F | m11 << 6)
            f8 = b[q12:p].decode()
        else:
            n10, p = read_length(b, p + 2, n10)
            f8 = b[p : p + n10].decode()
            p += n10
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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


WRITE = write_Span
READ = read_Span
