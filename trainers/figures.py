"""What every trainer tells of the window that it trained, by the fixed names of metrics. Pure."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from headrace.trainers.batch import TokenRow
from headrace.trainers.groups import Group, Member


def window_figures(
    groups: Sequence[Group], members: Sequence[Member], rows: Sequence[TokenRow], masked: Counter[str]
) -> dict[str, float]:
    """Of a window with at least one trained sample.

    Args:
        groups: all of the window.
        members: the trained ones; the `rollout` of a row is an index of them.
        rows: what was trained of them.
        masked: responses that were masked out, by reason.
    """
    rewards = [reward for m in members if (reward := m.trajectory.final_reward) is not None]
    lengths = np.bincount([row.rollout for row in rows], [row.trained for row in rows])
    return {
        **({"reward/mean": sum(rewards) / len(rewards)} if rewards else {}),
        "groups/count": float(len(groups)),
        "groups/zero_variance": sum(not group.varies for group in groups) / len(groups),
        "groups/size": sum(len(g.members) for g in groups) / len(groups),
        "staleness/mean": sum(m.staleness for m in members) / len(members),
        "staleness/max": float(max(m.staleness for m in members)),
        "length/mean": lengths.mean().item(),
        "length/max": float(lengths.max()),
        "turns": sum(len(m.trajectory.triplets) for m in members) / len(members),
        **{f"masked/{reason}": float(n) for reason, n in masked.items() if n},
    }
