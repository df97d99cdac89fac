"""A trajectory to the rows that are trained, with the reason for every response that is not. Pure."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from headrace.schemas.packing import float32_array
from headrace.schemas.records import Sampling, Trajectory, Triplet
from headrace.trainers.batch import Floats, TokenRow
from headrace.trainers.rows import Level, Row, make_rows

POSITIVE_SLACK = 1e-3  # a log-probability above zero by more than rounding is none


@dataclass(frozen=True, kw_only=True)
class SampleRules:
    """What can be trained.

    Attributes:
        level: `transition` or `trajectory`, see `rows`.
        vocab_size: of the model.
        max_row_tokens: longer rows are dropped.
    """

    policy: str
    level: Level
    vocab_size: int
    max_row_tokens: int


def token_rows(
    trajectory: Trajectory, rules: SampleRules, *, advantage: float, rollout: int, staleness: int
) -> tuple[list[TokenRow], Counter[str]]:
    """The rows of a trajectory with at least one trained token, and how many responses are masked out, by reason.

    Reasons: other_policy, off_support, no_logprobs, bad_logprobs, bad_token_ids, empty_prompt, too_long, bad_triplets.
    """
    refused: Counter[str] = Counter()
    try:
        made = make_rows(trajectory, rules.level)
    except ValueError:
        refused["bad_triplets"] += len(trajectory.triplets)
        return [], refused
    rows: list[TokenRow] = []
    for row in made.rows:
        reason = _refusal_of_row(row, rules)
        if reason is not None:
            refused[reason] += len(row.turns)
            continue
        trained = 0
        for turn in row.turns:
            reason = _refusal(trajectory.triplets[turn.triplet], turn.end - turn.start, rules.policy)
            if reason is None and turn.start == 0:
                reason = "empty_prompt"
            if reason is not None:
                refused[reason] += 1
                row.loss_mask[turn.start : turn.end] = False
            else:
                trained += turn.end - turn.start
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
                )
            )
    return rows, refused


def _refusal_of_row(row: Row, rules: SampleRules) -> str | None:
    size = row.token_ids.size
    if size > rules.max_row_tokens:
        return "too_long"
    # As unsigned numbers, negative ids are above every vocabulary.
    if size and int(row.token_ids.view(np.uint32).max()) >= rules.vocab_size:
        return "bad_token_ids"
    return None


def _refusal(triplet: Triplet, tokens: int, policy: str) -> str | None:
    if triplet.policy not in (None, policy):
        return "other_policy"
    sampling = triplet.sampling
    if sampling is not None and (not _on_support(sampling) or _unscaled(triplet, sampling)):
        return "off_support"
    if triplet.logprobs is None:
        return "no_logprobs"
    logprobs = float32_array(triplet.logprobs)
    if logprobs.size != tokens:
        return "bad_logprobs"
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
