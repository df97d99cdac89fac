"""What validation rollouts say of a version: mean reward and pass@k. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import comb

from headrace.schemas.records import Trajectory
from headrace.streams.errors import SettingsError

VALIDATION = "val"
PASSED = 1.0  # a reward of at least this much solves a task


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """The unbiased estimate of P(one of k samples passes): 1 - C(n - c, k) / C(n, k). Codex, arXiv:2107.03374, eq. 1.

    Args:
        samples: n, at least k.
        passed: c of them.
    """
    if not 1 <= k <= samples or not 0 <= passed <= samples:
        raise SettingsError(f"pass@{k} needs 1 to {samples} of the {samples} samples, {passed} of which passed")
    return 1.0 - comb(samples - passed, k) / comb(samples, k)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Of one version.

    Attributes:
        tasks: distinct tasks (groups).
        rollouts: with a reward.
        unrewarded: that have ended without one; they count for nothing else.
        reward: mean final reward.
        passes: pass@k by k, over the tasks with at least k rewarded rollouts.
        exact: share of the rollouts all of whose tokens this version has generated.
    """

    version: int
    tasks: int
    rollouts: int
    unrewarded: int
    reward: float
    passes: dict[int, float]
    exact: float

    def metrics(self) -> dict[str, float]:
        """By the fixed names."""
        return {
            "val/reward": self.reward,
            "val/rollouts": float(self.rollouts),
            "val/unrewarded": float(self.unrewarded),
            "val/exact": self.exact,
            **{f"val/pass@{k}": value for k, value in self.passes.items()},
        }


def score(version: int, trajectories: Iterable[Trajectory], *, passed: float = PASSED) -> Score | None:
    """The score of the rollouts that were asked for to validate a version; None where none has a reward.

    Of each rollout its newest revision counts. Which version really generated a rollout is what `exact` tells: engines
    may have gone on to the next one meanwhile.

    Args:
        passed: least final reward of a solved task.
    """
    newest: dict[str, Trajectory] = {}
    for trajectory in trajectories:
        before = newest.get(trajectory.rollout_id)
        if before is None or trajectory.revision >= before.revision:
            newest[trajectory.rollout_id] = trajectory
    groups: dict[str, list[float]] = {}
    exact = 0
    for trajectory in newest.values():
        if trajectory.final_reward is None:
            continue
        groups.setdefault(trajectory.group_id or trajectory.rollout_id, []).append(trajectory.final_reward)
        versions = trajectory.policy_version
        exact += versions is not None and versions.min == version == versions.max
    rewards = [reward for group in groups.values() for reward in group]
    if not rewards:
        return None
    return Score(
        version=version,
        tasks=len(groups),
        rollouts=len(rewards),
        unrewarded=len(newest) - len(rewards),
        reward=sum(rewards) / len(rewards),
        passes=_passes(list(groups.values()), passed),
        exact=exact / len(rewards),
    )


def _passes(groups: Sequence[Sequence[float]], passed: float) -> dict[int, float]:
    values: dict[int, float] = {}
    k = 1
    while True:
        found = [pass_at_k(len(g), sum(r >= passed for r in g), k) for g in groups if len(g) >= k]
        if not found:
            return values
        values[k] = sum(found) / len(found)
        k *= 2


@dataclass
class EarlyStop:
    """Ends a run whose validation gets no better.

    Attributes:
        patience: validations in a row without a better one; None: never.
        least: how much better is better.
    """

    patience: int | None = None
    least: float = 0.0
    best: Score | None = None
    since: int = 0
    seen: list[int] = field(default_factory=list[int])

    def take(self, found: Score) -> bool:
        """Whether it is time to stop."""
        self.seen.append(found.version)
        if self.best is None or found.reward > self.best.reward + self.least:
            self.best, self.since = found, 0
        else:
            self.since += 1
        return self.patience is not None and self.since >= self.patience
