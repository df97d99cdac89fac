"""Rows of one window to the flat arrays that a step works on. Pure, numpy only.

A small task repeats itself: rows with equal tokens, mask and temperature go through the model once, and each keeps its
own advantage, behaviour log-probabilities and weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.trainers.layout import Bools, Ints, Layout, chain, tree, worth_a_tree
from headrace.trainers.losses import token_weights

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
        token_ids: [rows, length], padded on the right with zeros.
        positions: of the nodes of trees, [rows, length]; None where every row is a chain.
        mask: which nodes each attends to, [rows, length, length]; None where every row is a chain.
        predictors: index into rows * length of the node that predicts each trained token, [targets].
        targets: the trained tokens, [targets].
        temperatures: of each target, [targets]; None where all are 1.
        taken: index into targets of each token of each row, [tokens]; all that follows is [tokens] too.
        behaviour: log-probabilities.
        advantages: one a token.
        weights: of the token in the loss of the window.
        fresh: sampled by the very weights that are trained.
    """

    token_ids: Ints
    positions: Ints | None
    mask: Bools | None
    predictors: Ints
    targets: Ints
    temperatures: Floats | None
    taken: Ints
    behaviour: Floats
    advantages: Floats
    weights: Floats
    fresh: Bools


@dataclass(slots=True)
class _Sequence:
    row: TokenRow
    positions: Ints
    rows: list[int]


@dataclass(slots=True)
class _Unit:
    layout: Layout
    sequences: list[_Sequence]


def collate(
    rows: Sequence[TokenRow], *, aggregation: str, micro_batch_tokens: int, trees: bool = False
) -> list[MicroBatch]:
    """Micro-batches of one window, shortest rows first; their losses add up to the loss of the window.

    Args:
        rows: each with at least one trained token, never the first of its sequence.
        aggregation: see `token_weights`.
        micro_batch_tokens: most tokens of a micro-batch, padding included; one row may exceed it.
        trees: sequences with equal prompts share them, see `layout`.
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
    units = _units(list(sequences.values()), trees)
    return [_micro_batch(part, rows, weights, first_token) for part in _split(units, micro_batch_tokens)]


def _units(sequences: list[_Sequence], trees: bool) -> list[_Unit]:
    by_prompt: dict[bytes, list[_Sequence]] = {}
    for index, sequence in enumerate(sequences):
        prompt = sequence.row.token_ids[: sequence.positions[0]].tobytes() if trees else index.to_bytes(8, "little")
        by_prompt.setdefault(prompt, []).append(sequence)
    units: list[_Unit] = []
    for group in by_prompt.values():
        prompt = int(group[0].positions[0])
        if worth_a_tree([s.row.token_ids.size for s in group], prompt):
            layout = tree([s.row.token_ids for s in group], [s.positions for s in group], prompt)
            units.append(_Unit(layout, group))
        else:
            units.extend(_Unit(chain(s.row.token_ids, s.positions), [s]) for s in group)
    return sorted(units, key=lambda u: (u.layout.mask is None, u.layout.token_ids.size))


def _split(units: list[_Unit], limit: int) -> list[list[_Unit]]:
    parts: list[list[_Unit]] = []
    part: list[_Unit] = []
    for unit in units:
        # Sorted by length, so that this one is the longest of its part. Trees and chains do not mix.
        other_kind = part and (part[-1].layout.mask is None) != (unit.layout.mask is None)
        if part and (other_kind or (len(part) + 1) * unit.layout.token_ids.size > limit):
            parts.append(part)
            part = []
        part.append(unit)
    if part:
        parts.append(part)
    return parts


def _micro_batch(part: list[_Unit], rows: Sequence[TokenRow], weights: Floats, first_token: Ints) -> MicroBatch:
    length = part[-1].layout.token_ids.size
    token_ids = np.zeros((len(part), length), dtype=np.int64)
    predictors: list[Ints] = []
    taken: list[Ints] = []
    behaviour: list[Floats] = []
    used: list[Ints] = []
    members: list[int] = []
    start = 0
    for i, unit in enumerate(part):
        token_ids[i, : unit.layout.token_ids.size] = unit.layout.token_ids
        for sequence, nodes in zip(unit.sequences, unit.layout.predictors, strict=True):
            predictors.append(nodes + i * length)
            count = nodes.size
            targets: Ints = np.arange(start, start + count, dtype=np.int64)
            start += count
            for index in sequence.rows:
                members.append(index)
                taken.append(targets)
                behaviour.append(rows[index].logprobs[sequence.positions])
                used.append(np.arange(first_token[index], first_token[index] + count, dtype=np.int64))
    repeats = np.fromiter((len(t) for t in taken), dtype=np.int64, count=len(taken))
    advantages = np.fromiter((rows[i].advantage for i in members), dtype=np.float32, count=len(members))
    fresh = np.fromiter((rows[i].staleness == 0 for i in members), dtype=np.bool_, count=len(members))
    sequences = [s for unit in part for s in unit.sequences]
    positions, mask = _tree_inputs(part, length)
    return MicroBatch(
        token_ids=token_ids,
        positions=positions,
        mask=mask,
        predictors=np.concatenate(predictors),
        targets=np.concatenate([s.row.token_ids[s.positions] for s in sequences]).astype(np.int64),
        temperatures=_temperatures(sequences),
        taken=np.concatenate(taken),
        behaviour=np.concatenate(behaviour).astype(np.float32),
        advantages=np.repeat(advantages, repeats),
        weights=weights[np.concatenate(used)],
        fresh=np.repeat(fresh, repeats),
    )


def _tree_inputs(part: list[_Unit], length: int) -> tuple[Ints | None, Bools | None]:
    if part[0].layout.mask is None:
        return None, None
    positions = np.zeros((len(part), length), dtype=np.int64)
    # What is padding sees itself: a row of the mask without any entry would give NaN.
    mask = np.tile(np.eye(length, dtype=np.bool_), (len(part), 1, 1))
    for i, unit in enumerate(part):
        size = unit.layout.token_ids.size
        positions[i, :size] = unit.layout.positions
        mask[i, :size, :size] = unit.layout.mask
    return positions, mask


def _key(temperature: float | Floats) -> float | bytes:
    return temperature.tobytes() if isinstance(temperature, np.ndarray) else temperature


def _temperatures(sequences: list[_Sequence]) -> Floats | None:
    if all(_key(s.row.temperature) == 1.0 for s in sequences):
        return None
    each: list[Floats] = []
    for s in sequences:
        t = s.row.temperature
        each.append(t[s.positions] if isinstance(t, np.ndarray) else np.full(s.positions.size, t, dtype=np.float32))
    return np.concatenate(each)
