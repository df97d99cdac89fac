"""Windows of imitation: any model's trajectories, of any age, with or without a group."""

from dataclasses import dataclass
from math import isfinite

import msgspec

from headrace.schemas.records import Trajectory
from headrace.trainers.groups import missing_rewards
from headrace.trainers.window import At, Member, Windows
from headrace.trainers.window_settings import WindowSettings

ALONE = "alone/"


@dataclass(frozen=True, kw_only=True)
class ImitationWindowSettings(WindowSettings):
    """As `WindowSettings`; `policy` is that of the weights that are trained, whoever generated.

    Attributes:
        min_reward: trajectories with a lower final reward, or without one, are dropped; None takes all.
        by_group: waits for complete groups, so that the best of each can be chosen; otherwise each trajectory is a
            group of its own.
    """

    min_reward: float | None = None
    by_group: bool = False


class ImitationWindows(Windows):
    """See `Windows`."""

    settings: ImitationWindowSettings

    def take(self, at: At, append_time: int, trajectory: Trajectory) -> None:
        """See `Windows`."""
        if not self.settings.by_group or trajectory.group_id is None:
            trajectory = msgspec.structs.replace(
                trajectory, group_id=ALONE + trajectory.rollout_id, group_size=1, sample_index=0
            )
        super().take(at, append_time, trajectory)

    def _refusal(self, trajectory: Trajectory) -> str | None:
        settings = self.settings
        external = trajectory.origin == "external"
        reward = trajectory.final_reward
        if external and not settings.accept_external:
            return "external_not_accepted"
        if trajectory.mode != "train" and not (external and trajectory.mode is None):
            return "mode"
        if trajectory.run_id not in (None, settings.run_id) and not settings.accept_other_runs:
            return "other_run"
        if self.finished:
            return "run_finished"
        if reward is not None and not isfinite(reward):
            return "reward_not_finite"
        # What waits for its group, or for rewards that come later, is judged when its window closes.
        waits = settings.by_group or missing_rewards(trajectory, settings.require_rewards)
        return None if waits else self._useless(trajectory)

    def _unfit(self, member: Member) -> str | None:
        if missing_rewards(member.trajectory, self.settings.require_rewards):
            return "no_required_reward"
        return self._useless(member.trajectory)

    def _useless(self, trajectory: Trajectory) -> str | None:
        least, reward = self.settings.min_reward, trajectory.final_reward
        if not trajectory.triplets and not trajectory.conversations:
            return "no_triplets"
        if least is None:
            return None
        if reward is None:
            return "no_reward"
        return None if reward >= least else "reward_below"
