"""One step trained again, and published with its window."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from headrace.schemas.records import LogPosition, PartitionPosition, Record, Reward, TrainingStep, Trajectory, Weights
from headrace.streams.assembly.settings import settings_header
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import Headers
from headrace.trainers.algorithm import Algorithm, Trained
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.groups import At
from headrace.trainers.grpo.effective import SAMPLES, total_size
from headrace.trainers.publish import Publisher, resources_update
from headrace.trainers.replay.distance import distance
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.reader import Recorded
from headrace.trainers.replay.reassembly import Reassembler, differing
from headrace.trainers.replay.settings import ReplaySettings
from headrace.trainers.replay.survey import Survey
from headrace.trainers.replay.windows import OfflineWindows, Planned, ReplayWindows, groups_of
from headrace.trainers.window_settings import WindowSettings

log = logging.getLogger(__name__)

Answers = Mapping[At, Sequence[Reward]]
TOTAL, TOTAL_SHARE = "ess/total", "ess/total_share"
ON_POLICY = ("staleness/", "mismatch/")
"""Metrics that mean nothing where the versions that have sampled are none of this run's."""


@dataclass(frozen=True)
class Replayed:
    """One step.

    Attributes:
        identical: whether the weights are those of the first run, bit for bit; None where those are not known any more,
            and in an offline run.
        distance: the largest difference of a weight where they are not, and both are on disk.
        ess: effective number of its samples, of an offline run.
    """

    step: int
    version: int
    samples: int
    identical: bool | None = None
    distance: float | None = None
    ess: float | None = None


@dataclass
class Outcome:
    """What has become of a replay.

    Attributes:
        offline: it does not train what the first run has trained.
        cut: steps that lie across a bound, and were left out.
        empty: steps of an offline run of whose windows nothing is trained.
        different: steps whose weights are not those of the first run.
        distance: the largest difference of a weight in them, as far as the first run's are on disk.
        otherwise: how many trajectories came out otherwise than recorded, by field, where nothing was to change.
        ess: effective number of all samples of an offline run.
        stopped: it was told to stop before its last step.
    """

    offline: bool
    cut: Sequence[int] = ()
    steps: int = 0
    samples: int = 0
    empty: list[int] = field(default_factory=list[int])
    different: list[int] = field(default_factory=list[int])
    distance: float | None = None
    otherwise: Counter[str] = field(default_factory=Counter[str])
    ess: float | None = None
    stopped: bool = False


class StepTrainer:
    """Trains steps in their order.

    Args:
        reassembler: makes trajectories again; None: they are trained as recorded.
        answers: the rewards of another function, by position; None: the recorded ones.
    """

    def __init__(
        self,
        told: ReplaySettings,
        algorithm: Algorithm,
        window: WindowSettings,
        checkpoints: Checkpoints,
        publisher: Publisher,
        found: Survey,
        outcome: Outcome,
        reassembler: Reassembler | None,
        answers: Answers | None,
    ) -> None:
        self._told = told
        self._algorithm = algorithm
        self._window = window
        self._checkpoints = checkpoints
        self._publisher = publisher
        self._found = found
        self._outcome = outcome
        self._reassembler = reassembler
        self._answers = answers
        self._next: dict[int, int] = {}
        self._weights: list[tuple[int, Mapping[str, float]]] = []

    def train(self, plan: Planned, recorded: Mapping[At, Recorded], first: Weights | None) -> Replayed:
        """One step.

        Args:
            recorded: by position, as far as the log has them.
            first: what the first run published at this step, if that is known.

        Raises:
            ReplayError: its records are not there, or its samples are refused now.
        """
        started, step = wall_us(), plan.step
        made = self._made(recorded)
        exact = not self._told.changed and not self._found.gone
        groups = groups_of(plan, made, offline=self._told.changed)
        windows = ReplayWindows(self._window, plan.trained) if exact else OfflineWindows(self._window)
        if isinstance(windows, OfflineWindows):
            groups = windows.sift(groups)
        trained = self._algorithm.train(groups, windows) if groups else None
        if trained is None and exact:
            raise ReplayError(f"step {step.step}: nothing of its window is trained now")
        weights = None
        if trained is not None:
            algorithm, base = self._algorithm, first and first.base_model
            weights = self._checkpoints.write(
                algorithm.weights(), step.policy, step.policy_version, base, algorithm.adapter()
            )
        done = self._told_of(step, trained, first, weights)
        metrics = self._metrics(trained)

        def follow(positions: list[LogPosition]) -> list[Record]:
            places = dict(zip(made, positions, strict=True))
            self._next |= {p: o + 1 for p, o in sorted((x.partition, x.offset) for x in positions)}
            window = windows.window(plan, places)
            window.position = [PartitionPosition(partition=p, next=end) for p, end in sorted(self._next.items())]
            again = msgspec.structs.replace(
                step,
                run_id=self._told.name,
                window=window,
                state=None,
                metrics=metrics,
                staleness=self._staleness(trained),
                started_at=started,
                ended_at=wall_us(),
            )
            update = [] if weights is None else [resources_update(weights, self._told.name, step.step)]
            return [*update, again]

        samples = [self._message(recorded[at], trajectory) for at, trajectory in made.items()]
        self._publisher.publish_following(samples, follow)
        self._checkpoints.prune()
        return done

    def _made(self, recorded: Mapping[At, Recorded]) -> dict[At, Trajectory]:
        """The trajectories that are trained."""
        if self._reassembler is None:
            return {at: r.trajectory for at, r in recorded.items()}
        again = {at: r for at, r in recorded.items() if at not in self._found.sourceless}
        found = self._reassembler.find(again.values())
        made: dict[At, Trajectory] = {}
        for at, r in recorded.items():
            if at not in again:
                if not self._told.changed:
                    made[at] = r.trajectory  # it cannot be made again, and nothing of it would be otherwise
                continue
            answer = None if self._answers is None else self._answers[at]
            made[at] = self._reassembler.make(r, found, answer)
            if not self._told.changed:
                self._compare(r.trajectory, made[at])
        return made

    def _compare(self, recorded: Trajectory, made: Trajectory) -> None:
        fields = differing(recorded, made)
        if fields and not self._outcome.otherwise:
            log.warning(
                "rollout %s comes out otherwise than recorded (%s): assembled by another version?",
                made.rollout_id,
                ", ".join(fields),
            )
        self._outcome.otherwise.update(fields)

    def _message(self, recorded: Recorded, trajectory: Trajectory) -> tuple[Trajectory, Headers]:
        # Where its records stand, and what it supersedes, are places in the first run's topics.
        own = msgspec.structs.replace(trajectory, source=None, supersedes=None)
        return own, settings_header(self._told.changes.of(recorded.assembly))

    def _told_of(
        self, step: TrainingStep, trained: Trained | None, first: Weights | None, weights: Weights | None
    ) -> Replayed:
        outcome = self._outcome
        outcome.steps += 1
        if trained is None or weights is None:
            outcome.empty.append(step.step)
            return Replayed(step.step, step.policy_version, 0)
        outcome.samples += len(trained.rewards)
        self._weights.append((len(trained.rewards), trained.metrics))
        if outcome.offline:
            outcome.ess = total_size(self._weights)
            return Replayed(step.step, step.policy_version, len(trained.rewards), ess=trained.metrics[SAMPLES])
        identical = None if first is None else _same(first, weights)
        if first is None or identical:
            return Replayed(step.step, step.policy_version, len(trained.rewards), identical)
        outcome.different.append(step.step)
        apart = distance(first, weights)
        if apart is not None:
            outcome.distance = max(apart, outcome.distance or 0.0)
        return Replayed(step.step, step.policy_version, len(trained.rewards), identical, apart)

    def _metrics(self, trained: Trained | None) -> dict[str, float]:
        if trained is None:
            return {}
        if not self._outcome.offline:
            return trained.metrics
        total = self._outcome.ess or 0.0
        metrics = {name: value for name, value in trained.metrics.items() if not name.startswith(ON_POLICY)}
        return metrics | {TOTAL: total, TOTAL_SHARE: total / max(1, self._outcome.samples)}

    def _staleness(self, trained: Trained | None) -> dict[str, int]:
        if trained is None or self._outcome.offline:
            return {}
        return {str(k): n for k, n in sorted(trained.staleness.items())}


def _same(first: Weights, second: Weights) -> bool:
    def tensors(weights: Weights) -> dict[str, str]:
        return {name: digest for name, digest in weights.sha256.items() if name.endswith(".safetensors")}

    return tensors(first) == tensors(second)
