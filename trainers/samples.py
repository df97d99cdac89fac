"""A trajectory to the rows that are trained, with the reason for every response that is not. Pure."""

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from headrace.schemas.packing import float32_array
from headrace.schemas.records import Sampling, Trajectory, Triplet
from headrace.streams.errors import InvalidValueError
from headrace.trainers.batch import Floats, TokenRow
from headrace.trainers.rows import ID_BYTES, Level, Row, make_rows

OVER_LONG = ("drop", "cut")
NO_CALLS: frozenset[int] = frozenset()
TOO_LONG = "too_long"
POSITIVE_SLACK = 1e-3  # a log-probability above zero by more than rounding is none


@dataclass(frozen=True, kw_only=True)
class SampleRules:
    """What can be trained.

    Attributes:
        level: `transition` or `trajectory`, see `rows`.
        vocab_size: of the model.
        max_row_tokens: longer rows are over-long.
        over_long: whether such a row is a `drop`, or is `cut` behind its last response that fits.
    """

    policy: str
    level: Level
    vocab_size: int
    max_row_tokens: int
    over_long: str = "drop"


def check_over_long(policy: str) -> str:
    """The policy's name.

    Raises:
        SettingsError: there is no such policy.
    """
    if policy not in OVER_LONG:
        raise InvalidValueError(f"over_long {policy!r}: choose one of {', '.join(OVER_LONG)}")
    return policy


def token_rows(
    trajectory: Trajectory,
    rules: SampleRules,
    *,
    advantage: float = 0.0,
    rollout: int,
    staleness: int,
    unscored: Collection[int] = NO_CALLS,
) -> tuple[list[TokenRow], Counter[str]]:
    """The rows of a trajectory with at least one trained token, and how many responses are masked out, by reason.

    Reasons: other_policy, no_policy_version, off_support, no_logprobs, bad_logprobs, bad_token_ids, empty_prompt,
    too_long, bad_triplets, no_call_reward.

    Args:
        unscored: indices of the calls that have no reward to answer for.
    """
    refused: Counter[str] = Counter()
    try:
        made = make_rows(trajectory, rules.level)
    except ValueError:
        refused["bad_triplets"] += len(trajectory.triplets)
        return [], refused
    rows: list[TokenRow] = []
    for row in made.rows:
        if row.token_ids.size > rules.max_row_tokens:
            refused[TOO_LONG] += _cut(row, rules)
            if not row.turns:
                continue
        # As unsigned numbers, negative ids are above every vocabulary.
        if row.token_ids.size and int(row.token_ids.view(np.uint32).max()) >= rules.vocab_size:
            refused["bad_token_ids"] += len(row.turns)
            continue
        trained = 0
        calls: list[tuple[int, int]] = []
        for turn in row.turns:
            reason = _refusal(trajectory.triplets[turn.triplet], turn.end - turn.start, rules.policy)
            if reason is None and turn.start == 0:
                reason = "empty_prompt"
            if reason is None and turn.triplet in unscored:
                reason = "no_call_reward"
            if reason is not None:
                refused[reason] += 1
                row.loss_mask[turn.start : turn.end] = False
            else:
                trained += turn.end - turn.start
                calls.append((turn.triplet, turn.end - turn.start))
        if trained:
            rows.append(
                TokenRow(
                    token_ids=row.token_ids,
                    loss_mask=row.loss_mask,
                    logprobs=row.logprobs,
                    temperature=_temperature(row, trajectory.triplets),
                    advantage=advantage,
                    rollout=rollout,
                    staleness=staleness,
                    calls=tuple(calls),
                )
            )
    return rows, refused


def _cut(row: Row, rules: SampleRules) -> int:
    """Shortens a row to what may be trained of it; how many responses it loses. A response is never cut in two."""
    kept = [turn for turn in row.turns if turn.end <= rules.max_row_tokens] if rules.over_long == "cut" else []
    lost = len(row.turns) - len(kept)
    size = kept[-1].end if kept else 0
    row.turns = kept
    row.token_ids, row.loss_mask, row.logprobs = row.token_ids[:size], row.loss_mask[:size], row.logprobs[:size]
    return lost


def _refusal(triplet: Triplet, tokens: int, policy: str) -> str | None:
    if triplet.policy not in (None, policy):
        return "other_policy"
    if triplet.policy_version is None:
        return "no_policy_version"
    sampling = triplet.sampling
    if sampling is not None and (not _on_support(sampling) or _unscaled(triplet, sampling)):
        return "off_support"
    if triplet.logprobs is None:
        return "no_logprobs"
    if len(triplet.logprobs) != ID_BYTES * tokens:
        return "bad_logprobs"
    logprobs = float32_array(triplet.logprobs)
    # A NaN is the least and the greatest of its array, and compares false.
    whole = not tokens or (float(logprobs.min()) > -math.inf and float(logprobs.max()) <= POSITIVE_SLACK)
    return None if whole else "bad_logprobs"


def _on_support(sampling: Sampling) -> bool:
    """Whether every token could have been sampled, with a probability that only the temperature has changed."""
    return (
        sampling.temperature > 0
        and sampling.top_p >= 1.0
        and sampling.top_k <= 0
        and sampling.min_p <= 0.0
        and sampling.presence_penalty == 0.0
        and sampling.frequency_penalty == 0.0
        and sampling.repetition_penalty == 1.0
        and sampling.constraints is None
    )


def _unscaled(triplet: Triplet, sampling: Sampling) -> bool:
    # Taken before the temperature: not those of the distribution that was sampled.
    return triplet.logprobs_mode == "raw" and sampling.temperature != 1.0


def _temperature(row: Row, triplets: list[Triplet]) -> float | Floats:
    each = [sampling.temperature if (sampling := triplets[t.triplet].sampling) else 1.0 for t in row.turns]
    if all(t == each[0] for t in each):
        return each[0]
    temperatures = np.ones(row.token_ids.size, dtype=np.float32)
    for turn, temperature in zip(row.turns, each, strict=True):
        temperatures[turn.start : turn.end] = temperature
    return temperatures
