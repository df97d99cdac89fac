"""Kept-alive connections."""

import asyncio
import ssl
import time
from typing import cast
from urllib.parse import urlsplit

from headrace.streams.http1.answers import AnswerReader, HttpAnswer, MalformedAnswerError

# Below the five seconds after which uvicorn closes an idle connection: a call must not meet that close.
KEEPALIVE_SECONDS = 4.0


class Connection(asyncio.Protocol):
    """One connection; carries one request at a time.

    Attributes:
        idle_since: monotonic time of the last answer.
        usable: open, and the last answer left it ready for another request.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self._reader = AnswerReader(max_body_bytes)
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._transport: asyncio.Transport | None = None
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

    def close(self) -> None:
        """Ends it; a server that generates for it may then stop."""
        self.usable = False
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
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
        if self._answer is None or self._answer.done():
            return
        answer = self._reader.end()
        if answer is not None:
            self._answer.set_result(answer)
        else:
            self._answer.set_exception(ConnectionResetError(str(exc or "closed without an answer")))


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

    def close(self) -> None:
        """Closes the idle ones."""
        while self._idle:
            self._idle.pop().close()
