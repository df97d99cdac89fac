"""From the rewards of one group to advantages, and the whitening over a window."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from headrace.streams.errors import InvalidValueError

Values = npt.NDArray[np.float64]

EPSILON = 1e-6
WHITEN_EPSILON = 1e-8  # beside the variance; verl's
SAFE = 1e150  # the square is still finite
GAE = "gae"


def group_relative(rewards: Sequence[float] | Values, *, epsilon: float = EPSILON) -> Values:
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


def mean_centred(rewards: Sequence[float] | Values) -> Values:
    """reward - mean, without the division that favours groups of nearly equal rewards. Dr. GRPO, arXiv:2503.20783."""
    values = np.asarray(rewards, dtype=np.float64)
    if values.size < 2 or np.ptp(values) == 0.0:
        return np.zeros_like(values)
    return values - values.mean()


def leave_one_out(rewards: Sequence[float] | Values) -> Values:
    """reward - mean of the others. RLOO, arXiv:2402.14740. A group of one has no others: zero."""
    values = np.asarray(rewards, dtype=np.float64)
    if values.size < 2 or np.ptp(values) == 0.0:
        return np.zeros_like(values)
    return (values - values.mean()) * (values.size / (values.size - 1))


def as_they_are(rewards: Sequence[float] | Values) -> Values:
    """The rewards themselves."""
    return np.asarray(rewards, dtype=np.float64)


def whiten(values: Values, tokens: npt.NDArray[np.int64]) -> Values:
    """(value - mean) / sqrt(variance + 1e-8) over tokens, where each value stands for so many tokens.

    The variance is the unbiased one. REINFORCE++, arXiv:2501.03262, and PPO's advantages are whitened so over all
    tokens of a window. Where all values are equal they become zero.

    Args:
        values: [n].
        tokens: how many trained tokens have each value, [n]; a value of none is whitened, and does not count.
    """
    count = int(tokens.sum())
    counted = values[tokens > 0]
    if count < 2 or np.ptp(counted) == 0.0:
        return np.zeros_like(values)
    mean = float((values * tokens).sum()) / count
    variance = float((np.square(values - mean) * tokens).sum()) / (count - 1)
    return (values - mean) / np.sqrt(variance + WHITEN_EPSILON)


_OF_GROUP: dict[str, Callable[..., Values]] = {
    "grpo": group_relative,
    "dr_grpo": mean_centred,
    "rloo": leave_one_out,
    "reinforce_pp": as_they_are,
    "reinforce_pp_baseline": mean_centred,
    "reward": as_they_are,
}
WHITENED = frozenset({"reinforce_pp", "reinforce_pp_baseline"})
ADVANTAGES = (*_OF_GROUP, GAE)
"""Names of all estimators; `gae` is of tokens, see `gae`."""


def of_group(name: str, rewards: Sequence[float] | Values, *, epsilon: float = EPSILON) -> Values:
    """Advantages within one group, before any whitening."""
    return group_relative(rewards, epsilon=epsilon) if name == "grpo" else _OF_GROUP[name](rewards)


def check_advantage(name: str) -> str:
    """The estimator's name.

    Raises:
        SettingsError: there is no such estimator.
    """
    if name not in ADVANTAGES:
        raise InvalidValueError(f"advantage {name!r}: choose one of {', '.join(ADVANTAGES)}")
    return name
