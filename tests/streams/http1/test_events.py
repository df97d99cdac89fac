"""Server-sent events, in one piece, cut in two anywhere, and byte by byte."""

import pytest

from headrace.streams.http1.events import EventReader

STREAMS: dict[str, tuple[bytes, list[bytes]]] = {
    "line feeds": (b'data: {"a": 1}\n\ndata: [DONE]\n\n', [b'{"a": 1}', b"[DONE]"]),
    "carriage returns and line feeds": (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "carriage returns": (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    "several lines": (b"data: a\ndata:  b\ndata:c\ndata\n\n", [b"a\n b\nc\n"]),
    "comments, names and ids": (b": ping\n\nevent: x\nid: 7\nretry: 1\ndata: a\n: b\n\nevent: y\n\n", [b"a"]),
    "a mark of UTF-8": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "characters of several bytes": ("data: żółć 🙂\n\ndata: 語\n\n".encode(), ["żółć 🙂".encode(), "語".encode()]),
    "an event that is cut off": (b"data: a\n\ndata: b\n", [b"a"]),
    "fields that are no data": (b"dat: a\ndatax: b\nDATA: c\ndata: d\n\n", [b"d"]),
    "empty": (b"\n\n\n", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_events_cut_anywhere(name: str) -> None:
    whole, expected = STREAMS[name]
    for cut in range(len(whole) + 1):
        reader = EventReader()
        assert reader.feed(whole[:cut]) + reader.feed(whole[cut:]) == expected, cut
    reader = EventReader()
    assert [event for i in range(len(whole)) for event in reader.feed(whole[i : i + 1])] == expected


def test_an_event_is_there_with_its_last_byte() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r\n\r") == [b"a"]
    assert reader.feed(b"\ndata: b\n") == []
    assert reader.feed(b"\n") == [b"b"]
