"""Kept-alive connections."""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

from headrace.streams.http1.answers import AnswerReader, HttpAnswer, MalformedAnswerError
from headrace.streams.http1.streamed import StreamedAnswer

# Below the five seconds after which uvicorn closes an idle connection: a call must not meet that close.
KEEPALIVE_SECONDS = 4.0
# An answer whose last bytes nobody needs gets so long to end, so that its connection can be kept.
END_SECONDS = 1.0


class Connection(asyncio.Protocol):
    """One connection; carries one request at a time.

    Attributes:
        idle_since: monotonic time of the last answer.
        usable: open, and the last answer left it ready for another request.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self._reader = AnswerReader(max_body_bytes)
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._streamed: StreamedAnswer | None = None
        self._transport: asyncio.Transport | None = None
        self._at_end: Callable[[], None] | None = None
        self.idle_since = 0.0
        self.usable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def ask(self, request: bytes) -> HttpAnswer:
        """Sends a request.

        Raises:
            ConnectionResetError: it ended before the answer was whole.
            MalformedAnswerError: what came is no answer.
        """
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            answer = await self._answer
        except BaseException:  # cancelled above all: an answer may still come, and must not meet the next request
            self.close()
            raise
        finally:
            self._answer = None
        if not answer.reusable:
            self.close()
        self.idle_since = time.monotonic()
        return answer

    async def stream(self, request: bytes) -> StreamedAnswer:
        """Sends a request; returns when status and headers of the answer have come.

        Who does not read it to its end calls `close` or `Connections.give_back_at_end`.

        Raises:
            ConnectionResetError, MalformedAnswerError: as `ask`; later from the answer itself.
        """
        assert self._transport is not None
        self._reader.streamed = True
        streamed = self._streamed = StreamedAnswer(self._hold)
        self._transport.write(request)
        try:
            await streamed.begin()
        except BaseException:  # as in `ask`
            self.close()
            raise
        return streamed

    def close(self) -> None:
        """Ends it; a server that generates for it may then stop."""
        self.usable = False
        if self._transport is not None:
            self._transport.close()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls once the streamed answer has ended, at once if it has; after a while the connection is closed."""
        if self._streamed is None:
            call()
            return
        closing = asyncio.get_running_loop().call_later(END_SECONDS, self.close)

        def ended() -> None:
            closing.cancel()
            call()

        self._at_end = ended

    def data_received(self, data: bytes) -> None:
        if self._streamed is not None:
            self._receive_part(self._streamed, data)
            return
        waiting = self._answer
        if waiting is None or waiting.done():
            self.close()  # nobody has asked for it
            return
        try:
            answer = self._reader.feed(data)
        except MalformedAnswerError as error:
            waiting.set_exception(error)
            return
        if answer is not None:
            waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        streamed, waiting = self._streamed, self._answer
        if streamed is None and (waiting is None or waiting.done()):
            return
        answer = self._reader.end()
        error = None if answer is not None else ConnectionResetError(str(exc or "closed without an answer"))
        if streamed is not None:
            if answer is not None:
                streamed.put(answer.body)
            self._end_stream(streamed, error)
        elif waiting is not None and error is not None:
            waiting.set_exception(error)
        elif waiting is not None and answer is not None:
            waiting.set_result(answer)

    def _receive_part(self, streamed: StreamedAnswer, data: bytes) -> None:
        try:
            answer = self._reader.feed(data)
        except MalformedAnswerError as error:
            self.close()
            self._end_stream(streamed, error)
            return
        if not streamed.status:
            head = answer or self._reader.head
            if head is None:
                return
            streamed.put_head(head.status, head.headers)
        streamed.put(self._reader.take() if answer is None else answer.body)
        if answer is not None:
            if not answer.reusable:
                self.close()
            self._end_stream(streamed, None)

    def _end_stream(self, streamed: StreamedAnswer, error: Exception | None) -> None:
        self._streamed = None
        self._reader.streamed = False
        self.idle_since = time.monotonic()
        streamed.end(error)
        if self._at_end is not None:
            self._at_end()
            self._at_end = None

    def _hold(self, hold: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if hold:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


class Connections:
    """The connections to one address.

    Attributes:
        host: value of the Host header.
    """

    def __init__(self, address: str, max_body_bytes: int) -> None:
        parts = urlsplit(address)
        self.host = parts.netloc
        self.path = parts.path.rstrip("/")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._name = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._limit = max_body_bytes
        self._idle: list[Connection] = []

    async def take(self, connect_seconds: float | None) -> Connection:
        """The connection that was used last, or a new one.

        Raises:
            OSError, TimeoutError: nobody there.
        """
        newest = time.monotonic() - KEEPALIVE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_since > newest:
                return connection
            connection.close()
        async with asyncio.timeout(connect_seconds):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._limit), self._name, self._port, ssl=self._tls
            )
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keeps it for the next call."""
        if connection.usable:
            self._idle.append(connection)

    def give_back_at_end(self, connection: Connection) -> None:
        """Keeps it for the next call once the streamed answer that it carries has ended."""
        connection.when_ended(lambda: self.give_back(connection))

    def close(self) -> None:
        """Closes the idle ones."""
        while self._idle:
            self._idle.pop().close()
