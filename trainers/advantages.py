"""Advantages: how much better a rollout did than others of its group. Pure; rewards in, one value a rollout out."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace.streams.errors import SettingsError

CREDITS = ("final",)
"""Whose advantage a call's tokens get; `final`: that of the rollout's final reward, for all its calls."""

EPSILON = 1e-6
SAFE = 1e150  # the square is still finite


def group_relative(rewards: Sequence[float], *, epsilon: float = EPSILON) -> npt.NDArray[np.float64]:
    """Advantages of one group: (reward - mean) / (standard deviation + epsilon). GRPO, arXiv:2402.03300, section 4.1.

    The standard deviation is the unbiased one, as in TRL and verl. A group whose rewards are equal, or of one member,
    has zero advantages.

    Args:
        rewards: of every member that has one, trained or not.
        epsilon: keeps small differences from becoming large advantages.
    """
    values = np.asarray(rewards, dtype=np.float64)
    largest = np.abs(values).max(initial=0.0)
    if largest > SAFE:  # squares would overflow; epsilon is nothing beside such rewards
        values = values / largest
    if values.size < 2 or np.ptp(values) == 0.0:
        return np.zeros_like(values)
    centred = values - values.mean()
    return centred / (values.std(ddof=1) + epsilon)


def check_credit(credit: str) -> str:
    """The credit's name.

    Raises:
        SettingsError: there is no such credit.
    """
    if credit not in CREDITS:
        raise SettingsError(f"credit {credit!r}: choose one of {', '.join(CREDITS)}")
    return credit
