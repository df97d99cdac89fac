"""Rows of one window to the flat arrays that a step works on. Pure, numpy only.

A small task repeats itself: rows with equal tokens, mask and temperature go through the model once, and each keeps its
own advantage, behaviour log-probabilities and weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.trainers.layout import Bools, Ints, Layout, chain, tree, worth_a_tree
from headrace.trainers.losses.aggregation import token_weights

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """One sequence to train on; arrays of its length.

    Attributes:
        token_ids: prompt and responses.
        loss_mask: true where a token was sampled and is trained.
        logprobs: behaviour log-probabilities; any value where the mask is false.
        temperature: of the sampling, one number or one a token.
        advantage: of the rollout, or of each trained token.
        rollout: index of the rollout in its window.
        staleness: versions between the oldest that generated a token and the one that is trained.
        calls: index in the trajectory and number of trained tokens of each response in the row; empty: one response.
        scored: what the forward pass before the step says of the trained tokens.
        returns: what the value head learns, of each trained token; None without one.
    """

    token_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_]
    logprobs: Floats
    temperature: float | Floats = 1.0
    advantage: float | Floats = 0.0
    rollout: int = 0
    staleness: int = 0
    calls: tuple[tuple[int, int], ...] = ()
    scored: "Scores | None" = None
    returns: Floats | None = None

    @property
    def trained(self) -> int:
        """Number of trained tokens."""
        return int(np.count_nonzero(self.loss_mask))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Of a row's trained tokens before the first optimizer step of a window, each [trained tokens].

    Attributes:
        proximal: log-probabilities under the weights with which the window begins.
        reference: under the run's base weights.
        values: what the value head expects before each token.
    """

    proximal: Floats | None = None
    reference: Floats | None = None
    values: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What goes through the model at once.

    Attributes:
        token_ids: [rows, length], padded on the right with zeros; packed: [1, length].
        lengths: of the sequences that lie one behind the other in the one row; None where each row is one.
        positions: of the nodes of trees or of packed tokens, [rows, length]; None where every row is a chain.
        mask: which nodes each attends to, [rows, length, length]; None where every row is a chain.
        predictors: index into rows * length of the node that predicts each trained token, [targets].
        targets: the trained tokens, [targets].
        temperatures: of each target, [targets]; None where all are 1.
        taken: index into targets of each token of each row, [tokens]; all that follows is [tokens] too.
        rows: indices of the rows in their order here, [rows].
        counts: trained tokens of each of them, [rows].
        responses: index of the response that each token belongs to.
        behaviour: log-probabilities.
        advantages: one a token.
        weights: of the token in the loss of the window.
        fresh: sampled by the very weights that are trained.
        proximal, reference, values, returns: see `Scores` and `TokenRow`; None where the rows have none.
    """

    token_ids: Ints
    lengths: list[int] | None
    positions: Ints | None
    mask: Bools | None
    predictors: Ints
    targets: Ints
    temperatures: Floats | None
    taken: Ints
    rows: list[int]
    counts: Ints
    responses: Ints
    behaviour: Floats
    advantages: Floats
    weights: Floats
    fresh: Bools
    proximal: Floats | None
    reference: Floats | None
    values: Floats | None
    returns: Floats | None


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
    rows: Sequence[TokenRow],
    *,
    aggregation: str,
    micro_batch_tokens: int,
    trees: bool = False,
    packing: bool = False,
    token_divisor: float | None = None,
) -> list[MicroBatch]:
    """Micro-batches of one window, shortest rows first; their losses add up to the loss of the window.

    Args:
        rows: each with at least one trained token, never the first of its sequence.
        aggregation: see `token_weights`.
        micro_batch_tokens: most tokens of a micro-batch, padding included; one row may exceed it.
        trees: sequences with equal prompts share them, see `layout`.
        packing: sequences that share nothing lie one behind the other, without padding.
        token_divisor: see `token_weights`.
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
    every = token_weights(row_of_token, rollout_of_row, aggregation, token_divisor=token_divisor)
    weights = every.astype(np.float32)
    first_token = np.cumsum(lengths) - lengths
    units = _units(list(sequences.values()), trees)
    parts = _split(units, micro_batch_tokens, packing)
    return [_micro_batch(part, rows, weights, first_token, packing) for part in parts]


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


def _split(units: list[_Unit], limit: int, packing: bool) -> list[list[_Unit]]:
    parts: list[list[_Unit]] = []
    part: list[_Unit] = []
    tokens = 0
    for unit in units:
        size = unit.layout.token_ids.size
        # Sorted by length, so that this one is the longest of its part. Trees and chains do not mix.
        other_kind = part and (part[-1].layout.mask is None) != (unit.layout.mask is None)
        packed = packing and unit.layout.mask is None
        if part and (other_kind or (tokens + size if packed else (len(part) + 1) * size) > limit):
            parts.append(part)
            part, tokens = [], 0
        part.append(unit)
        tokens += size
    if part:
        parts.append(part)
    return parts


def _micro_batch(
    part: list[_Unit], rows: Sequence[TokenRow], weights: Floats, first_token: Ints, packing: bool
) -> MicroBatch:
    packed = packing and part[0].layout.mask is None
    token_ids, starts = _token_ids(part, packed)
    predictors: list[Ints] = []
    taken: list[Ints] = []
    behaviour: list[Floats] = []
    used: list[Ints] = []
    members: list[int] = []
    start = 0
    for unit, offset in zip(part, starts, strict=True):
        for sequence, nodes in zip(unit.sequences, unit.layout.predictors, strict=True):
            predictors.append(nodes + offset)
            count = nodes.size
            targets: Ints = np.arange(start, start + count, dtype=np.int64)
            start += count
            for index in sequence.rows:
                members.append(index)
                taken.append(targets)
                behaviour.append(rows[index].logprobs[sequence.positions])
                used.append(np.arange(first_token[index], first_token[index] + count, dtype=np.int64))
    repeats = np.fromiter((len(t) for t in taken), dtype=np.int64, count=len(taken))
    fresh = np.fromiter((rows[i].staleness == 0 for i in members), dtype=np.bool_, count=len(members))
    sequences = [s for unit in part for s in unit.sequences]
    lengths = [unit.layout.token_ids.size for unit in part] if packed else None
    positions, mask = _packed_positions(part) if packed else _tree_inputs(part, token_ids.shape[1])
    here = [rows[i] for i in members]
    return MicroBatch(
        token_ids=token_ids,
        lengths=lengths,
        positions=positions,
        mask=mask,
        predictors=np.concatenate(predictors),
        targets=np.concatenate([s.row.token_ids[s.positions] for s in sequences]).astype(np.int64),
        temperatures=_temperatures(sequences),
        taken=np.concatenate(taken),
        rows=members,
        counts=repeats,
        responses=_responses(here, repeats),
        behaviour=np.concatenate(behaviour).astype(np.float32),
        advantages=_advantages(here, repeats),
        weights=weights[np.concatenate(used)],
        fresh=np.repeat(fresh, repeats),
        proximal=_joined([row.scored and row.scored.proximal for row in here]),
        reference=_joined([row.scored and row.scored.reference for row in here]),
        values=_joined([row.scored and row.scored.values for row in here]),
        returns=_joined([row.returns for row in here]),
    )


def _token_ids(part: list[_Unit], packed: bool) -> tuple[Ints, list[int]]:
    """The rows of a forward pass, and where each unit begins in them, flat."""
    sizes = [unit.layout.token_ids.size for unit in part]
    if packed:
        starts = [0, *np.cumsum(sizes[:-1]).tolist()]
        return np.concatenate([unit.layout.token_ids for unit in part])[None], starts
    length = sizes[-1]
    token_ids = np.zeros((len(part), length), dtype=np.int64)
    for i, unit in enumerate(part):
        token_ids[i, : sizes[i]] = unit.layout.token_ids
    return token_ids, list(range(0, len(part) * length, length)) if length else [0] * len(part)


def _packed_positions(part: list[_Unit]) -> tuple[Ints, None]:
    return np.concatenate([unit.layout.positions for unit in part])[None], None


def _joined(arrays: "list[Floats | None]") -> Floats | None:
    found = [array for array in arrays if array is not None]
    assert len(found) in (0, len(arrays)), "of all rows or of none"
    return np.concatenate(found).astype(np.float32) if found else None


def _advantages(rows: list[TokenRow], counts: Ints) -> Floats:
    if not any(isinstance(row.advantage, np.ndarray) for row in rows):
        return np.repeat(np.fromiter((row.advantage for row in rows), dtype=np.float32, count=len(rows)), counts)
    each = [np.broadcast_to(np.asarray(r.advantage, dtype=np.float32), (n,)) for r, n in zip(rows, counts, strict=True)]
    return np.concatenate(each)


def _responses(rows: list[TokenRow], counts: Ints) -> Ints:
    sizes = [size for r, n in zip(rows, counts.tolist(), strict=True) for size in ([s for _, s in r.calls] or [n])]
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


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
