"""Follows a run's records and writes its metrics. It decides nothing: a restart writes all of them anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from headrace.schemas.records import Record, ResourcesUpdate, TrainingStep, Trajectory
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings
from headrace.trainers.metrics.names import scalars
from headrace.trainers.metrics.sinks import Sink
from headrace.trainers.metrics.validations import Validations

CLIENT = "metrics"
TICK_SECONDS = 1.0


class MetricsFollower:
    """One run's metrics into sinks.

    The step of a training metric is that of its TrainingStep, the step of `val/*` the policy version.
    """

    def __init__(self, settings: Settings, run_id: str, sinks: Sequence[Sink], *, passed: float) -> None:
        self._settings = settings
        self._run_id = run_id
        self._sinks = sinks
        self._lock = threading.Lock()
        self._wrote = False
        self._validations = Validations(run_id, passed)

    def run(self, stop: threading.Event, ready: Callable[[], None] = lambda: None, *, once: bool = False) -> bool:
        """Works until `stop` is set; whether anything was written.

        Args:
            ready: called when all that there is now was written.
            once: ends then.

        Raises:
            BrokerUnavailableError: no broker answered at the start.
            TopicError: the pipeline has no topics yet.
        """
        settings = self._settings
        partitions = partition_ids(settings, settings.topic("triplets"))
        followers = [
            TopicFollower(settings, "resources", self._publication, client_id=f"{CLIENT}-resources"),
            TopicFollower(settings, "training", self._step, client_id=f"{CLIENT}-training", wants=self._is_ours),
            TopicFollower(settings, "triplets", self._trajectory, client_id=CLIENT, partitions=partitions),
        ]
        try:
            for follower in followers:
                follower.start()
            if not once:
                ready()
                while not stop.wait(TICK_SECONDS):
                    self._validate()
        finally:
            for follower in followers:
                follower.close()
            self._validate(quiet=0.0)
            for sink in self._sinks:
                sink.close()
        return self._wrote

    def _is_ours(self, message: Message) -> bool:
        return message.key() == self._run_id.encode()

    def _step(self, record: Record, message: Message) -> None:
        if isinstance(record, TrainingStep) and (values := scalars(record)):
            self._write(values, record.step, record.ended_at / 1e6)

    def _publication(self, record: Record, message: Message) -> None:
        if isinstance(record, ResourcesUpdate):
            with self._lock:
                self._validations.publication(record)

    def _trajectory(self, record: Record, message: Message) -> None:
        if isinstance(record, Trajectory):
            with self._lock:
                self._validations.trajectory(record, time.monotonic())

    def _validate(self, **options: float) -> None:
        with self._lock:
            scores = self._validations.scores(time.monotonic(), **options)
        for found in scores:
            self._write(found.metrics(), found.version, time.time())

    def _write(self, values: dict[str, float], step: int, seconds: float) -> None:
        with self._lock:
            self._wrote = True
            for sink in self._sinks:
                sink.write(values, step, seconds)
