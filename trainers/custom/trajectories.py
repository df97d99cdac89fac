"""Where the trajectories of a run's rollouts lie in triplets, and what they hold."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from headrace.schemas.records import Record, Source, Trajectory
from headrace.streams.assembly.messages.read import conversation_json
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.sources import SourceReader
from headrace.streams.assembly.trajectory import read_attempt
from headrace.streams.codec import Codec
from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings

TRIPLETS = "triplets"
At = tuple[int, int]


class TrajectoryGoneError(HeadraceError):
    """A trajectory that the run has read before is not in the log any more."""


class _Seen(msgspec.Struct, frozen=True):
    at: At
    revision: int
    rewards: frozenset[str]


class _Waiter(msgspec.Struct):
    missing: set[str]
    rewards: frozenset[str]
    done: "asyncio.Future[None]"


class TrajectoryIndex:
    """Follows triplets for the rollouts of one run. Make it, and call all of it, on the event loop.

    Args:
        since_ms: no trajectory of the run was appended earlier, milliseconds since the epoch.
    """

    def __init__(self, settings: Settings, client_id: str, since_ms: int | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._keys: set[bytes] = set()
        self._seen: dict[str, _Seen] = {}
        self._waiters: list[_Waiter] = []
        self._starting: asyncio.Task[None] | None = None
        self._settings, self._client_id, self._since_ms = settings, client_id, since_ms
        self._follower: TopicFollower | None = None

    def watch(self, keys: Iterable[str]) -> None:
        """Looks for these keys; before their tasks are written, or before the first `wait`."""
        self._keys.update(key.encode() for key in keys)

    async def wait(self, rollout_ids: Sequence[str], timeout: float | None, rewards: Sequence[str]) -> dict[str, At]:
        """See `World.wait`."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        await asyncio.shield(self._starting)
        wanted = frozenset(rewards)
        missing = {i for i in rollout_ids if not self._there(i, wanted)}
        if missing:
            waiter = _Waiter(missing, wanted, self._loop.create_future())
            self._waiters.append(waiter)
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(waiter.done, timeout)
            finally:
                self._waiters.remove(waiter)
        return {i: self._seen[i].at for i in rollout_ids if self._there(i, wanted)}

    async def close(self) -> None:
        """Stops following."""
        if self._starting is not None:
            self._starting.cancel()
        if self._follower is not None:
            await asyncio.to_thread(self._follower.close)

    async def _start(self) -> None:
        def start() -> None:
            partitions = partition_ids(self._settings, self._settings.topic(TRIPLETS))
            self._follower = TopicFollower(
                self._settings,
                TRIPLETS,
                self._handle,
                client_id=f"{self._client_id}-{TRIPLETS}",
                partitions=partitions,
                wants=lambda message: message.key() in self._keys,
                since_ms=self._since_ms,
            )
            self._follower.start_later()

        await asyncio.to_thread(start)

    def _there(self, rollout_id: str, rewards: frozenset[str]) -> bool:
        seen = self._seen.get(rollout_id)
        return seen is not None and rewards <= seen.rewards

    def _handle(self, record: Record, message: Message) -> None:
        """On the follower's thread."""
        trajectory = cast(Trajectory, record)
        at = (message.partition() or 0, message.offset() or 0)
        seen = _Seen(at, trajectory.revision, frozenset(trajectory.rewards))
        with suppress(RuntimeError):  # the loop is closed: the run has ended
            self._loop.call_soon_threadsafe(self._arrived, trajectory.rollout_id, seen)

    def _arrived(self, rollout_id: str, seen: _Seen) -> None:
        before = self._seen.get(rollout_id)
        if before is not None and before.revision >= seen.revision:
            return
        self._seen[rollout_id] = seen
        for waiter in self._waiters:
            if rollout_id in waiter.missing and waiter.rewards <= seen.rewards:
                waiter.missing.discard(rollout_id)
                if not waiter.missing and not waiter.done.done():
                    waiter.done.set_result(None)


class TrajectoryReader:
    """Reads trajectories and what they were made of by their places. For one thread."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._log = LogReader(settings, f"{client_id}-read")
        self._codec = Codec(settings)
        self._sources = SourceReader(settings, self._log)

    def read(self, places: Sequence[At]) -> list[Trajectory]:
        """The trajectories at these places, in this order.

        Raises:
            TrajectoryGoneError: one is not there any more.
        """
        wanted: dict[tuple[str, int], set[int]] = {}
        for partition, offset in places:
            wanted.setdefault((TRIPLETS, partition), set()).add(offset)
        found = self._log.at(wanted)
        read: list[Trajectory] = []
        for partition, offset in places:
            message = found.get((TRIPLETS, partition, offset))
            if message is None:
                raise TrajectoryGoneError(
                    f"the trajectory at {TRIPLETS} {partition}/{offset} is no longer kept (replay_window): "
                    "the run cannot go on; begin a new one with another --run"
                )
            read.append(self._codec.decode_as(Trajectory, message.value()))
        return read

    def conversations(self, trajectories: Sequence[Trajectory]) -> list[list[dict[str, Any]]]:
        """What was said in the model calls of each, also in calls that gave no triplet.

        Raises:
            TrajectoryGoneError: the spans are not there any more.
        """
        left = [t for t in trajectories if t.conversations is None and t.source is not None]
        found = self._sources.find([cast(Source, t.source) for t in left])
        return [self._conversation(t, found) for t in trajectories]

    def close(self) -> None:
        """Lets the clients go."""
        self._log.close()

    def _conversation(self, trajectory: Trajectory, found: Any) -> list[dict[str, Any]]:
        if trajectory.conversations is not None:
            return msgspec.json.decode(trajectory.conversations)
        if trajectory.source is None:
            return []
        records = RolloutRecords(trajectory.rollout_id, trajectory.source.partition)
        if self._sources.add(records, trajectory.source, found):
            raise TrajectoryGoneError(f"spans of {trajectory.rollout_id} are no longer kept (retention)")
        read = read_attempt(records, AssemblySettings())
        return msgspec.json.decode(conversation_json(read.calls, read.nodes))
