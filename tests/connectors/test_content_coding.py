"""Compressed bodies: no more than the limit is ever inflated, and many small members cost no more than one."""

import gzip
import time
import zlib

import pytest

from headrace.connectors import content_coding
from headrace.connectors.content_coding import MOST_MEMBERS, NotReadable, TooLarge, decompressed


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 300_000])
def test_members_and_slices(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = bytes(i * 7 % 251 for i in range(size))
    for slice_bytes in (7 if size < 100_000 else 4096, content_coding.SLICE_BYTES):
        monkeypatch.setattr(content_coding, "SLICE_BYTES", slice_bytes)
        assert decompressed(gzip.compress(text) + gzip.compress(b"end"), "gzip", size + 3) == text + b"end"
        assert decompressed(zlib.compress(text), "deflate", size) == text
        assert decompressed(zlib.compress(text, wbits=-15), "deflate", size) == text
        with pytest.raises(TooLarge):
            decompressed(gzip.compress(text) + gzip.compress(b"end"), "gzip", size + 2)


def test_members_behind_each_other_are_not_copied_again_and_again() -> None:
    body = gzip.compress(b"") * (MOST_MEMBERS - 1) + gzip.compress(bytes(range(256)) * 60_000, 0)
    began = time.process_time()
    assert len(decompressed(body, "gzip", 16_000_000)) == 256 * 60_000
    assert time.process_time() - began < 1
    with pytest.raises(NotReadable, match="members"):
        decompressed(gzip.compress(b"") * (MOST_MEMBERS + 1), "gzip", 10)
