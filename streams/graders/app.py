"""The Faust app of a grader: trajectories in, rewards out."""

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import faust

from headrace.schemas.records import Reward, Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.counts import Counts
from headrace.streams.errors import SettingsError, UnavailableError
from headrace.streams.graders.rewards import GradingRules, passed_over, rewards_of
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.client_log import Seldom
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.faust_app import RAW, make_faust_app
from headrace.streams.settings import Settings, load_settings
from headrace.streams.workers import WorkerAnnouncer, new_worker_id

log = logging.getLogger(__name__)
log.addFilter(Seldom())

KIND = "grader"
BACKLOG = 64  # trajectories that Faust holds in memory
COMMIT_SECONDS = 1.0
LOOK_SECONDS = 0.2
UNAVAILABLE_SECONDS = 1.0
COUNTED = ("graded", "answered_none", "failed", "unreadable", "revisions", "external", "too_old")
NAME_CHARACTERS = 100
TOLD = {
    "external": "it is outside traffic, which is graded with --external (external=True)",
    "too_old": "it is older than feedback_window",
}
"""Why trajectories are passed over, where that may surprise."""


class EventMessage:
    """A Faust event as Headrace reads a message."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def topic(self) -> str:
        return self._message.topic

    def partition(self) -> int:
        return self._message.partition

    def offset(self) -> int:
        return self._message.offset

    def key(self) -> bytes | None:
        return self._message.key

    def value(self) -> bytes | None:
        return self._message.value

    def headers(self) -> list[tuple[str, bytes | None]]:
        found: Any = self._message.headers or []
        return list(found.items()) if hasattr(found, "items") else list(found)

    def timestamp(self) -> tuple[int, int]:
        return 1, int(self._message.timestamp * 1000)

    def error(self) -> None:
        return None


class GraderApp:
    """A Faust app with what a grader needs beside it. `grader_app` makes it.

    Attributes:
        app: the Faust app; its group is `<prefix>.grader.<name>`.
        topic: of the trajectories, raw; read it through `trajectories`.
        counts: what became of the trajectories.
        jobs: what is under way; cancelled at the end.
    """

    def __init__(self, settings: Settings, rules: GradingRules, *, start: str, worker_id: str | None) -> None:
        self.rules = rules
        self.counts = Counts()
        self.counts.declare(COUNTED)
        self.jobs: set[asyncio.Task[None]] = set()
        self._settings = settings
        self._worker_id = worker_id or new_worker_id(f"{KIND}-{rules.name}")
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-grader-")
        group = f"{KIND}.{rules.name}"
        self.app: faust.App = make_faust_app(
            settings, group, self._folder.name, start=start, backlog=BACKLOG, commit=COMMIT_SECONDS
        )
        self.topic: Any = self.app.topic(settings.topic("triplets"), **RAW)
        self._codec = Codec(settings)
        self._producer = AckedProducer(settings, group, linger_ms=0)
        self._dead_letter = DeadLetterMaker(settings, group)
        self._died: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def trajectories(self, stream: Any) -> AsyncIterator[Trajectory]:
        """The trajectories that are to be graded, for a Faust agent; the others are counted.

        One is acknowledged when the agent asks for the next, or raises: catch what your own code may raise.
        """
        async for event in stream.events():
            record = await self.read(event)
            if record is not None:
                yield record

    async def read(self, event: Any) -> Trajectory | None:
        """The trajectory of an event of the topic; None of one that is not graded, or that no schema reads."""
        message = EventMessage(event.message)
        while True:
            try:
                record = self._codec.decode_as(Trajectory, message.value())
                break
            except DecodeError as error:
                self.counts.add("unreadable")
                await self.put_away(event, error.reason, str(error))
                return None
            except UnavailableError as error:
                log.warning("waiting: %s", error)
                await asyncio.sleep(UNAVAILABLE_SECONDS)
        reason = passed_over(record, self.rules, appended_ms=message.timestamp()[1], now_ms=int(time.time() * 1000))
        if reason is not None:
            self.counts.add(reason)
            if reason in TOLD:
                log.warning("Passed over (%s): rollout %s is not graded: %s", reason, record.rollout_id, TOLD[reason])
            return None
        return record

    async def reward(self, record: Trajectory, answer: Any) -> None:
        """Writes the rewards of an answer, however long the brokers are away: a number, dimensions, or None.

        Raises:
            InvalidRewardError: a value is no finite number.
            ValueError: the primary dimension is missing.
        """
        await self.write(rewards_of(answer, record, self.rules, at=wall_us()), record)

    async def write(self, rewards: list[Reward], record: Trajectory) -> None:
        """Writes the rewards of one trajectory, all or none.

        Raises:
            EncodeError, RecordTooLargeError: a name or a number of dimensions that no record holds.
        """
        messages = [await self._producer.make(reward) for reward in rewards]
        await asyncio.gather(*map(self._producer.insist, messages))
        self.counts.add("graded" if rewards else "answered_none")
        if not rewards and record.conversations is None:
            log.warning(
                "No answer from grader %s about rollout %s, whose messages and text are empty: is that why? "
                "They are there where the assembler runs with --conversations",
                *(self.rules.name, record.rollout_id),
            )

    async def put_away(self, event: Any, reason: str, detail: str) -> None:
        """Writes the dead letter of an event."""
        letter = await asyncio.to_thread(self._dead_letter, EventMessage(event.message), reason, detail)
        await self._producer.insist(letter)

    def die(self, error: BaseException) -> None:
        """`serve` ends with an error: something is wrong that is no grader's."""
        if not self._died.done():
            self._died.set_exception(error)

    async def serve(self, ready: Callable[[str], None] | None = None) -> None:
        """Runs until it is cancelled.

        Args:
            ready: called with the worker's id once it is there to be read.

        Raises:
            TopicError: topics are missing.
            BrokerUnavailableError: no broker answered.
        """
        await asyncio.to_thread(partition_ids, self._settings, self._settings.topic("triplets"))
        announcer = WorkerAnnouncer(
            self._settings, self._producer, KIND, worker_id=self._worker_id, counters=self.counts.values
        )
        try:
            await self.app.start()
            await announcer.start()
            if ready is not None:
                ready(self._worker_id)
            while not self.app.should_stop and not self._died.done():  # noqa: ASYNC110  # Faust tells nobody
                await asyncio.sleep(LOOK_SECONDS)
            if self._died.done():
                self._died.result()
        finally:
            for job in self.jobs:
                job.cancel()
            await self.app.stop()
            await announcer.stop()
            await self._producer.close()
            self._folder.cleanup()
            log.info("%s stopped: %s", self._worker_id, self.counts.values())


async def grader_app(
    name: str,
    *,
    settings: Settings | None = None,
    primary: bool = True,
    primary_key: str | None = None,
    external: bool = False,
    start: str = "earliest",
    worker_id: str | None = None,
) -> GraderApp:
    """A Faust app that reads trajectories, made on the event loop that will run it; `serve` runs it.

    Args:
        name: of the grader: letters, digits, '.', '_' and '-'. Its rewards carry it, and its consumer group does.
        settings: of the pipeline; those of the environment and `headrace.toml` if they are not given.
        primary, primary_key, external: see `GradingRules`.
        start: `earliest` or `latest`: where a grader that has never run begins.

    Raises:
        SettingsError: it cannot be called so.
    """
    if not 0 < len(name) <= NAME_CHARACTERS or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        raise SettingsError(f"grader {name!r}: use letters, digits, '.', '_' and '-', as group names do")
    settings = settings or load_settings()
    rules = GradingRules(name, primary, primary_key, external, settings.feedback_window)
    return GraderApp(settings, rules, start=start, worker_id=worker_id)
