"""How the run stands, as the training and workers topics tell it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.schemas.records import Record, TrainingStep
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings
from headrace.streams.workers import Workers

GOAL_REACHED = "goal_reached"
REWARD = "reward/mean"
STATISTICS = "statistics"


@dataclass(frozen=True)
class Point:
    """One training step of the curve."""

    seconds: float
    step: int
    policy_version: int
    samples: int
    reward: float
    staleness: dict[str, int]


@dataclass
class Curve:
    """The steps so far.

    Attributes:
        samples: trained so far.
        dropped: by reason.
    """

    points: list[Point] = field(default_factory=list[Point])
    samples: int = 0
    steps: int = 0
    policy_version: int = 0
    decided: int = 0
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    staleness: dict[str, int] = field(default_factory=dict[str, int])
    goal_reached_after: float | None = None


class Progress:
    """Follows one run; `curve` may be read from any thread."""

    def __init__(self, settings: Settings, run_id: str, seconds: Callable[[], float]) -> None:
        self.curve = Curve()
        self._run_id = run_id
        self._seconds = seconds
        self._lock = threading.Lock()
        self._training = TopicFollower(settings, "training", self._step, client_id="demo-training")
        self._workers = Workers(settings, client_id="demo-workers")

    def start(self) -> None:
        """Starts following."""
        self._training.start()
        self._workers.start()

    def close(self) -> None:
        """Stops following."""
        self._training.close()
        self._workers.close()

    def rates(self) -> dict[str, int]:
        """The newest counters of the statistics processor."""
        states = self._workers.live(STATISTICS)
        return states[-1].counters if states else {}

    def _step(self, record: Record, message: Message) -> None:
        if not isinstance(record, TrainingStep) or record.run_id != self._run_id:
            return
        with self._lock:
            curve = self.curve
            curve.decided = record.decided
            curve.policy_version = record.policy_version
            for drop in record.window.dropped:
                curve.dropped[drop.reason] = curve.dropped.get(drop.reason, 0) + len(drop.samples)
            for staleness, count in record.staleness.items():
                curve.staleness[staleness] = curve.staleness.get(staleness, 0) + count
            trained = len(record.window.samples)
            if trained:
                curve.steps += 1
                curve.samples += trained
                reward = record.metrics.get(REWARD, float("nan"))
                point = Point(
                    self._seconds(), record.step, record.policy_version, curve.samples, reward, dict(record.staleness)
                )
                curve.points.append(point)
            if record.metrics.get(GOAL_REACHED) and curve.goal_reached_after is None:
                age = max(0.0, time.time() - message.timestamp()[1] / 1000)
                curve.goal_reached_after = self._seconds() - age
