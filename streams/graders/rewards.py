"""What a grader's answer is worth, and which trajectories it is asked about. Pure."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from headrace.schemas.records import Reward, Trajectory
from headrace.streams.agent.numbers import reward_number

SOURCE = "grader"
EXTERNAL = "external"
MOST_DIMENSIONS = 100
"""Each is a record, and a column of whoever looks at rewards; an answer with thousands is a mistake."""
DIMENSION_CHARACTERS = 200


class GradingRules(msgspec.Struct, frozen=True):
    """How answers become rewards.

    Attributes:
        name: of the grader, and of its reward; part of every reward's identity.
        primary: a plain number is the primary reward, and so the final one; else a further dimension.
        primary_key: which of several dimensions is the primary reward; None: none of them.
        external: rollouts of outside traffic are graded too. A judge that calls the gateway makes such rollouts
            itself, and would be asked about them.
        window: older trajectories are not graded: the brokers may have forgotten their records.
    """

    name: str
    primary: bool = True
    primary_key: str | None = None
    external: bool = False
    window: timedelta = timedelta(days=7)


def passed_over(record: Trajectory, rules: GradingRules, *, appended_ms: int, now_ms: int) -> str | None:
    """Why a trajectory is not graded; None if it is.

    A grader's own rewards make revisions, so revisions are never graded.

    Args:
        appended_ms: the record's append time, milliseconds since the epoch.
    """
    if record.revision != 0:
        return "revisions"
    if record.origin == EXTERNAL and not rules.external:
        return "external"
    if now_ms - appended_ms > rules.window.total_seconds() * 1000:
        return "too_old"
    return None


def rewards_of(answer: Any, record: Trajectory, rules: GradingRules, *, at: int) -> list[Reward]:
    """The rewards of an answer: a number, dimensions as {name: number}, or None for none.

    Their ids depend on the grader's name and the rollout only, so an answer that comes twice counts once.

    Args:
        at: microseconds since the epoch.

    Raises:
        InvalidRewardError: a value is no finite number.
        ValueError: the primary dimension is missing; there are more than `MOST_DIMENSIONS`; a name has more than
            `DIMENSION_CHARACTERS`, or cannot be printed.
    """
    if answer is None:
        return []
    if not isinstance(answer, Mapping):
        value = reward_number(answer, f"the answer of grader {rules.name!r}")
        return [_reward(record, rules, None, value, rules.primary, at)]
    given: Mapping[Any, Any] = answer  # pyright: ignore[reportUnknownVariableType]
    if len(given) > MOST_DIMENSIONS:
        raise ValueError(f"{len(given)} dimensions; a grader gives {MOST_DIMENSIONS} at most")
    dimensions = {_dimension(key): value for key, value in given.items()}
    if rules.primary_key is not None and rules.primary_key not in dimensions:
        raise ValueError(f"primary_key={rules.primary_key!r}: the answer has {sorted(dimensions)}")
    return [
        _reward(record, rules, key, reward_number(value, f"dimension {key!r}"), key == rules.primary_key, at)
        for key, value in dimensions.items()
    ]


def _dimension(key: Any) -> str:
    name = str(key)
    if not 0 < len(name) <= DIMENSION_CHARACTERS or not name.isprintable():
        raise ValueError(f"{name[:80]!r} is no name of a dimension: 1 to {DIMENSION_CHARACTERS} printable characters")
    return name


def _reward(
    record: Trajectory, rules: GradingRules, dimension: str | None, value: float, primary: bool, at: int
) -> Reward:
    identity = f"{SOURCE}/{rules.name}/{record.rollout_id}"
    return Reward(
        rollout_id=record.rollout_id,
        attempt_id=record.attempt_id,
        reward_id=identity if dimension is None else f"{identity}/{dimension}",
        name=dimension or rules.name,
        primary=primary,
        value=value,
        source=SOURCE,
        at=at,
        metadata={SOURCE: rules.name},
    )
