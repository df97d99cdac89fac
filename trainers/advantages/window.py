"""Advantages of all that a window's groups hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.trainers.advantages.estimators import EPSILON, WHITENED, Values, of_group, whiten


@dataclass(frozen=True, slots=True)
class Scored:
    """A member of a group.

    Attributes:
        scores: one a rollout or one a call, see `credit.scores`; NaN where there is none. [scores]
        tokens: trained tokens that answer for each score; 0 of a member that only counts in the baseline. [scores]
    """

    scores: Values
    tokens: npt.NDArray[np.int64]


def estimate(groups: Sequence[Sequence[Scored]], name: str, *, epsilon: float = EPSILON) -> list[list[Values]]:
    """The advantage of every score of every member, in their order; NaN where there is no score.

    The scores of one group are compared with each other, whoever has them: with credit `own` or `return` a member with
    more calls weighs more in its group's mean.
    """
    found: list[list[Values]] = []
    for group in groups:
        pooled = np.concatenate([member.scores for member in group]) if group else np.empty(0)
        known = np.isfinite(pooled)
        advantages = np.full_like(pooled, np.nan)
        advantages[known] = of_group(name, pooled[known], epsilon=epsilon)
        found.append(np.split(advantages, np.cumsum([member.scores.size for member in group])[:-1]) if group else [])
    return _whitened(groups, found) if name in WHITENED else found


def _whitened(groups: Sequence[Sequence[Scored]], found: list[list[Values]]) -> list[list[Values]]:
    flat = [values for group in found for values in group]
    if not flat:
        return found
    values = np.concatenate(flat)
    tokens = np.concatenate([member.tokens for group in groups for member in group])
    known = np.isfinite(values)
    values[known] = whiten(values[known], tokens[known])
    parts = iter(np.split(values, np.cumsum([part.size for part in flat])[:-1]))
    return [[next(parts) for _ in group] for group in found]
