"""The figures of the display, folded from records and offsets. Pure."""

from collections import Counter
from collections.abc import Mapping

from headrace.schemas.records import TrainingStep, Trajectory
from headrace.streams.statistics.rates import EventRate, RecentMean, TotalRate

MILLI = 1000
COUNTED = ("spans", "rewards")
"""Topics whose rate is that of their end offsets: their writers use no transactions, whose markers take offsets too."""


class Figures:
    """What has been seen, and the counters made of it."""

    def __init__(self) -> None:
        self.run_id: str | None = None
        self.policy_version = 0
        self._ended = EventRate()
        self._trajectories = EventRate()
        self._steps = EventRate()
        self._totals = {name: TotalRate() for name in COUNTED}
        self._statuses: Counter[str] = Counter()
        self._rewards = RecentMean()
        self._staleness = RecentMean()
        self._lags: dict[str, int] = {}
        self._unreadable = 0

    def trajectory(self, record: Trajectory, at: float) -> None:
        """Counts a trajectory that was appended at a time in seconds."""
        self._trajectories.add(at)
        if record.revision > 0:
            return
        self._ended.add(at)
        self._statuses[record.status] += 1
        if record.final_reward is not None:
            self._rewards.add(record.final_reward)
        if record.policy_version is not None and record.run_id == self.run_id:
            self._staleness.add(max(0, self.policy_version - record.policy_version.min))

    def step(self, record: TrainingStep, at: float) -> None:
        """Takes a training step; the run of the newest one is the run that is shown."""
        self._steps.add(at)
        self.run_id = record.run_id
        self.policy_version = record.policy_version

    def unreadable(self) -> None:
        """Counts a record that could not be read; whoever owns it writes the dead letter."""
        self._unreadable += 1

    def total(self, topic: str, total: int, at: float) -> None:
        """Takes the sum of a topic's end offsets."""
        self._totals[topic].sample(at, total)

    def lags(self, lags: Mapping[str, int]) -> None:
        """Takes the lag of each consumer group, in records."""
        self._lags = dict(lags)

    def counters(self, now: float) -> dict[str, int]:
        """The figures as a WorkerState carries them: whole numbers, fractions times 1000 under names that say so."""
        counters = {
            "rollouts_per_second": round(self._ended.per_second(now)),
            "trajectories_per_second": round(self._trajectories.per_second(now)),
            "training_steps_per_second_x1000": round(self._steps.per_second(now) * MILLI),
            "policy_version": self.policy_version,
            "unreadable": self._unreadable,
        }
        counters |= {f"{name}_per_second": round(rate.per_second()) for name, rate in self._totals.items()}
        counters |= {f"rollouts_{status}": count for status, count in self._statuses.items()}
        counters |= {f"lag_{group}": lag for group, lag in self._lags.items()}
        for name, recent in (("reward_mean_x1000", self._rewards), ("staleness_mean_x1000", self._staleness)):
            mean = recent.mean()
            if mean is not None:
                counters[name] = round(mean * MILLI)
        return counters
