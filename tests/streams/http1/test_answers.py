"""HTTP/1.1 answers, in one piece and byte by byte."""

import pytest

from headrace.streams.http1.answers import AnswerReader, HttpAnswer, MalformedAnswerError

LIMIT = 1000
WHOLE = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y: z\r\n\r\nhello", HttpAnswer(200, b"hello", True)),
    "empty": (b"HTTP/1.1 503 \r\ncontent-length: 0\r\n\r\n", HttpAnswer(503, b"", True)),
    "close": (b"HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 1\r\n\r\na", HttpAnswer(200, b"a", False)),
    "old": (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", HttpAnswer(200, b"a", False)),
    "continue": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
        HttpAnswer(200, b"a", True),
    ),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", HttpAnswer(204, b"", True)),
    "chunked": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
        HttpAnswer(200, b"abc0123456789", True),
    ),
    "trailers": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n",
        HttpAnswer(200, b"a", True),
    ),
}


@pytest.mark.parametrize("case", WHOLE)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_answers(case: str, step: int) -> None:
    data, expected = WHOLE[case]
    reader = AnswerReader(LIMIT)
    for _ in range(2):  # a connection carries several
        pieces = [data[i : i + step] for i in range(0, len(data), step)]
        got = [reader.feed(piece) for piece in pieces]
        assert [answer and answer[:3] for answer in got] == [None] * (len(pieces) - 1) + [expected[:3]]


def test_an_answer_that_ends_with_its_connection() -> None:
    reader = AnswerReader(LIMIT)
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    assert reader.end() == HttpAnswer(200, b"hello", False, [])


def test_bytes_after_an_answer_spoil_the_connection() -> None:
    reader = AnswerReader(LIMIT)
    answer = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc")
    assert answer == HttpAnswer(200, b"a", False, [(b"content-length", b"1")])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
    ],
)
def test_a_cut_answer_is_none(data: bytes) -> None:
    reader = AnswerReader(LIMIT)
    assert reader.feed(data) is None
    assert reader.end() is None


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 5000,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfff\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
        b"x" * 70_000,
    ],
)
def test_what_is_no_answer(data: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        AnswerReader(LIMIT).feed(data)


def test_chunks_that_come_alone_are_counted_and_read_as_others() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    reader = AnswerReader(LIMIT)
    reader.streamed = True
    taken: list[bytes] = []
    for piece in (head, b"3\r\nabc\r\n", b"2;x=y\r\nde\r\n", b"2\r\nf", b"g\r\n", b"1\r\nh\r\n1\r\ni\r\n"):
        assert reader.feed(piece) is None
        taken.append(reader.take())
    assert taken == [b"", b"abc", b"de", b"", b"fg", b"hi"]
    answer = reader.feed(b"0\r\n\r\n")
    assert answer is not None
    assert (answer.body, answer.reusable) == (b"", True)
    reader = AnswerReader(LIMIT)
    reader.feed(head)
    for _ in range(LIMIT // 100):
        assert reader.feed(b"64\r\n" + bytes(100) + b"\r\n") is None
    with pytest.raises(MalformedAnswerError):
        reader.feed(b"1\r\na\r\n")
