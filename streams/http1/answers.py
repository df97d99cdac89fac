"""HTTP/1.1 answers, read from bytes as they come (RFC 9112): only what a client of JSON services meets.

A general client costs 0.3 ms of CPU a call, more than all else beside it in a gateway or a runner; this costs a tenth.
"""

from collections.abc import Sequence
from typing import NamedTuple

MAX_HEAD_BYTES = 64 * 1024
MAX_LINE_BYTES = 4 * 1024  # of the size of a chunk, with its extensions
MAX_DIGITS = 18
_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_NO_BODY = (204, 304)
_FIRST_FINAL = 200  # 1xx answers go before the one that counts


class MalformedAnswerError(Exception):
    """The bytes are no HTTP/1.1 answer, or it is too large."""


class HttpAnswer(NamedTuple):
    """An answer. `reusable`: the connection may carry another request; `headers`: as they came, names in lower case."""

    status: int
    body: bytes
    reusable: bool
    headers: Sequence[tuple[bytes, bytes]] = ()


class AnswerReader:
    """Reads the answers of one connection, one request at a time.

    Attributes:
        streamed: what came of the body may be taken before the answer is whole; set it before a request.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self._limit = max_body_bytes
        self._buffer = bytearray()
        self.streamed = False
        self._clear()

    def _clear(self) -> None:
        self._status = 0
        self._reusable = True
        self._length: int | None = None
        self._chunked = False
        self._parts: list[bytes] = []
        self._size = 0
        self._headers: list[tuple[bytes, bytes]] = []

    @property
    def head(self) -> HttpAnswer | None:
        """Status and headers of the answer that is coming, its body empty; None until they are there."""
        return HttpAnswer(self._status, b"", False, self._headers) if self._status else None

    def take(self) -> bytes:
        """What has come of the body since the last time."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data

    def feed(self, data: bytes) -> HttpAnswer | None:
        """Takes bytes; the answer once it is whole.

        Raises:
            MalformedAnswerError: read no more of this connection.
        """
        if self._chunked and not self._buffer and self._take_chunk(data):
            return None
        self._buffer += data
        while not self._status:
            if not self._read_head():
                return None
        if self._chunked:
            return self._answer() if self._read_chunks() else None
        if self._length is None:
            if self.streamed:
                self._add(len(self._buffer))
            elif len(self._buffer) > self._limit:
                raise MalformedAnswerError(f"an answer of more than {self._limit} bytes")
            return None
        if len(self._buffer) < self._length:
            return None
        self._add(self._length)
        return self._answer()

    def end(self) -> HttpAnswer | None:
        """The connection has ended: the answer if that was its end, None if one is missing or cut."""
        if not self._status or self._chunked or self._length is not None:
            return None
        self._add(len(self._buffer))
        self._reusable = False
        return self._answer()

    def _add(self, size: int) -> None:
        """Moves the first bytes of the buffer to the body."""
        self._size += size
        if self._size > self._limit:
            raise MalformedAnswerError(f"an answer of more than {self._limit} bytes")
        self._parts.append(bytes(self._buffer[:size]))
        del self._buffer[:size]

    def _answer(self) -> HttpAnswer:
        reusable = self._reusable and not self._buffer
        answer = HttpAnswer(self._status, b"".join(self._parts), reusable, self._headers)
        self._clear()
        return answer

    def _read_head(self) -> bool:
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise MalformedAnswerError(f"a head of more than {MAX_HEAD_BYTES} bytes")
            return False
        lines = bytes(self._buffer[:end]).split(_LINE_END)
        del self._buffer[: end + len(_HEAD_END)]
        version, _, rest = lines[0].partition(b" ")
        code = rest[:3]
        if not version.startswith(b"HTTP/1.") or not code.isdigit():
            raise MalformedAnswerError(f"no HTTP/1.1 answer: {lines[0][:80]!r}")
        status = int(code)
        if status < _FIRST_FINAL:
            return True
        self._status = status
        self._reusable = version == b"HTTP/1.1"
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            header = name.lower(), value.strip()
            self._headers.append(header)
            self._header(*header)
        if self._status in _NO_BODY:
            self._length, self._chunked = 0, False
        return True

    def _header(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            if not value.isdigit() or len(value) > MAX_DIGITS or int(value) > self._limit:
                raise MalformedAnswerError(f"content-length {value[:40]!r}; the limit is {self._limit}")
            self._length = int(value)
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked":
                raise MalformedAnswerError(f"transfer-encoding {value[:40]!r}")
            self._chunked = True
        elif name == b"connection" and value.lower() == b"close":
            self._reusable = False
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise MalformedAnswerError(f"content-encoding {value[:40]!r}, which was not accepted")

    def _take_chunk(self, data: bytes) -> bool:
        """One whole chunk that came alone, as servers send events: a stream is made of hundreds of them."""
        end = data.find(_LINE_END, 0, MAX_DIGITS)
        try:
            size = int(data[:end], 16) if end > 0 else 0
        except ValueError:
            return False
        if size <= 0 or self._size + size > self._limit or len(data) != end + size + 2 * len(_LINE_END):
            return False
        self._size += size
        self._parts.append(data[end + len(_LINE_END) : -len(_LINE_END)])
        return True

    def _read_chunks(self) -> bool:
        buffer, at = self._buffer, 0
        while True:
            end = buffer.find(_LINE_END, at)
            if end < 0:
                if len(buffer) - at > MAX_LINE_BYTES:
                    raise MalformedAnswerError(f"a chunk whose size takes more than {MAX_LINE_BYTES} bytes")
                break
            line = bytes(buffer[at:end])
            try:
                size = int(line.partition(b";")[0], 16)
            except ValueError:
                raise MalformedAnswerError(f"a chunk of size {line[:40]!r}") from None
            start = end + len(_LINE_END)
            if size == 0:
                del buffer[:at]
                return self._read_trailers(start - at)
            if size < 0 or self._size + size > self._limit:
                raise MalformedAnswerError(f"an answer of more than {self._limit} bytes")
            after = start + size + len(_LINE_END)
            if len(buffer) < after:
                break
            self._size += size
            self._parts.append(bytes(buffer[start : start + size]))
            at = after
        del buffer[:at]
        return False

    def _read_trailers(self, start: int) -> bool:
        if self._buffer.startswith(_LINE_END, start):
            del self._buffer[: start + 2]
            return True
        end = self._buffer.find(_HEAD_END, start)
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise MalformedAnswerError(f"trailers of more than {MAX_HEAD_BYTES} bytes")
            return False
        del self._buffer[: end + len(_HEAD_END)]
        return True
