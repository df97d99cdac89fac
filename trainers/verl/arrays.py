"""Rows to the flat arrays that go to verl's environment. Pure."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headrace.trainers.batch import TokenRow
from headrace.trainers.layout import Bools


def of_one_temperature(rows: Sequence[TokenRow]) -> list[TokenRow]:
    """Rows whose trained tokens share a temperature: verl has one a row.

    A row that mixes them appears once for each, with the mask of its own tokens.
    """
    found: list[TokenRow] = []
    for row in rows:
        if not isinstance(row.temperature, np.ndarray):
            found.append(row)
            continue
        for value in np.unique(row.temperature[row.loss_mask]).tolist():
            mask: Bools = row.loss_mask & (row.temperature == value)
            advantage = row.advantage
            if isinstance(advantage, np.ndarray):
                advantage = advantage[mask[row.loss_mask]]
            found.append(replace(row, temperature=float(value), loss_mask=mask, advantage=advantage))
    return found


def arrays_of(rows: Sequence[TokenRow]) -> dict[str, bytes]:
    """All rows, one behind the other.

    token_ids int32, loss_mask bool, logprobs and advantages float32 have an entry a token (advantages are 0 where
    nothing is trained); sizes and prompts int64 (tokens before the first trained one), temperatures float32 and fresh
    bool (sampled by the weights that are trained) an entry a row. Little-endian.
    """
    advantages: list[np.ndarray[tuple[int], np.dtype[np.float32]]] = []
    for row in rows:
        each = np.zeros(row.token_ids.size, dtype=np.float32)
        each[row.loss_mask] = row.advantage
        advantages.append(each)
    return {
        "token_ids": np.concatenate([row.token_ids for row in rows]).astype(np.int32).tobytes(),
        "loss_mask": np.concatenate([row.loss_mask for row in rows]).astype(np.bool_).tobytes(),
        "logprobs": np.concatenate([row.logprobs for row in rows]).astype(np.float32).tobytes(),
        "advantages": np.concatenate(advantages).tobytes(),
        "sizes": np.array([row.token_ids.size for row in rows], dtype=np.int64).tobytes(),
        "prompts": np.array([int(row.loss_mask.argmax()) for row in rows], dtype=np.int64).tobytes(),
        "temperatures": np.array([row.temperature for row in rows], dtype=np.float32).tobytes(),
        "fresh": np.array([row.staleness == 0 for row in rows], dtype=np.bool_).tobytes(),
    }
