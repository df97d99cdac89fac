"""Which version is validated when, and when its round is over. Pure, without a clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.schemas.records import TrainingStep, Trajectory
from headrace.trainers.history import FINISHED


@dataclass
class Round:
    """The rollouts that validate one version.

    Attributes:
        waiting: of those that were asked for, the ids without a trajectory.
    """

    version: int
    waiting: set[str]
    trajectories: list[Trajectory] = field(default_factory=list[Trajectory])


class Schedule:
    """Every so many versions of a run, from the newest that there is on, and its last one; one round at a time.

    A version that comes while another is validated waits, and the newest of those that wait is next: validation never
    piles up behind a fast run.
    """

    def __init__(self, run_id: str, every: int) -> None:
        self.finished = False
        """The run has ended; its last version is validated, and then there is nothing more to do."""
        self._run_id = run_id
        self._every = every
        self._newest: int | None = None
        self._asked: int | None = None

    def step(self, step: TrainingStep) -> None:
        """Takes a step, if it is of this run."""
        if step.run_id == self._run_id:
            self.published(step.policy_version)
            self.finished |= step.metrics.get(FINISHED, 0.0) > 0

    def published(self, version: int) -> None:
        """There is a version of the run's."""
        self._newest = max(version, -1 if self._newest is None else self._newest)

    def due(self) -> int | None:
        """The version that is to be validated now, if no round is open."""
        newest, asked = self._newest, self._asked
        if newest is None or newest == asked:
            return None
        return newest if asked is None or self.finished or newest - asked >= self._every else None

    def begin(self, version: int) -> None:
        """Its round is open."""
        self._asked = version

    @property
    def over(self) -> bool:
        """Whether all is validated that ever will be."""
        return self.finished and self.due() is None


class Chosen:
    """As `Schedule`, of versions that are published already: each of them once, and then there is nothing more."""

    def __init__(self, versions: Sequence[int]) -> None:
        self._left = list(dict.fromkeys(versions))

    def step(self, step: TrainingStep) -> None:
        """What the run does meanwhile does not matter."""

    def published(self, version: int) -> None:
        """As `step`."""

    def due(self) -> int | None:
        """See `Schedule`."""
        return self._left[0] if self._left else None

    def begin(self, version: int) -> None:
        """See `Schedule`."""
        self._left.remove(version)

    @property
    def over(self) -> bool:
        """See `Schedule`."""
        return not self._left
