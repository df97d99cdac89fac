"""Rows of one window to the flat arrays that a step works on. Pure, numpy only.

A small task repeats itself: rows with equal tokens, mask and temperature go through the model once, and each keeps its
own advantage, behaviour log-probabilities and weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.trainers.losses import token_weights

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """One sequence to train on; arrays of its length.

    Attributes:
        token_ids: prompt and responses.
        loss_mask: true where a token was sampled and is trained.
        logprobs: behaviour log-probabilities; any value where the mask is false.
        temperature: of the sampling, one number or one a token.
        advantage: of the rollout.
        rollout: index of the rollout in its window.
        staleness: versions between the oldest that generated a token and the one that is trained.
    """

    token_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_]
    logprobs: Floats
    temperature: float | Floats = 1.0
    advantage: float = 0.0
    rollout: int = 0
    staleness: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What goes through the model at once.

    Attributes:
        token_ids: [sequences, length], padded on the right with zeros.
        predictors: index into sequences * length of the position that predicts each trained token, [targets].
        targets: the trained tokens, [targets].
        temperatures: of each target, [targets]; None where all are 1.
        taken: index into targets of each token of each row, [tokens]; all that follows is [tokens] too.
        behaviour: log-probabilities.
        advantages: one a token.
        weights: of the token in the loss of the window.
        fresh: sampled by the very weights that are trained.
    """

    token_ids: Ints
    predictors: Ints
    targets: Ints
    temperatures: Floats | None
    taken: Ints
    behaviour: Floats
    advantages: Floats
    weights: Floats
    fresh: npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Sequence:
    row: TokenRow
    positions: Ints
    rows: list[int]


def collate(rows: Sequence[TokenRow], *, aggregation: str, micro_batch_tokens: int) -> list[MicroBatch]:
    """Micro-batches of one window, shortest sequences first; their losses add up to the loss of the window.

    Args:
        rows: each with at least one trained token, never the first of its sequence.
        aggregation: see `token_weights`.
        micro_batch_tokens: most tokens of a micro-batch, padding included; one sequence may exceed it.
    """
    sequences: dict[tuple[bytes, bytes, float | bytes], _Sequence] = {}
    lengths = np.empty(len(rows), dtype=np.int64)
    for index, row in enumerate(rows):
        key = (row.token_ids.tobytes(), row.loss_mask.tobytes(), _key(row.temperature))
        found = sequences.get(key)
        if found is None:
            positions: Ints = np.flatnonzero(row.loss_mask)
            found = sequences[key] = _Sequence(row, positions, [])
        found.rows.append(index)
        lengths[index] = found.positions.size
    row_of_token = np.repeat(np.arange(len(rows)), lengths)
    rollout_of_row = np.fromiter((row.rollout for row in rows), dtype=np.int64, count=len(rows))
    weights = token_weights(row_of_token, rollout_of_row, aggregation).astype(np.float32)
    first_token = np.cumsum(lengths) - lengths
    return [
        _micro_batch(part, rows, weights, first_token)
        for part in _split(sorted(sequences.values(), key=lambda s: s.row.token_ids.size), micro_batch_tokens)
    ]


def _split(sequences: list[_Sequence], limit: int) -> list[list[_Sequence]]:
    parts: list[list[_Sequence]] = []
    part: list[_Sequence] = []
    for sequence in sequences:
        # Sorted by length, so that this one is the longest of its part.
        if part and (len(part) + 1) * sequence.row.token_ids.size > limit:
            parts.append(part)
            part = []
        part.append(sequence)
    if part:
        parts.append(part)
    return parts


def _micro_batch(part: list[_Sequence], rows: Sequence[TokenRow], weights: Floats, first_token: Ints) -> MicroBatch:
    length = part[-1].row.token_ids.size
    token_ids = np.zeros((len(part), length), dtype=np.int64)
    counts = np.fromiter((s.positions.size for s in part), dtype=np.int64, count=len(part))
    starts = np.cumsum(counts) - counts
    taken: list[Ints] = []
    behaviour: list[Floats] = []
    used: list[Ints] = []
    members: list[int] = []
    for i, sequence in enumerate(part):
        token_ids[i, : sequence.row.token_ids.size] = sequence.row.token_ids
        targets: Ints = np.arange(starts[i], starts[i] + counts[i], dtype=np.int64)
        for index in sequence.rows:
            members.append(index)
            taken.append(targets)
            behaviour.append(rows[index].logprobs[sequence.positions])
            used.append(np.arange(first_token[index], first_token[index] + counts[i], dtype=np.int64))
    repeats = np.fromiter((len(t) for t in taken), dtype=np.int64, count=len(taken))
    advantages = np.fromiter((rows[i].advantage for i in members), dtype=np.float32, count=len(members))
    fresh = np.fromiter((rows[i].staleness == 0 for i in members), dtype=np.bool_, count=len(members))
    return MicroBatch(
        token_ids=token_ids,
        predictors=np.concatenate([s.positions - 1 + i * length for i, s in enumerate(part)]),
        targets=np.concatenate([s.row.token_ids[s.positions] for s in part]).astype(np.int64),
        temperatures=_temperatures(part),
        taken=np.concatenate(taken),
        behaviour=np.concatenate(behaviour).astype(np.float32),
        advantages=np.repeat(advantages, repeats),
        weights=weights[np.concatenate(used)],
        fresh=np.repeat(fresh, repeats),
    )


def _key(temperature: float | Floats) -> float | bytes:
    return temperature.tobytes() if isinstance(temperature, np.ndarray) else temperature


def _temperatures(part: list[_Sequence]) -> Floats | None:
    if all(_key(s.row.temperature) == 1.0 for s in part):
        return None
    each: list[Floats] = []
    for s in part:
        t = s.row.temperature
        each.append(t[s.positions] if isinstance(t, np.ndarray) else np.full(s.positions.size, t, dtype=np.float32))
    return np.concatenate(each)
