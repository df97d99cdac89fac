"""What counts as a reward."""

import math
import numbers
from typing import Any

from headrace.streams.agent.errors import InvalidRewardError


def reward_number(value: Any, what: str = "a reward") -> float:
    """The value as a finite float; bool, int and numpy's scalars are numbers, numeric text is not.

    Raises:
        InvalidRewardError: with the reason.
    """
    if value is None:
        raise InvalidRewardError("null_reward", f"{what} must be a number, not None; emit none where there is none")
    if not isinstance(value, numbers.Real):
        raise InvalidRewardError(
            "non_numeric_reward", f"{what} must be a number, not {type(value).__name__} {value!r:.80}"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidRewardError("non_finite_reward", f"{what} must be finite, not {number}")
    return number
