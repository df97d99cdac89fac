"""How many more rollouts a training run may ask for. Pure."""

import json
import threading
from dataclasses import dataclass
from typing import Any, cast

from headrace.schemas.records import RunManifest, TrainingStep
from headrace.streams.aged_ids import HOUR_MS, AgedIds
from headrace.streams.errors import SettingsError

FINISHED = ("goal_reached", "run/finished")
"""The metrics by which a trainer says that it wants no more: its goal is reached, or its last step is trained."""


@dataclass(frozen=True)
class Bound:
    """How many rollouts of a run may be undecided: enough for the window that is trained and for those that may lag.

    Attributes:
        window: rollouts of one training step.
        max_staleness: policy versions that a sample may be behind.
    """

    window: int
    max_staleness: int

    def __post_init__(self) -> None:
        if self.window < 1 or self.max_staleness < 0:
            raise SettingsError("the feeder needs a window of at least 1 and a max-staleness of at least 0")

    @property
    def rollouts(self) -> int:
        """(max_staleness + 1) windows."""
        return (self.max_staleness + 1) * self.window


def bound_of(manifest: RunManifest, group_size: int) -> Bound | None:
    """The bound that a run's manifest gives, if it says what one needs.

    Args:
        group_size: of the tasks that are fed, where the run takes groups of any size.
    """
    window = json.loads(manifest.settings).get("window")
    if not isinstance(window, dict) or "max_staleness" not in window:
        return None
    found = cast(dict[str, Any], window)
    samples = found.get("samples") or (found.get("groups") or 0) * (found.get("group_size") or group_size)
    return Bound(int(samples), int(found["max_staleness"])) if samples else None


def group_size_of(manifest: RunManifest) -> int | None:
    """The size of the groups that a run trains; None where it takes what its tasks say."""
    window = json.loads(manifest.settings).get("window")
    return cast(dict[str, Any], window).get("group_size") if isinstance(window, dict) else None


class RunBudget:
    """Which rollouts of a run there are, and how many of them are decided. Several threads may call it.

    Times are log time in milliseconds.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.finished = False
        self.rollouts = 0
        """All rollouts of the run so far."""
        self.decided = 0
        self._known = AgedIds()
        self._newest = 0
        self._forgotten = 0  # what is older was forgotten
        self._lock = threading.Lock()

    @property
    def undecided(self) -> int:
        """Rollouts of the run that no training step has decided."""
        return self.rollouts - self.decided

    @property
    def remembered(self) -> int:
        """Ids that are kept in mind."""
        with self._lock:
            return len(self._known)

    def knows(self, key: bytes) -> bool:
        """Whether a rollout was counted or passed over before; `key` is that of its records."""
        with self._lock:
            return self._known.has_key(key)

    def add(self, rollout_id: str, at: int) -> None:
        """Counts a rollout of the run, once. `at` is the append time of a record of it."""
        with self._lock:
            self.rollouts += self._is_new(rollout_id, at)

    def pass_over(self, rollout_id: str, at: int) -> None:
        """Takes a rollout that is of no run, or of another."""
        with self._lock:
            self._is_new(rollout_id, at)

    def _is_new(self, rollout_id: str, at: int) -> bool:
        self._newest = max(at, self._newest)
        if rollout_id in self._known:
            return False
        self._known.add(rollout_id, at)
        return True

    def forget(self, age: int) -> None:
        """Forgets the rollouts that came longer than an age before the newest; call it once the log is read to its end.

        Where nothing of a rollout is written any more once it is that old, it will not be counted again.
        """
        with self._lock:
            before = self._newest - age
            if before >= self._forgotten + HOUR_MS:
                self._known.forget(before)
                self._forgotten = before

    def decide(self, step: TrainingStep) -> None:
        """Takes what a step says, if it is of this run."""
        if step.run_id != self.run_id:
            return
        self.decided = max(self.decided, step.decided)
        self.finished |= any(step.metrics.get(name, 0.0) > 0 for name in FINISHED)

    def groups(self, bound: Bound, group_size: int) -> int:
        """Whole groups that fit below the bound now."""
        return max(0, bound.rollouts - self.undecided) // group_size
