"""Whose reward a call's tokens answer for."""

from collections.abc import Sequence

import numpy as np

from headrace.streams.errors import InvalidValueError
from headrace.trainers.advantages.estimators import Values

CREDITS = ("final", "own", "return")
"""final: the rollout's final reward, for all its calls; own: the call's own reward; return: the discounted sum of the
rewards from the call on."""


def check_credit(credit: str) -> str:
    """The credit's name.

    Raises:
        SettingsError: there is no such credit.
    """
    if credit not in CREDITS:
        raise InvalidValueError(f"credit {credit!r}: choose one of {', '.join(CREDITS)}")
    return credit


def scores(credit: str, final: float | None, calls: Sequence[float | None], *, gamma: float = 1.0) -> Values:
    """What is compared within a group: one score a rollout (`final`), else one a call. NaN where there is no reward.

    No reward is none, never zero: a call without one has no score of its own, and a call after which none comes has no
    return.

    Args:
        final: the rollout's final reward.
        calls: the reward of each call, in order.
        gamma: discount from one call to the one before, for `return`.
    """
    if credit == "final":
        return np.array([np.nan if final is None else final])
    own = np.array([np.nan if reward is None else reward for reward in calls], dtype=np.float64)
    if credit == "own":
        return own
    returns = np.empty_like(own)
    later = np.nan
    for index in range(own.size - 1, -1, -1):
        reward = own[index]
        later = reward if np.isnan(later) else gamma * later + (0.0 if np.isnan(reward) else reward)
        returns[index] = later
    return returns
