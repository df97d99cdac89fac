"""What retention has taken of what a replay needs. Pure, but for `survey`."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.streams.settings import Settings
from headrace.trainers.groups import At
from headrace.trainers.replay.reader import SampleReader
from headrace.trainers.replay.reassembly import Kept
from headrace.trainers.replay.windows import Planned

NAMED = 5  # rollouts in a line


@dataclass
class Survey:
    """Of the steps that are planned.

    Attributes:
        trajectories: how many they need, trained or beside.
        gone: positions of those that are gone.
        steps_without: numbers of the steps that need one of them.
        sourceless: of trajectories that are there: position and rollout_id of those whose records are gone.
        topics: how many trajectories miss records of each topic.
        steps_sourceless: numbers of the steps that have one of them.
    """

    steps: Sequence[int]
    trajectories: int = 0
    gone: set[At] = field(default_factory=set[At])
    steps_without: list[int] = field(default_factory=list[int])
    sourceless: dict[At, str] = field(default_factory=dict[At, str])
    topics: Counter[str] = field(default_factory=Counter[str])
    steps_sourceless: list[int] = field(default_factory=list[int])

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.gone and not self.sourceless

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "steps": len(self.steps),
            "first_step": self.steps[0],
            "last_step": self.steps[-1],
            "trajectories": self.trajectories,
            "gone": [list(at) for at in sorted(self.gone)],
            "steps_without": self.steps_without,
            "sourceless": sorted(self.sourceless.values()),
            "steps_sourceless": self.steps_sourceless,
            "missing": dict(sorted(self.topics.items())),
        }

    def lines(self) -> list[str]:
        """In words."""
        said = [
            f"steps {self.steps[0]} to {self.steps[-1]}, {self.trajectories} trajectories"
            + ("; all that they need is in the log" if self.whole else "")
        ]
        if self.gone:
            of = f"{len(self.gone)} of {self.trajectories} trajectories are not in the log any more (replay_window)"
            said.append(f"{of}: {_numbers(self.steps_without)} need them")
        if self.sourceless:
            what = ", ".join(f"{topic} of {n}" for topic, n in sorted(self.topics.items()))
            names = sorted(self.sourceless.values())
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            said.append(
                f"the records that {len(names)} trajectories were made of are not in the log any more ({what}): "
                f"{_numbers(self.steps_sourceless)} have them; rollouts {', '.join(names[:NAMED])}{more}"
            )
        return said


def survey(
    settings: Settings, plan: Sequence[Planned], *, sources: bool, stopping: Callable[[], bool] = lambda: False
) -> Survey:
    """Looks for all that a plan needs.

    Args:
        sources: whether trajectories are made again, so that the records that they were made of are needed too.
    """
    reader = SampleReader(settings, [at for planned in plan for at in planned.wanted])
    found = Survey([planned.step.step for planned in plan], gone=reader.gone)
    kept = Kept(settings) if sources else None
    for planned in plan:
        if stopping():
            break
        number = planned.step.step
        found.trajectories += len(planned.wanted)
        if reader.gone & set(planned.wanted):
            found.steps_without.append(number)
        recorded = reader.read(planned.wanted) if kept is not None else {}
        for at, record in recorded.items():
            assert kept is not None
            gone = kept.gone(record.trajectory.source)
            if gone:
                found.sourceless[at] = record.trajectory.rollout_id
                found.topics.update(gone)
                if found.steps_sourceless[-1:] != [number]:
                    found.steps_sourceless.append(number)
    return found


def _numbers(steps: Sequence[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
