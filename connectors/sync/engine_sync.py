"""Keeps one engine at the newest version of its policy."""

import asyncio
import logging
import time
from collections import Counter

from headrace.connectors.engine.control import EngineControl, EngineUnreachableError, WeightsRefusedError
from headrace.connectors.engine.weights import LoadedVersion
from headrace.connectors.sync.newest import NewestWeights
from headrace.schemas.records import Weights

log = logging.getLogger(__name__)
# An engine that was started again behind the same URL serves an old version, and nobody announces that.
ASK_AGAIN_SECONDS = 5.0
RETRY_SECONDS = 0.5
COMPLAIN_SECONDS = 20.0


class EngineSync:
    """The loads of one engine, one after the other; a slow or absent engine holds up no other.

    Attributes:
        version: what the engine is known to serve.
    """

    def __init__(self, name: str, control: EngineControl, newest: NewestWeights, counters: Counter[str]) -> None:
        self._name, self._control, self._newest, self._counters = name, control, newest, counters
        self._refused: tuple[int, str] | None = None
        self._complained = 0.0
        self.version: int | None = None

    async def run(self) -> None:
        """Loads until it is cancelled."""
        while True:
            try:
                serves = await self._control.loaded()
                self.version = serves.version
                while True:
                    wanted = self._wanted(serves)
                    if wanted is None:
                        break
                    serves = await self._load(wanted, serves)
            except EngineUnreachableError as error:
                self.version = None
                self._complain(error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._newest.changed(ASK_AGAIN_SECONDS)

    def _wanted(self, serves: LoadedVersion) -> Weights | None:
        weights = self._newest.of(serves.policy)
        if weights is None or weights.version <= serves.version or (weights.version, weights.uri) == self._refused:
            return None
        return weights

    async def _load(self, weights: Weights, serves: LoadedVersion) -> LoadedVersion:
        began = time.monotonic()
        try:
            loaded = await self._control.load(weights)
        except WeightsRefusedError as error:
            self._refused = (weights.version, weights.uri)
            self._counters["refused"] += 1
            log.error(
                "%s goes on with version %d: refused %s (%s): %s",
                self._name,
                serves.version,
                weights.uri,
                error.reason,
                error,
            )
            return serves
        self._counters["loads"] += 1
        self.version = loaded.version
        log.info(
            "%s: %s version %d in %.0f ms", self._name, loaded.policy, loaded.version, 1e3 * (time.monotonic() - began)
        )
        return loaded

    def _complain(self, error: EngineUnreachableError) -> None:
        self._counters["unreachable"] += 1
        if time.monotonic() - self._complained > COMPLAIN_SECONDS:
            self._complained = time.monotonic()
            log.warning("%s: %s", self._name, error)
