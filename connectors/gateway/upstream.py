"""Requests to the engines."""

import asyncio
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

import msgspec

from headrace.streams.errors import HeadraceError
from headrace.streams.http1.answers import HttpAnswer, MalformedAnswerError
from headrace.streams.http1.connections import Connections

CONNECT_SECONDS = 5.0
PROBE_SECONDS = 5.0
COMPLETIONS = "/v1/chat/completions"
OK = 200
T = TypeVar("T")


class Unreachable(HeadraceError):
    """No connection: the engine has seen nothing of the call."""

    retriable = True


class ConnectionLost(HeadraceError):
    """The connection ended before the answer did."""


class EngineTimeout(HeadraceError):
    """No answer in time."""


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

    async def complete(self, endpoint: str, body: bytes) -> HttpAnswer:
        """Asks an engine for a chat completion.

        Raises:
            Unreachable, ConnectionLost, EngineTimeout.
            MalformedAnswerError: what came is no HTTP answer.
        """
        return await self._ask(endpoint, "POST", COMPLETIONS, body, self._timeout)

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
        pool = self._pools.get(endpoint)
        if pool is None:
            pool = self._pools[endpoint] = Connections(endpoint, self._limit)
        try:
            connection = await pool.take(CONNECT_SECONDS)
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"{endpoint}: {error or 'no connection'}") from error
        head = (
            f"{method} {pool.path}{path} HTTP/1.1\r\nhost: {pool.host}\r\naccept: application/json\r\n"
            f"accept-encoding: identity\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(timeout):
                answer = await connection.ask(head.encode() + body)
        except TimeoutError as error:
            raise EngineTimeout(f"{endpoint}: no answer within {timeout:g} s") from error
        except OSError as error:
            raise ConnectionLost(f"{endpoint}: {error}") from error
        pool.give_back(connection)
        return answer
