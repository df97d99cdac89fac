"""The process of `headrace sync`: one `EngineSync` for each live engine."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence

import aiohttp

from headrace.connectors.engine.control import HttpEngineControl
from headrace.connectors.sync.engine_sync import EngineSync
from headrace.connectors.sync.newest import NewestWeights
from headrace.schemas.records import Record, WorkerState
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, WorkerAnnouncer, Workers, new_worker_id

log = logging.getLogger(__name__)
SYNC = "sync"
REFRESH_SECONDS = 1.0
CLOSE_SECONDS = 3.0


class EngineSyncs:
    """Starts and stops the tasks of engines as they come and go; all calls belong on one event loop."""

    def __init__(self, newest: NewestWeights, session: aiohttp.ClientSession) -> None:
        self._newest, self._session = newest, session
        self._running: dict[tuple[str, str, int], tuple[EngineSync, asyncio.Task[None]]] = {}
        self.counters: Counter[str] = Counter()

    def follow(self, engines: set[tuple[str, str, int]]) -> None:
        """Runs exactly these: (name, endpoint, time of its start, which tells processes of one name apart)."""
        for key in self._running.keys() - engines:
            log.info("%s is gone", key[0])
            self._running.pop(key)[1].cancel()
        for key in engines - self._running.keys():
            sync = EngineSync(key[0], HttpEngineControl(key[1], self._session), self._newest, self.counters)
            self._running[key] = sync, asyncio.create_task(sync.run())

    def check(self) -> None:
        """Raises what has ended a task: none ends by itself."""
        for _, task in self._running.values():
            if task.done():
                task.result()

    def figures(self) -> dict[str, int]:
        """Counters, with the number of engines and of those that answer."""
        known = [sync.version for sync, _ in self._running.values()]
        return dict(self.counters) | {"engines": len(known), "answering": sum(v is not None for v in known)}


async def run_sync(
    settings: Settings,
    *,
    policy: str | None = None,
    engine_urls: Sequence[str] = (),
    worker_id: str | None = None,
    ready: Callable[[str], None] = lambda worker_id: None,
) -> None:
    """Loads until it is cancelled.

    Args:
        policy: only engines of this policy; all where it is None.
        engine_urls: these engines instead of those that have announced themselves.
        ready: called with the worker id once publications are followed.

    Raises:
        BrokerUnavailableError, TopicError: there is no broker, or no topic for resources.
    """
    await asyncio.to_thread(partition_ids, settings, settings.topic("resources"))
    worker_id = worker_id or new_worker_id(SYNC)
    loop = asyncio.get_running_loop()
    newest = NewestWeights()
    news = asyncio.Event()

    def published(record: Record, message: Message) -> None:
        del message
        loop.call_soon_threadsafe(newest.observe, record)

    def changed(state: WorkerState) -> None:
        if state.kind == ENGINE:
            loop.call_soon_threadsafe(news.set)

    workers = Workers(settings, client_id=worker_id, changed=changed)
    resources = TopicFollower(settings, "resources", published, client_id=worker_id)
    producer = AckedProducer(settings, worker_id)
    async with aiohttp.ClientSession() as session:
        syncs = EngineSyncs(newest, session)
        announcer = WorkerAnnouncer(
            settings, producer, SYNC, worker_id=worker_id, policy=policy, counters=syncs.figures
        )
        try:
            # Before any engine is asked, so that only the newest version is loaded.
            await asyncio.gather(asyncio.to_thread(resources.start), asyncio.to_thread(workers.start))
            await announcer.start()
            ready(worker_id)
            while True:
                syncs.follow(_engines(workers, policy, engine_urls))
                syncs.check()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REFRESH_SECONDS):
                        await news.wait()
                news.clear()
        finally:
            syncs.follow(set())
            await announcer.stop()
            await producer.close(CLOSE_SECONDS)
            await asyncio.gather(asyncio.to_thread(resources.close), asyncio.to_thread(workers.close))


def _engines(workers: Workers, policy: str | None, urls: Sequence[str]) -> set[tuple[str, str, int]]:
    if urls:
        return {(url, url, 0) for url in urls}
    return {(s.worker_id, s.endpoint, s.started_at) for s in workers.live(ENGINE, policy) if s.endpoint}
