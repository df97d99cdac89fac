"""Reads the topics after the drain and counts: was anything lost, was anything trained twice, did it learn?

It trusts no counter of the pipeline: produced tasks, terminal states, trajectories and windows are matched record by
record. All of the topics are read, committed records only.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

from headrace.schemas.records import Record, RolloutState, Task, TrainingStep, Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import describe
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

R = TypeVar("R", bound=Record)
TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
EDGE_SAMPLES = 200
Place = tuple[int, int]


@dataclass
class Verdict:
    """What the topics say of a run.

    Attributes:
        produced: distinct rollouts that a Task asked for.
        not_ended: produced, but without a terminal state.
        no_trajectory: produced, but without a trajectory of revision 0.
        undecided: their trajectory is in no TrainingStep.
        trajectory_twice: more than one trajectory of revision 0.
        trained_twice: rollouts that stand in more than one window.
        dropped: decided without being trained, by reason.
        reward_first, reward_last: mean final reward of the first and last 200 trained samples.
    """

    produced: int = 0
    samples: int = 0
    steps: int = 0
    policy_version: int = 0
    not_ended: list[str] = field(default_factory=list[str])
    no_trajectory: list[str] = field(default_factory=list[str])
    undecided: list[str] = field(default_factory=list[str])
    trajectory_twice: list[str] = field(default_factory=list[str])
    trained_twice: list[str] = field(default_factory=list[str])
    failed: int = 0
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    reward_first: float | None = None
    reward_last: float | None = None

    @property
    def lost(self) -> int:
        """Rollouts of which something is missing."""
        return len({*self.not_ended, *self.no_trajectory, *self.undecided})

    @property
    def doubled(self) -> int:
        """Rollouts that are trained, or assembled, more than once."""
        return len({*self.trained_twice, *self.trajectory_twice})

    @property
    def clean(self) -> bool:
        """Nothing is lost and nothing is doubled."""
        return self.lost == 0 and self.doubled == 0


def _records(settings: Settings, name: str, record_type: type[R]) -> list[tuple[Place, R]]:
    topic = settings.topic(name)
    codec = Codec(settings)
    partitions = range(len(describe(settings)[topic].partitions))
    found: list[tuple[Place, R]] = []
    for message in read_topic(settings, topic, partitions, client_id="demo-checker"):
        record = codec.decode(message.value()) if message.value() is not None else None
        if isinstance(record, record_type):
            found.append(((message.partition() or 0, message.offset() or 0), record))
    return found


def check(settings: Settings, run_id: str) -> Verdict:
    """Matches the topics of a drained run."""
    verdict = Verdict()
    produced = dict.fromkeys(task.rollout_id for _, task in _records(settings, "tasks", Task))
    states = {state.rollout_id: state for _, state in _records(settings, "rollouts", RolloutState)}
    trajectories = [(at, t) for at, t in _records(settings, "triplets", Trajectory) if t.revision == 0]
    steps = sorted(
        (s for _, s in _records(settings, "training", TrainingStep) if s.run_id == run_id), key=lambda s: s.step
    )
    verdict.produced = len(produced)
    verdict.not_ended = [i for i in produced if i not in states or states[i].status not in TERMINAL]
    verdict.failed = sum(1 for i in produced if i in states and states[i].status == "failed")
    assembled = Counter(t.rollout_id for _, t in trajectories)
    verdict.no_trajectory = [i for i in produced if i not in assembled]
    verdict.trajectory_twice = [i for i, n in assembled.items() if n > 1]

    trained = [(p.partition, p.offset) for step in steps for p in step.window.samples]
    dropped = Counter[str]()
    decided = set(trained)
    for step in steps:
        for drop in step.window.dropped:
            places = [(p.partition, p.offset) for p in drop.samples]
            dropped[drop.reason] += len(places)
            decided.update(places)
    verdict.dropped = dict(dropped)
    verdict.undecided = [t.rollout_id for at, t in trajectories if t.rollout_id in produced and at not in decided]

    by_place = dict(trajectories)
    trained_ids = Counter(by_place[at].rollout_id if at in by_place else f"{at[0]}:{at[1]}" for at in trained)
    verdict.trained_twice = [i for i, n in trained_ids.items() if n > 1]
    verdict.samples = len(trained)
    verdict.steps = sum(1 for s in steps if s.window.samples)
    verdict.policy_version = steps[-1].policy_version if steps else 0
    rewards = [r for at in trained if at in by_place and (r := by_place[at].final_reward) is not None]
    if rewards:
        first, last = rewards[:EDGE_SAMPLES], rewards[-EDGE_SAMPLES:]
        verdict.reward_first = sum(first) / len(first)
        verdict.reward_last = sum(last) / len(last)
    return verdict
