"""An engine's entry in the workers topic, by which gateways and `headrace sync` find it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, WorkerAnnouncer

log = logging.getLogger(__name__)
CLOSE_SECONDS = 3.0


class Presence:
    """Tells what the engine has loaded; without settings it tells nobody.

    A load is told in the background: an engine that has lost its brokers still serves and still loads.
    """

    def __init__(self, announcer: WorkerAnnouncer | None) -> None:
        self._announcer = announcer
        self._telling: set[asyncio.Task[None]] = set()

    def loading(self, version: int) -> None:
        """A load has begun."""
        self._tell(loading_version=version)

    def loaded(self, version: int, weights_id: str | None) -> None:
        """Every answer from now on comes from this version."""
        self._tell(loading_version=version, loaded_version=version, weights_id=weights_id)

    def _tell(self, **changes: object) -> None:
        if self._announcer is not None:
            task = asyncio.create_task(self._announce(self._announcer, changes))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    @staticmethod
    async def _announce(announcer: WorkerAnnouncer, changes: dict[str, object]) -> None:
        try:
            await announcer.announce(**changes)
        except DeliveryError as error:
            log.warning("%s was not announced: %s", changes, error)


@asynccontextmanager
async def announced(
    settings: Settings | None, worker_id: str, endpoint: str, policy: str, counters: Callable[[], dict[str, int]]
) -> AsyncGenerator[Presence]:
    """The engine is in the workers topic, with version 0, on entry and gone on exit.

    Raises:
        DeliveryError: no broker took the announcement.
    """
    if settings is None:
        yield Presence(None)
        return
    producer = AckedProducer(settings, worker_id)
    announcer = WorkerAnnouncer(
        settings, producer, ENGINE, worker_id=worker_id, endpoint=endpoint, policy=policy, counters=counters
    )
    try:
        await announcer.announce(loading_version=0, loaded_version=0)
        await announcer.start()
        yield Presence(announcer)
    finally:
        await _leave(announcer, worker_id)
        await producer.close(CLOSE_SECONDS)


async def _leave(announcer: WorkerAnnouncer, worker_id: str) -> None:
    try:
        # A broker that is away must not hold up the end.
        async with asyncio.timeout(CLOSE_SECONDS):
            await announcer.stop()
    except (TimeoutError, DeliveryError):
        log.warning("no broker took the goodbye of %s", worker_id)
