"""The Avro binary coding of a Trajectory. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, DOUBLES, LIMIT, SMALL, WireError, long, read_length, read_long

Put = Callable[[bytes], object]


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


WRITE = write_Trajectory
READ = read_Trajectory
