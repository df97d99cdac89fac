"""The client that loads published weights into an engine, whichever it is: all serve the same two routes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import aiohttp
import msgspec

from headrace.connectors.engine.weights import LoadedVersion
from headrace.schemas.records import Weights
from headrace.streams.errors import HeadraceError

# A load waits for answers under way where the engine's --in-flight says so.
LOAD_SECONDS = 600.0
ASK_SECONDS = 5.0


class EngineUnreachableError(HeadraceError):
    """The engine does not answer, or answers what no engine says."""

    retriable = True


class WeightsRefusedError(HeadraceError):
    """The engine did not load this version and goes on serving the old one.

    Attributes:
        reason: short name, see `connectors.engine.weights.WeightsRefused`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class EngineControl(ABC):
    """What `headrace sync` asks of an engine."""

    @abstractmethod
    async def load(self, weights: Weights) -> LoadedVersion:
        """Loads a version; returns when every later answer comes from it. Loading it again changes nothing.

        Raises:
            WeightsRefusedError: broken, older than what is served, or of another policy.
            EngineUnreachableError: nobody knows what it loaded; ask `loaded`.
        """

    @abstractmethod
    async def loaded(self) -> LoadedVersion:
        """What the engine serves. Raises EngineUnreachableError."""

    @abstractmethod
    async def health(self) -> bool:
        """Whether it answers requests."""


class HttpEngineControl(EngineControl):
    """Both engines: the builtin one serves the routes itself, in vLLM a middleware does."""

    def __init__(self, endpoint: str, session: aiohttp.ClientSession) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._session = session

    async def load(self, weights: Weights) -> LoadedVersion:
        fields = {name: getattr(weights, name) for name in weights.__struct_fields__}
        return await self._ask("POST", "/headrace/load_weights", LOAD_SECONDS, fields)

    async def loaded(self) -> LoadedVersion:
        return await self._ask("GET", "/headrace/weights", ASK_SECONDS)

    async def health(self) -> bool:
        timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
        try:
            async with self._session.get(f"{self.endpoint}/health", timeout=timeout) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _ask(self, method: str, path: str, seconds: float, fields: dict[str, Any] | None = None) -> LoadedVersion:
        timeout = aiohttp.ClientTimeout(total=seconds, connect=ASK_SECONDS)
        body = msgspec.json.encode(fields) if fields is not None else None
        url = self.endpoint + path
        try:
            try:
                raw, status = await self._answer(method, url, body, timeout)
            except aiohttp.ServerDisconnectedError:  # a kept connection may end as it is used; loading twice is no harm
                raw, status = await self._answer(method, url, body, timeout)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise EngineUnreachableError(f"{url} does not answer: {error!r}; is the engine running?") from error
        try:
            if status == 200:
                return msgspec.json.decode(raw, type=LoadedVersion)
            refusal = msgspec.json.decode(raw, type=_Refusal).error
        except msgspec.DecodeError as error:
            raise EngineUnreachableError(f"{url} answered {status} with {raw[:200]!r}; is it an engine?") from error
        raise WeightsRefusedError(refusal.reason, refusal.message)

    async def _answer(
        self, method: str, url: str, body: bytes | None, timeout: aiohttp.ClientTimeout
    ) -> tuple[bytes, int]:
        headers = {"content-type": "application/json"}
        async with self._session.request(method, url, data=body, headers=headers, timeout=timeout) as answer:
            return await answer.read(), answer.status


class _RefusalError(msgspec.Struct):
    message: str
    reason: str


class _Refusal(msgspec.Struct):
    error: _RefusalError
