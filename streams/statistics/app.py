"""The Faust app of the live statistics.

It decodes one record a rollout, its trajectory, and the training steps. Spans and rewards are counted by the end
offsets of their topics. Its figures go out once a second as the counters of a WorkerState of kind `statistics`.
"""

import asyncio
import logging
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import faust

from headrace.schemas.records import TrainingStep, Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import UnavailableError
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import GROUPS, partition_ids
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.faust_app import RAW, make_faust_app
from headrace.streams.kafka.group_offsets import GroupOffsets
from headrace.streams.settings import Settings
from headrace.streams.statistics.figures import COUNTED, Figures
from headrace.streams.statistics.lags import group_lags, topic_ends
from headrace.streams.workers import WorkerAnnouncer, new_worker_id

log = logging.getLogger(__name__)

KIND = "statistics"
EVERY = timedelta(seconds=1)
READ_BY_GROUPS = ("tasks", "attempts", "spans", "rewards", "triplets")
BACKLOG = 4096  # events that Faust buffers
COMMIT_SECONDS = 5.0


def make_app(settings: Settings, figures: Figures, folder: str) -> faust.App:
    """The app; make it on the event loop that will run it.

    Args:
        folder: Faust wants one, though tables in memory leave nothing in it.
    """
    app: Any = make_faust_app(settings, KIND, folder, start="latest", backlog=BACKLOG, commit=COMMIT_SECONDS)
    codec = Codec(settings)

    async def trajectories(stream: Any) -> None:
        async for event in stream.events():
            try:
                record = codec.decode_as(Trajectory, event.value)
            except (DecodeError, UnavailableError):  # who trains on it waits; these figures do not
                figures.unreadable()
            else:
                figures.trajectory(record, event.message.timestamp)

    async def steps(stream: Any) -> None:
        async for event in stream.events():
            try:
                record = codec.decode(event.value)
            except (DecodeError, UnavailableError):
                figures.unreadable()
            else:
                if isinstance(record, TrainingStep):
                    figures.step(record, event.message.timestamp)

    app.agent(app.topic(settings.topic("triplets"), **RAW), name="trajectories")(trajectories)
    app.agent(app.topic(settings.topic("training"), **RAW), name="steps")(steps)
    return app


class OffsetWatch:
    """Asks the brokers for ends and lags, away from the event loop."""

    def __init__(self, settings: Settings, figures: Figures) -> None:
        self._settings = settings
        self._figures = figures
        self._admin = make_admin(settings, "statistics-admin")
        self._offsets = GroupOffsets(settings, "statistics-offsets")
        self._partitions = [
            (topic, p)
            for topic in map(settings.topic, READ_BY_GROUPS)
            for p in partition_ids(settings, topic, self._admin)
        ]

    def look(self) -> None:
        """One round of questions; blocks until they are answered."""
        ends, totals = topic_ends(self._admin, self._partitions)
        now = time.time()
        for name in COUNTED:
            self._figures.total(name, totals[self._settings.topic(name)], now)
        groups = [g for g in GROUPS if g != KIND]
        if self._figures.run_id is not None:
            groups.append(f"trainer.{self._figures.run_id}")
        lags = group_lags(self._offsets, groups, ends)
        self._figures.lags({name.partition(".")[0]: lag for name, lag in lags.items()})

    def close(self) -> None:
        """Lets the clients go."""
        self._offsets.close()


async def serve(settings: Settings, worker_id: str | None = None, ready: Callable[[str], None] | None = None) -> None:
    """Runs until it is cancelled.

    Args:
        ready: called with the worker's id once it is there to be read.

    Raises:
        TopicError: topics are missing.
        BrokerUnavailableError: no broker answered.
    """
    figures = Figures()
    watch = await asyncio.to_thread(OffsetWatch, settings, figures)
    producer = AckedProducer(settings, "statistics")
    announcer = WorkerAnnouncer(
        settings,
        producer,
        KIND,
        worker_id=worker_id or new_worker_id(KIND),
        counters=lambda: figures.counters(time.time()),
    )
    folder = tempfile.TemporaryDirectory(prefix="headrace-statistics-")
    app = make_app(settings, figures, folder.name)
    await app.start()
    try:
        await announcer.start()
        if ready:
            ready(announcer.state.worker_id)
        while not app.should_stop:
            await asyncio.sleep(EVERY.total_seconds())
            await asyncio.to_thread(watch.look)
            await announcer.announce()
    finally:
        await app.stop()
        folder.cleanup()
        await asyncio.to_thread(watch.close)
        await announcer.stop()
        await producer.close()
