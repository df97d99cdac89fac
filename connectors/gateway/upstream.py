"""HTTP to the engines."""

from datetime import timedelta
from types import TracebackType
from typing import TypeVar

import aiohttp
import msgspec

from headrace.streams.errors import HeadraceError

CONNECT_SECONDS = 5.0
PROBE_SECONDS = 5.0
# Below the five seconds after which uvicorn closes an idle connection: a call must not meet that close.
KEEPALIVE_SECONDS = 4.0
OK = 200
T = TypeVar("T")
_HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}


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
    """A pool of connections; use it as a context manager on the event loop that calls."""

    def __init__(self, timeout: timedelta) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout.total_seconds(), sock_connect=CONNECT_SECONDS)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Upstream":
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer.

        Raises:
            Unreachable, ConnectionLost, EngineTimeout.
        """
        assert self._session is not None
        try:
            async with self._session.post(url, data=body, headers=_HEADERS) as response:
                return response.status, await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(f"{url}: {error}") from error
        except TimeoutError as error:
            raise EngineTimeout(f"{url}: no answer within {self._timeout.total:.0f} s") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise ConnectionLost(f"{url}: {type(error).__name__} {error}") from error

    async def served(self, endpoint: str) -> Served | None:
        """What the engine at a URL serves; None where it does not answer."""
        models = await self._get(f"{endpoint}/v1/models", _Models)
        if models is None or not models.data:
            return None
        weights = await self._get(f"{endpoint}/headrace/weights", _Weights)
        return Served(models.data[0].id, weights.policy if weights else None)

    async def _get(self, url: str, kind: type[T]) -> T | None:
        assert self._session is not None
        try:
            timeout = aiohttp.ClientTimeout(total=PROBE_SECONDS)
            async with self._session.get(url, timeout=timeout) as response:
                return msgspec.json.decode(await response.read(), type=kind) if response.status == OK else None
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
