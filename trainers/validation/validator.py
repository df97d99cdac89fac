"""Validates a run's versions as they come: produces the tasks, waits for their trajectories, tells the score."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from headrace.schemas.records import Record, ResourcesUpdate, TrainingStep, Trajectory
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.producing.producer import TaskProducer
from headrace.streams.producing.specs import TaskSpec, tasks_of
from headrace.streams.settings import Settings
from headrace.trainers.validation.rounds import Chosen, Round, Schedule
from headrace.trainers.validation.scores import VALIDATION, EarlyStop, Score, score

log = logging.getLogger(__name__)

CLIENT = "validator"
POLL_SECONDS = 0.2
ROUND_SECONDS = 600.0


class Validator:
    """Follows one run. Its tasks have the mode `val`, belong to no run, and pin the publication that they validate.

    A pin is what the rollouts' records say; engines that have gone on generate with a newer version, which the score's
    `exact` shows. Serve one version alone (an engine without sync, or a channel) where that matters.

    Args:
        every: versions between two rounds.
        samples: rollouts of each task; pass@k for k up to this.
        passed: least reward of a solved task.
        round_seconds: what has no trajectory by then is left out.
        versions: these and no others, whatever the run does; None follows the run.
        told: hears of each score.
    """

    def __init__(
        self,
        settings: Settings,
        specs: Sequence[TaskSpec],
        run_id: str,
        *,
        every: int,
        samples: int,
        passed: float,
        stop_early: EarlyStop,
        told: Callable[[Score], None],
        round_seconds: float = ROUND_SECONDS,
        versions: Sequence[int] | None = None,
    ) -> None:
        self._settings = settings
        self._specs = specs
        self._run_id = run_id
        self._samples = samples
        self._passed = passed
        self._stop_early = stop_early
        self._told = told
        self._round_seconds = round_seconds
        self._lock = threading.Lock()
        self._versions = versions
        self._schedule = Schedule(run_id, every) if versions is None else Chosen(versions)
        self._publications: dict[int, str] = {}
        self._round: Round | None = None

    def run(self, stop: threading.Event, ready: Callable[[int | None], None] = lambda newest: None) -> None:
        """Works until `stop` is set, the run has ended, or its validation gets no better.

        Args:
            ready: told the newest version of the run, None before its first one, once its log is read.

        Raises:
            SettingsError: the run has not published one of the given versions.
            BrokerUnavailableError: no broker answered at the start.
            TopicError: the pipeline has no topics yet.
        """
        settings = self._settings
        partitions = partition_ids(settings, settings.topic("triplets"))
        now_ms = int(time.time() * 1000)
        followers = [
            TopicFollower(settings, "resources", self._publication, client_id=f"{CLIENT}-resources"),
            TopicFollower(settings, "training", self._step, client_id=f"{CLIENT}-training"),
            TopicFollower(
                settings, "triplets", self._trajectory, client_id=CLIENT, partitions=partitions, since_ms=now_ms
            ),
        ]
        try:
            for follower in followers:
                follower.start()
            self._check_versions()
            with TaskProducer(settings, client_id=CLIENT) as producer:
                ready(self._newest())
                while not stop.is_set() and (version := self._next(stop)) is not None:
                    self._begin(producer, version)
                    if (found := self._end(stop)) is not None and self._is_enough(found):
                        return
        finally:
            for follower in followers:
                follower.close()

    def _newest(self) -> int | None:
        with self._lock:
            return max(self._publications, default=None)

    def _check_versions(self) -> None:
        newest = self._newest()
        for version in self._versions or ():
            if version not in self._publications:
                there = "none yet" if newest is None else f"the newest is {newest}"
                raise SettingsError(f"run {self._run_id} has not published version {version}: {there}")

    def _next(self, stop: threading.Event) -> int | None:
        """The next version, once there is one; None where there will be none."""
        while not stop.wait(POLL_SECONDS):
            with self._lock:
                version = self._schedule.due()
                if version is not None and version in self._publications:
                    return version
                if self._schedule.over:
                    return None
        return None

    def _begin(self, producer: TaskProducer, version: int) -> None:
        with self._lock:
            pinned = self._publications[version]
            self._schedule.begin(version)
        specs = [
            TaskSpec(input=s.input, mode=VALIDATION, resources_id=pinned, config=s.config, metadata=s.metadata)
            for s in self._specs
        ]
        tasks = list(tasks_of(specs, wall_us, group_size=self._samples, mode=VALIDATION))
        with self._lock:
            self._round = Round(version, {t.rollout_id for t in tasks})
        producer.produce(tasks)

    def _end(self, stop: threading.Event) -> Score | None:
        deadline = time.monotonic() + self._round_seconds
        while not stop.wait(POLL_SECONDS):
            with self._lock:
                current = self._round
                assert current is not None
                if current.waiting and time.monotonic() < deadline:
                    continue
                self._round = None
            if current.waiting:
                log.warning("version %d: %d rollouts have no trajectory", current.version, len(current.waiting))
            return score(current.version, current.trajectories, passed=self._passed)
        return None

    def _is_enough(self, found: Score) -> bool:
        self._told(found)
        if not self._stop_early.take(found):
            return False
        best = self._stop_early.best
        assert best is not None
        log.info("no better than version %d with %.4f since %d", best.version, best.reward, self._stop_early.since)
        return True

    def _publication(self, record: Record, message: Message) -> None:
        if isinstance(record, ResourcesUpdate) and record.run_id == self._run_id:
            with self._lock:
                self._publications[record.version] = record.resources_id
                self._schedule.published(record.version)

    def _step(self, record: Record, message: Message) -> None:
        if isinstance(record, TrainingStep):
            with self._lock:
                self._schedule.step(record)

    def _trajectory(self, record: Record, message: Message) -> None:
        if not isinstance(record, Trajectory):
            return
        with self._lock:
            current = self._round
            if current is not None and record.rollout_id in current.waiting:
                current.waiting.discard(record.rollout_id)
                current.trajectories.append(record)
