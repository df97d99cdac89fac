"""Who is there: every process announces itself in the workers topic, and is found through it."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from importlib.metadata import version

import msgspec

from headrace.schemas.records import Record, WorkerState
from headrace.streams.hearing import Hearing
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)
IDLE, BUSY, GONE = "idle", "busy", "gone"
MISSED_HEARTBEATS = 3
GOODBYE_SECONDS = 3.0
ENGINE = "engine"
GATEWAY = "gateway"


def new_worker_id(kind: str) -> str:
    """An id that no other process has: kind, host and pid."""
    return f"{kind}-{socket.gethostname()}-{os.getpid()}"


class WorkerAnnouncer:
    """Publishes the WorkerState of this process: at once when it changes, and as a heartbeat.

    Use it on the event loop that the producer belongs to, but for `beat`. `counters`, if given, is asked at each
    heartbeat: a worker is busy if one of them has changed since the heartbeat before, or `running` is not 0.
    """

    def __init__(
        self,
        settings: Settings,
        producer: AckedProducer,
        kind: str,
        *,
        worker_id: str | None = None,
        endpoint: str | None = None,
        policy: str | None = None,
        counters: Callable[[], dict[str, int]] | None = None,
    ) -> None:
        now = wall_us()
        self.state = WorkerState(
            worker_id=worker_id or new_worker_id(kind),
            kind=kind,
            host=socket.gethostname(),
            pid=os.getpid(),
            endpoint=endpoint,
            policy=policy,
            status=IDLE,
            version=version("headrace"),
            started_at=now,
            last_heartbeat_at=now,
        )
        self._producer = producer
        self._every = settings.heartbeat
        self._counters = counters
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()

    async def start(self) -> None:
        """Announces the worker, and goes on doing so."""
        await self.announce()
        self._task = asyncio.create_task(self._go_on())

    async def announce(self, **changes: object) -> None:
        """Publishes the state with some of its fields changed; returns when the brokers have it."""
        with self._lock:
            sent = self._producer.send(self._now(**changes))
        await sent

    def beat(self) -> None:
        """Publishes the state as it is, from any thread: for a process whose event loop others may block."""
        with self._lock:
            self._producer.post(self._producer.message(self._now()))

    def _now(self, **changes: object) -> WorkerState:
        before = self.state
        counters = self._counters() if self._counters else before.counters
        if before.status != GONE:
            works = counters != before.counters or counters.get("running", 0) > 0
            changes = {"status": BUSY if works else IDLE, **changes}
        self.state = msgspec.structs.replace(before, **changes, counters=counters, last_heartbeat_at=wall_us())
        return self.state

    async def stop(self) -> None:
        """Says goodbye; brokers that are away do not hold up the end."""
        if self._task is not None:
            self._task.cancel()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.announce(status=GONE)
        except (TimeoutError, DeliveryError):
            log.warning("no broker took the goodbye of %s", self.state.worker_id)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._every.total_seconds())
            try:
                await self.announce()
            except DeliveryError as error:  # the brokers may be back at the next one
                log.warning("a heartbeat of %s was not written: %s", self.state.worker_id, error)


class Workers:
    """The live workers, as a follower of the workers topic sees them; may be asked from any thread.

    Who asks for longer than a moment should announce itself too: while nobody is heard, all count as they were.
    """

    def __init__(
        self, settings: Settings, *, client_id: str, changed: Callable[[WorkerState], None] | None = None
    ) -> None:
        self._heartbeat = settings.heartbeat.total_seconds()
        self._states: dict[str, tuple[WorkerState, float]] = {}
        self._lock = threading.Lock()
        self._hearing: Hearing | None = None  # once all of the past is read
        self._changed = changed
        self._follower = TopicFollower(settings, "workers", self._handle, client_id=client_id)

    def start(self) -> "Workers":
        """Starts following; returns when the topic was read to its end."""
        self._follower.start()
        with self._lock:
            self._hearing = Hearing(self._heartbeat, time.monotonic())
        return self

    def close(self) -> None:
        """Stops following."""
        self._follower.close()

    def live(self, kind: str, policy: str | None = None) -> list[WorkerState]:
        """Workers of a kind that have announced themselves lately, oldest first."""
        silence = self._heartbeat * MISSED_HEARTBEATS
        now = time.monotonic()
        with self._lock:
            now = self._hearing.time(now) if self._hearing else now
            states = [s for s, seen in self._states.values() if now - seen < silence]
        found = [s for s in states if s.kind == kind and s.status != GONE and (policy is None or s.policy == policy)]
        return sorted(found, key=lambda s: (s.started_at, s.worker_id))

    def _handle(self, record: Record, message: Message) -> None:
        if not isinstance(record, WorkerState):
            return
        # What an earlier process wrote long ago counts from its own time, not from when it is read here. While the
        # topic is followed, a record is no older than the one before it: clocks of brokers and machines may differ.
        now = time.monotonic()
        age = max(0.0, time.time() - message.timestamp()[1] / 1000)
        with self._lock:
            if self._hearing:
                age = min(age, self._hearing.heard(now))
                now = self._hearing.time(now)
            self._states[record.worker_id] = (record, now - age)
        if self._changed:
            self._changed(record)
