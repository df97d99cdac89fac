"""The pipeline as a custom algorithm's context needs it; see `context.World`."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from headrace.schemas.records import JournalEntry, Record, ResourcesUpdate, RunManifest, Task, Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.custom.log import JournalLog
from headrace.trainers.custom.trajectories import At, TrajectoryIndex, TrajectoryReader

T = TypeVar("T")
CLOCK_SKEW_MS = 60_000  # between the brokers that stamp training and triplets


class Pipeline:
    """One run's side of the topics. Make it by `join`, on the event loop."""

    def __init__(self, settings: Settings, run_id: str) -> None:
        self._settings = settings
        self._client_id = f"trainer-{run_id}"
        self._run_id = run_id
        self._stopping = threading.Event()
        # Kafka clients that are not for several threads: one thread writes, one reads.
        self._writing = ThreadPoolExecutor(1, f"{self._client_id}-write")
        self._reading = ThreadPoolExecutor(1, f"{self._client_id}-read")
        self._reader: TrajectoryReader | None = None
        self._log: JournalLog | None = None
        self._index: TrajectoryIndex | None = None
        self.publishing = asyncio.Lock()

    async def join(self) -> None:
        """Fences whoever ran before, and reads what the run has done.

        Raises:
            BrokerUnavailableError: no broker answers.
            DecodeError: a record of the run has a schema that this version does not know.
        """
        self._log = await self._call(self._writing, lambda: JournalLog(self._settings, self._run_id, self._stopping))

    def follow(self) -> None:
        """Looks for the trajectories of the run, which has begun."""
        began = self.log.began_ms
        since_ms = None if began is None else began - CLOCK_SKEW_MS
        self._index = TrajectoryIndex(self._settings, self._client_id, since_ms)
        self._index.watch(self.log.journal.keys)

    @property
    def log(self) -> JournalLog:
        """The run's journal, once it has joined."""
        assert self._log is not None, "join first"
        return self._log

    @property
    def index(self) -> TrajectoryIndex:
        """Where the run's trajectories lie."""
        assert self._index is not None, "call follow() first"
        return self._index

    async def begin(self, manifest: RunManifest) -> None:
        """Writes the run's manifest."""
        await self._call(self._writing, lambda: self.log.begin(manifest))

    async def commit(self, entry: JournalEntry, records: Sequence[Record]) -> JournalEntry:
        """See `World`."""
        self.index.watch(t.group_id or t.rollout_id for t in records if isinstance(t, Task))
        return await self._call(self._writing, lambda: self.log.commit(entry, records))

    async def wait(self, rollout_ids: Sequence[str], timeout: float | None, rewards: Sequence[str]) -> dict[str, At]:
        """See `World`."""
        return await self.index.wait(rollout_ids, timeout, rewards)

    async def read(self, places: Sequence[At]) -> list[Trajectory]:
        """See `World`."""
        return await self._call(self._reading, lambda: self._trajectories().read(places)) if places else []

    async def conversations(self, trajectories: Sequence[Trajectory]) -> list[list[dict[str, Any]]]:
        """See `World`."""
        return await self._call(self._reading, lambda: self._trajectories().conversations(trajectories))

    async def newest(self, name: str | None) -> ResourcesUpdate | None:
        """See `World`."""
        last: ResourcesUpdate | None = None
        for update in await asyncio.to_thread(self._publications):
            if name is None or (update.name == name and (last is None or update.version >= last.version)):
                last = update
        return last

    async def publication(self, resources_id: str) -> ResourcesUpdate | None:
        """See `World`."""
        updates = await asyncio.to_thread(self._publications)
        return next((update for update in updates if update.resources_id == resources_id), None)

    async def close(self) -> None:
        """Lets all clients go."""
        self._stopping.set()
        if self._index is not None:
            await self._index.close()
        if self._log is not None:
            await self._call(self._writing, self._log.close)
        if self._reader is not None:
            await self._call(self._reading, self._reader.close)
        self._writing.shutdown()
        self._reading.shutdown()

    def _publications(self) -> list[ResourcesUpdate]:
        """All that is published now, in its order."""
        codec, topic = Codec(self._settings), self._settings.topic("resources")
        updates: list[ResourcesUpdate] = []
        for message in read_topic(self._settings, topic, [0], client_id=f"{self._client_id}-resources"):
            if message.value() is not None:
                with suppress(DecodeError):  # followers write the dead letter
                    updates.append(codec.decode_as(ResourcesUpdate, message.value()))
        return updates

    def _trajectories(self) -> TrajectoryReader:
        if self._reader is None:
            self._reader = TrajectoryReader(self._settings, self._client_id)
        return self._reader

    async def _call(self, executor: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, call)
