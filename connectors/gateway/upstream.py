"""Requests to the engines."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from types import TracebackType
from typing import Annotated, TypeVar

import msgspec

from headrace.connectors.gateway.errors import OK, TOO_MANY, UNAVAILABLE
from headrace.streams.errors import HeadraceError
from headrace.streams.http1.answers import HttpAnswer, MalformedAnswerError
from headrace.streams.http1.connections import Connection, Connections
from headrace.streams.http1.streamed import StreamedAnswer

CONNECT_SECONDS = 5.0
PROBE_SECONDS = 5.0
TOKENIZE = "/tokenize"
TOKENIZE_SECONDS = 30.0
LARGEST_ID = 2**31 - 1  # of a record
REFUSED = (400, 422)
T = TypeVar("T")


class Unreachable(HeadraceError):
    """No connection: the engine has seen nothing of the call."""

    retriable = True


class ConnectionLost(HeadraceError):
    """The connection ended before the answer did."""


class EngineTimeout(HeadraceError):
    """No answer in time."""


class NotServed(HeadraceError):
    """The engine has no such route, or does not answer there as it should.

    Attributes:
        busy: it may answer later.
    """

    def __init__(self, message: str, *, busy: bool = False) -> None:
        super().__init__(message)
        self.busy = busy


class Served(msgspec.Struct):
    """What an engine says that it serves."""

    model: str
    policy: str | None


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class _Weights(msgspec.Struct):
    policy: str


class _Tokens(msgspec.Struct):
    tokens: list[Annotated[int, msgspec.Meta(ge=0, le=LARGEST_ID)]]


class Upstream:
    """A pool of connections; use it as a context manager on the event loop that calls.

    Args:
        timeout: for a whole answer.
        max_body_bytes: larger answers are malformed.
    """

    def __init__(self, timeout: timedelta, max_body_bytes: int) -> None:
        self._timeout = timeout.total_seconds()
        self._limit = max_body_bytes
        self._pools: dict[str, Connections] = {}

    async def __aenter__(self) -> "Upstream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools.values():
            pool.close()

    async def complete(self, endpoint: str, path: str, body: bytes) -> HttpAnswer:
        """Asks an engine for a completion.

        Raises:
            Unreachable, ConnectionLost, EngineTimeout.
            MalformedAnswerError: what came is no HTTP answer.
        """
        return await self._ask(endpoint, "POST", path, body, self._timeout)

    @asynccontextmanager
    async def stream(self, endpoint: str, path: str, body: bytes) -> AsyncGenerator["EngineStream"]:
        """Asks an engine for a completion that is read while it comes; there is no time limit.

        The connection is closed, and the engine may stop, where it is left by an exception.

        Raises:
            Unreachable, ConnectionLost, MalformedAnswerError: as `complete`; also from the answer while it is read.
        """
        pool, connection = await self._connect(endpoint)
        try:
            yield EngineStream(endpoint, await _streamed(endpoint, connection, _request(pool, "POST", path, body)))
        except BaseException:  # whatever it was, the rest of the answer is not read
            connection.close()
            raise
        pool.give_back_at_end(connection)

    async def tokenize(self, endpoint: str, body: bytes) -> list[int] | None:
        """The ids of a rendered conversation, as vLLM's `/tokenize` gives them; None where the template refuses it.

        Raises:
            Unreachable, ConnectionLost, EngineTimeout, MalformedAnswerError: as `complete`.
            NotServed: the engine does not tell.
        """
        answer = await self._ask(endpoint, "POST", TOKENIZE, body, min(TOKENIZE_SECONDS, self._timeout))
        if answer.status in REFUSED:
            return None
        if answer.status != OK:
            busy = answer.status in (TOO_MANY, UNAVAILABLE)
            raise NotServed(f"{endpoint}{TOKENIZE} answers {answer.status}", busy=busy)
        try:
            return msgspec.json.decode(answer.body, type=_Tokens).tokens
        except msgspec.DecodeError as error:
            raise NotServed(f"{endpoint}{TOKENIZE} answers no token ids: {error}") from error

    async def served(self, endpoint: str) -> Served | None:
        """What the engine at a URL serves; None where it does not answer."""
        models = await self._get(endpoint, "/v1/models", _Models)
        if models is None or not models.data:
            return None
        weights = await self._get(endpoint, "/headrace/weights", _Weights)
        return Served(models.data[0].id, weights.policy if weights else None)

    async def _get(self, endpoint: str, path: str, kind: type[T]) -> T | None:
        try:
            answer = await self._ask(endpoint, "GET", path, b"", PROBE_SECONDS)
            return msgspec.json.decode(answer.body, type=kind) if answer.status == OK else None
        except (Unreachable, ConnectionLost, EngineTimeout, MalformedAnswerError, msgspec.DecodeError):
            return None

    async def _ask(self, endpoint: str, method: str, path: str, body: bytes, timeout: float) -> HttpAnswer:
        pool, connection = await self._connect(endpoint)
        try:
            async with asyncio.timeout(timeout):
                answer = await connection.ask(_request(pool, method, path, body))
        except TimeoutError as error:
            raise EngineTimeout(f"{endpoint}: no answer within {timeout:g} s") from error
        except OSError as error:
            raise ConnectionLost(f"{endpoint}: {error}") from error
        pool.give_back(connection)
        return answer

    async def _connect(self, endpoint: str) -> tuple[Connections, Connection]:
        pool = self._pools.get(endpoint)
        if pool is None:
            pool = self._pools[endpoint] = Connections(endpoint, self._limit)
        try:
            return pool, await pool.take(CONNECT_SECONDS)
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"{endpoint}: {error or 'no connection'}") from error


class EngineStream:
    """An engine's answer while it comes; see `StreamedAnswer`, whose errors it turns into this module's."""

    def __init__(self, endpoint: str, answer: StreamedAnswer) -> None:
        self._endpoint, self._answer = endpoint, answer
        self.status, self.headers, self.header = answer.status, answer.headers, answer.header

    async def read(self) -> bytes | None:
        """More of the body, None at its end. Raises ConnectionLost, MalformedAnswerError."""
        try:
            return await self._answer.read()
        except OSError as error:
            raise ConnectionLost(f"{self._endpoint}: {error}") from error

    async def rest(self) -> bytes:
        """All that is still to come. Raises as `read`."""
        try:
            return await self._answer.rest()
        except OSError as error:
            raise ConnectionLost(f"{self._endpoint}: {error}") from error


async def _streamed(endpoint: str, connection: Connection, request: bytes) -> StreamedAnswer:
    try:
        return await connection.stream(request)
    except OSError as error:
        raise ConnectionLost(f"{endpoint}: {error}") from error


def _request(pool: Connections, method: str, path: str, body: bytes) -> bytes:
    head = (
        f"{method} {pool.path}{path} HTTP/1.1\r\nhost: {pool.host}\r\naccept: application/json, text/event-stream\r\n"
        f"accept-encoding: identity\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
