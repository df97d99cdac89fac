"""The Avro binary coding of a Trajectory. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import DOUBLE, DOUBLES, LIMIT, SIGNED, SMALL, WireError, long, read_length, read_long

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
    f15 = b[p]
    p += 1
    if f15 > 127:
        f15, p = read_long(b, p, f15)
    else:
        f15 = SIGNED[f15]
    f16 = b[p]
    p += 1
    if f16 > 127:
        f16, p = read_long(b, p, f16)
    else:
        f16 = SIGNED[f16]
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
    n28 = b[p]
    if not n28 & 0x81:
        q30 = p + 1
        p = q30 + (n28 >> 1)
        f27 = b[q30:p].decode()
    elif not n28 & 1 and (m29 := b[p + 1]) < 128:
        q30 = p + 2
        p = q30 + (n28 >> 1 & 0x3F | m29 << 6)
        f27 = b[q30:p].decode()
    else:
        n28, p = read_length(b, p + 1, n28)
        f27 = b[p : p + n28].decode()
        p += n28
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
    n37 = b[p]
    if not n37 & 0x81:
        q39 = p + 1
        p = q39 + (n37 >> 1)
        f36 = b[q39:p].decode()
    elif not n37 & 1 and (m38 := b[p + 1]) < 128:
        q39 = p + 2
        p = q39 + (n37 >> 1 & 0x3F | m38 << 6)
        f36 = b[q39:p].decode()
    else:
        n37, p = read_length(b, p + 1, n37)
        f36 = b[p : p + n37].decode()
        p += n37
    n41 = b[p]
    if not n41 & 0x81:
        q43 = p + 1
        p = q43 + (n41 >> 1)
        f40 = b[q43:p].decode()
    elif not n41 & 1 and (m42 := b[p + 1]) < 128:
        q43 = p + 2
        p = q43 + (n41 >> 1 & 0x3F | m42 << 6)
        f40 = b[q43:p].decode()
    else:
        n41, p = read_length(b, p + 1, n41)
        f40 = b[p : p + n41].decode()
        p += n41
    f44: Any = []
    while True:
        n45 = b[p]
        p += 1
        if n45 > 127:
            n45, p = read_long(b, p, n45)
        else:
            n45 = SIGNED[n45]
        if n45 == 0:
            break
        if n45 < 0:
            n45 = -n45
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n45):
            v46, p = read_Triplet(b, p)
            f44.append(v46)
    u48 = b[p]
    if not u48:
        f47 = None
        p += 1
    elif u48 == 2:
        f47 = DOUBLE.unpack_from(b, p + 1)[0]
        p += 9
    else:
        raise WireError(f"no branch {u48} in this union")
    f49: Any = {}
    while True:
        n50 = b[p]
        p += 1
        if n50 > 127:
            n50, p = read_long(b, p, n50)
        else:
            n50 = SIGNED[n50]
        if n50 == 0:
            break
        if n50 < 0:
            n50 = -n50
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n50):
            n53 = b[p]
            if not n53 & 0x81:
                q55 = p + 1
                p = q55 + (n53 >> 1)
                k52 = b[q55:p].decode()
            elif not n53 & 1 and (m54 := b[p + 1]) < 128:
                q55 = p + 2
                p = q55 + (n53 >> 1 & 0x3F | m54 << 6)
                k52 = b[q55:p].decode()
            else:
                n53, p = read_length(b, p + 1, n53)
                k52 = b[p : p + n53].decode()
                p += n53
            v51 = DOUBLE.unpack_from(b, p)[0]
            p += 8
            f49[k52] = v51
    u57 = b[p]
    if not u57:
        f56 = None
        p += 1
    elif u57 == 2:
        n58 = b[p + 1]
        if not n58 & 0x81:
            q60 = p + 2
            p = q60 + (n58 >> 1)
            f56 = b[q60:p].decode()
        elif not n58 & 1 and (m59 := b[p + 2]) < 128:
            q60 = p + 3
            p = q60 + (n58 >> 1 & 0x3F | m59 << 6)
            f56 = b[q60:p].decode()
        else:
            n58, p = read_length(b, p + 2, n58)
            f56 = b[p : p + n58].decode()
            p += n58
    else:
        raise WireError(f"no branch {u57} in this union")
    u62 = b[p]
    if not u62:
        f61 = None
        p += 1
    elif u62 == 2:
        n63 = b[p + 1]
        if not n63 & 0x81:
            q65 = p + 2
            p = q65 + (n63 >> 1)
            f61 = b[q65:p].decode()
        elif not n63 & 1 and (m64 := b[p + 2]) < 128:
            q65 = p + 3
            p = q65 + (n63 >> 1 & 0x3F | m64 << 6)
            f61 = b[q65:p].decode()
        else:
            n63, p = read_length(b, p + 2, n63)
            f61 = b[p : p + n63].decode()
            p += n63
    else:
        raise WireError(f"no branch {u62} in this union")
    u67 = b[p]
    if not u67:
        f66 = None
        p += 1
    elif u67 == 2:
        n68 = b[p + 1]
        if not n68 & 0x81:
            q70 = p + 2
            p = q70 + (n68 >> 1)
            f66 = b[q70:p].decode()
        elif not n68 & 1 and (m69 := b[p + 2]) < 128:
            q70 = p + 3
            p = q70 + (n68 >> 1 & 0x3F | m69 << 6)
            f66 = b[q70:p].decode()
        else:
            n68, p = read_length(b, p + 2, n68)
            f66 = b[p : p + n68].decode()
            p += n68
    else:
        raise WireError(f"no branch {u67} in this union")
    u72 = b[p]
    if not u72:
        f71 = None
        p += 1
    elif u72 == 2:
        f71, p = read_VersionRange(b, p + 1)
    else:
        raise WireError(f"no branch {u72} in this union")
    f73, p = read_Diagnostics(b, p)
    f74 = b[p]
    p += 1
    if f74 > 127:
        f74, p = read_long(b, p, f74)
    else:
        f74 = SIGNED[f74]
    u76 = b[p]
    if not u76:
        f75 = None
        p += 1
    elif u76 == 2:
        f75, p = read_LogPosition(b, p + 1)
    else:
        raise WireError(f"no branch {u76} in this union")
    u78 = b[p]
    if not u78:
        f77 = None
        p += 1
    elif u78 == 2:
        f77, p = read_Source(b, p + 1)
    else:
        raise WireError(f"no branch {u78} in this union")
    f79 = b[p]
    p += 1
    if f79 > 127:
        f79, p = read_long(b, p, f79)
    else:
        f79 = SIGNED[f79]
    return r.Trajectory(
        rollout_id=f1,
        attempt_id=f5,
        group_id=f10,
        group_size=f15,
        sample_index=f16,
        mode=f17,
        run_id=f22,
        origin=f27,
        session_id=f31,
        input=f36,
        status=f40,
        triplets=f44,
        final_reward=f47,
        rewards=f49,
        conversations=f56,
        resources_id=f61,
        policy=f66,
        policy_version=f71,
        diagnostics=f73,
        revision=f74,
        supersedes=f75,
        source=f77,
        assembled_at=f79,
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
    if not n2 & 0x81:
        q4 = p + 1
        p = q4 + (n2 >> 1)
        f1 = b[q4:p]
    elif not n2 & 1 and (m3 := b[p + 1]) < 128:
        q4 = p + 2
        p = q4 + (n2 >> 1 & 0x3F | m3 << 6)
        f1 = b[q4:p]
    else:
        n2, p = read_length(b, p + 1, n2)
        f1 = b[p : p + n2]
        p += n2
    u6 = b[p]
    if not u6:
        f5 = None
        p += 1
    elif u6 == 2:
        f5, p = read_PromptPrefix(b, p + 1)
    else:
        raise WireError(f"no branch {u6} in this union")
    n8 = b[p]
    if not n8 & 0x81:
        q10 = p + 1
        p = q10 + (n8 >> 1)
        f7 = b[q10:p]
    elif not n8 & 1 and (m9 := b[p + 1]) < 128:
        q10 = p + 2
        p = q10 + (n8 >> 1 & 0x3F | m9 << 6)
        f7 = b[q10:p]
    else:
        n8, p = read_length(b, p + 1, n8)
        f7 = b[p : p + n8]
        p += n8
    u12 = b[p]
    if not u12:
        f11 = None
        p += 1
    elif u12 == 2:
        n13 = b[p + 1]
        if not n13 & 0x81:
            q15 = p + 2
            p = q15 + (n13 >> 1)
            f11 = b[q15:p]
        elif not n13 & 1 and (m14 := b[p + 2]) < 128:
            q15 = p + 3
            p = q15 + (n13 >> 1 & 0x3F | m14 << 6)
            f11 = b[q15:p]
        else:
            n13, p = read_length(b, p + 2, n13)
            f11 = b[p : p + n13]
            p += n13
    else:
        raise WireError(f"no branch {u12} in this union")
    u17 = b[p]
    if not u17:
        f16 = None
        p += 1
    elif u17 == 2:
        f16 = DOUBLE.unpack_from(b, p + 1)[0]
        p += 9
    else:
        raise WireError(f"no branch {u17} in this union")
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
        n25 = b[p + 1]
        if not n25 & 0x81:
            q27 = p + 2
            p = q27 + (n25 >> 1)
            f23 = b[q27:p].decode()
        elif not n25 & 1 and (m26 := b[p + 2]) < 128:
            q27 = p + 3
            p = q27 + (n25 >> 1 & 0x3F | m26 << 6)
            f23 = b[q27:p].decode()
        else:
            n25, p = read_length(b, p + 2, n25)
            f23 = b[p : p + n25].decode()
            p += n25
    else:
        raise WireError(f"no branch {u24} in this union")
    n29 = b[p]
    if not n29 & 0x81:
        q31 = p + 1
        p = q31 + (n29 >> 1)
        f28 = b[q31:p].decode()
    elif not n29 & 1 and (m30 := b[p + 1]) < 128:
        q31 = p + 2
        p = q31 + (n29 >> 1 & 0x3F | m30 << 6)
        f28 = b[q31:p].decode()
    else:
        n29, p = read_length(b, p + 1, n29)
        f28 = b[p : p + n29].decode()
        p += n29
    f32 = b[p]
    p += 1
    if f32 > 127:
        f32, p = read_long(b, p, f32)
    else:
        f32 = SIGNED[f32]
    n34 = b[p]
    if not n34 & 0x81:
        q36 = p + 1
        p = q36 + (n34 >> 1)
        f33 = b[q36:p].decode()
    elif not n34 & 1 and (m35 := b[p + 1]) < 128:
        q36 = p + 2
        p = q36 + (n34 >> 1 & 0x3F | m35 << 6)
        f33 = b[q36:p].decode()
    else:
        n34, p = read_length(b, p + 1, n34)
        f33 = b[p : p + n34].decode()
        p += n34
    u38 = b[p]
    if not u38:
        f37 = None
        p += 1
    elif u38 == 2:
        n39 = b[p + 1]
        if not n39 & 0x81:
            q41 = p + 2
            p = q41 + (n39 >> 1)
            f37 = b[q41:p].decode()
        elif not n39 & 1 and (m40 := b[p + 2]) < 128:
            q41 = p + 3
            p = q41 + (n39 >> 1 & 0x3F | m40 << 6)
            f37 = b[q41:p].decode()
        else:
            n39, p = read_length(b, p + 2, n39)
            f37 = b[p : p + n39].decode()
            p += n39
    else:
        raise WireError(f"no branch {u38} in this union")
    u43 = b[p]
    if not u43:
        f42 = None
        p += 1
    elif u43 == 2:
        f42, p = read_VersionRange(b, p + 1)
    else:
        raise WireError(f"no branch {u43} in this union")
    u45 = b[p]
    if not u45:
        f44 = None
        p += 1
    elif u45 == 2:
        f44, p = read_Sampling(b, p + 1)
    else:
        raise WireError(f"no branch {u45} in this union")
    u47 = b[p]
    if not u47:
        f46 = None
        p += 1
    elif u47 == 2:
        n48 = b[p + 1]
        if not n48 & 0x81:
            q50 = p + 2
            p = q50 + (n48 >> 1)
            f46 = b[q50:p].decode()
        elif not n48 & 1 and (m49 := b[p + 2]) < 128:
            q50 = p + 3
            p = q50 + (n48 >> 1 & 0x3F | m49 << 6)
            f46 = b[q50:p].decode()
        else:
            n48, p = read_length(b, p + 2, n48)
            f46 = b[p : p + n48].decode()
            p += n48
    else:
        raise WireError(f"no branch {u47} in this union")
    u52 = b[p]
    if not u52:
        f51 = None
        p += 1
    elif u52 == 2:
        n53 = b[p + 1]
        if not n53 & 0x81:
            q55 = p + 2
            p = q55 + (n53 >> 1)
            f51 = b[q55:p].decode()
        elif not n53 & 1 and (m54 := b[p + 2]) < 128:
            q55 = p + 3
            p = q55 + (n53 >> 1 & 0x3F | m54 << 6)
            f51 = b[q55:p].decode()
        else:
            n53, p = read_length(b, p + 2, n53)
            f51 = b[p : p + n53].decode()
            p += n53
    else:
        raise WireError(f"no branch {u52} in this union")
    u57 = b[p]
    if not u57:
        f56 = None
        p += 1
    elif u57 == 2:
        n58 = b[p + 1]
        if not n58 & 0x81:
            q60 = p + 2
            p = q60 + (n58 >> 1)
            f56 = b[q60:p].decode()
        elif not n58 & 1 and (m59 := b[p + 2]) < 128:
            q60 = p + 3
            p = q60 + (n58 >> 1 & 0x3F | m59 << 6)
            f56 = b[q60:p].decode()
        else:
            n58, p = read_length(b, p + 2, n58)
            f56 = b[p : p + n58].decode()
            p += n58
    else:
        raise WireError(f"no branch {u57} in this union")
    return r.Triplet(
        prompt_token_ids=f1,
        prompt_prefix=f5,
        response_token_ids=f7,
        logprobs=f11,
        reward=f16,
        agent_name=f18,
        response_id=f23,
        span_id=f28,
        choice=f32,
        model=f33,
        policy=f37,
        policy_version=f42,
        sampling=f44,
        logprobs_mode=f46,
        finish_reason=f51,
        messages=f56,
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
    f3: Any = {}
    while True:
        n4 = b[p]
        p += 1
        if n4 > 127:
            n4, p = read_long(b, p, n4)
        else:
            n4 = SIGNED[n4]
        if n4 == 0:
            break
        if n4 < 0:
            n4 = -n4
            _, p = read_long(b, p + 1, b[p])
        for _ in range(n4):
            n7 = b[p]
            if not n7 & 0x81:
                q9 = p + 1
                p = q9 + (n7 >> 1)
                k6 = b[q9:p].decode()
            elif not n7 & 1 and (m8 := b[p + 1]) < 128:
                q9 = p + 2
                p = q9 + (n7 >> 1 & 0x3F | m8 << 6)
                k6 = b[q9:p].decode()
            else:
                n7, p = read_length(b, p + 1, n7)
                k6 = b[p : p + n7].decode()
                p += n7
            v5 = b[p]
            p += 1
            if v5 > 127:
                v5, p = read_long(b, p, v5)
            else:
                v5 = SIGNED[v5]
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
        f1 = SIGNED[f1]
    f2 = b[p]
    p += 1
    if f2 > 127:
        f2, p = read_long(b, p, f2)
    else:
        f2 = SIGNED[f2]
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
    n7 = b[p]
    if not n7 & 0x81:
        q9 = p + 1
        p = q9 + (n7 >> 1)
        f6 = b[q9:p]
    elif not n7 & 1 and (m8 := b[p + 1]) < 128:
        q9 = p + 2
        p = q9 + (n7 >> 1 & 0x3F | m8 << 6)
        f6 = b[q9:p]
    else:
        n7, p = read_length(b, p + 1, n7)
        f6 = b[p : p + n7]
        p += n7
    n11 = b[p]
    if not n11 & 0x81:
        q13 = p + 1
        p = q13 + (n11 >> 1)
        f10 = b[q13:p]
    elif not n11 & 1 and (m12 := b[p + 1]) < 128:
        q13 = p + 2
        p = q13 + (n11 >> 1 & 0x3F | m12 << 6)
        f10 = b[q13:p]
    else:
        n11, p = read_length(b, p + 1, n11)
        f10 = b[p : p + n11]
        p += n11
    return r.Source(partition=f1, attempts=f2, spans=f6, rewards=f10), p


WRITE = write_Trajectory
READ = read_Trajectory
