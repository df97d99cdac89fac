"""Whether a version may go into a channel. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.schemas.records import Trajectory
from headrace.streams.errors import HeadraceError, InvalidValueError

VALIDATION = "val"


class PromotionRefusedError(HeadraceError):
    """The version does not go into the channel, which stays as it is."""


@dataclass(frozen=True)
class Validation:
    """What validation says of a version: number of rollouts, and their mean final reward."""

    samples: int
    reward: float | None


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a version has to show.

    Attributes:
        min_samples: fewest validation rollouts.
        min_reward: least mean reward; None: that of the version which the channel has now, where that is known.
    """

    min_samples: int = 20
    min_reward: float | None = None

    def __post_init__(self) -> None:
        if self.min_reward is not None and not math.isfinite(self.min_reward):
            raise InvalidValueError(f"--min-reward {self.min_reward}: give a finite number")

    def check(self, version: int, candidate: Validation, serving: Validation | None) -> None:
        """Raises PromotionRefusedError, with the figures, where the version has not shown enough."""
        if candidate.reward is None or candidate.samples < self.min_samples:
            raise PromotionRefusedError(
                f"version {version} has {candidate.samples} validation rollouts with a reward, of {self.min_samples} "
                f"that it needs: `headrace validate TASKS --run RUN --version {version}` while engines serve it, or "
                "lower --min-samples"
            )
        known = None if serving is None else serving.reward
        least = known if self.min_reward is None else self.min_reward
        if least is not None and candidate.reward < least:
            raise PromotionRefusedError(
                f"version {version} has a validation reward of {candidate.reward:.4f}, below {least:.4f}"
                f"{' of what the channel has' if self.min_reward is None else ''}; --min-reward sets another bound"
            )


def validation_of(trajectories: Iterable[Trajectory], policy: str, version: int) -> Validation:
    """Of the rollouts in mode val that this version alone has generated; of each its newest revision."""
    newest: dict[str, Trajectory] = {}
    for trajectory in trajectories:
        versions = trajectory.policy_version
        if trajectory.mode != VALIDATION or trajectory.policy != policy or versions is None:
            continue
        if versions.min != version or versions.max != version:
            continue
        before = newest.get(trajectory.rollout_id)
        if before is None or trajectory.revision >= before.revision:
            newest[trajectory.rollout_id] = trajectory
    # One that is not finite, which no part of Headrace writes, would let every version pass.
    rewards = [r for t in newest.values() if (r := t.final_reward) is not None and math.isfinite(r)]
    return Validation(len(rewards), sum(rewards) / len(rewards) if rewards else None)
