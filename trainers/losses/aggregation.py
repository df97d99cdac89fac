"""How the losses of tokens add up to the loss of a window. Pure numpy."""

import numpy as np
import numpy.typing as npt

from headrace.streams.errors import InvalidValueError

AGGREGATIONS = ("rollout_mean", "row_mean", "token_mean", "token_sum")


def token_weights(
    row_of_token: npt.NDArray[np.int64],
    rollout_of_row: npt.NDArray[np.int64],
    aggregation: str,
    *,
    token_divisor: float | None = None,
) -> npt.NDArray[np.float64]:
    """Weight of each token's loss in the sum that is the window's loss, [tokens].

    rollout_mean: each rollout counts the same; row_mean: each row does; token_mean: each token does; token_sum: no
    division. Cutting a row in two changes nothing, except under row_mean.

    Args:
        row_of_token: index of the row, [tokens].
        rollout_of_row: index of the rollout, [rows].
        token_divisor: under token_sum, divides by the number of rollouts and by this constant length. Dr. GRPO,
            arXiv:2503.20783.

    Raises:
        SettingsError: there is no such aggregation.
    """
    tokens = int(row_of_token.size)
    if aggregation == "token_mean":
        return np.full(tokens, 1.0 / max(1, tokens), dtype=np.float64)
    if aggregation == "token_sum":
        if token_divisor is None:
            return np.ones(tokens, dtype=np.float64)
        rollouts = np.unique(rollout_of_row[row_of_token]).size
        return np.full(tokens, 1.0 / (max(1, rollouts) * token_divisor), dtype=np.float64)
    if aggregation == "row_mean":
        unit = row_of_token
    elif aggregation == "rollout_mean":
        unit = rollout_of_row[row_of_token]
    else:
        raise InvalidValueError(f"aggregation {aggregation!r}: choose one of {', '.join(AGGREGATIONS)}")
    sizes: npt.NDArray[np.float64] = np.bincount(unit, minlength=1).astype(np.float64)
    return 1.0 / (np.count_nonzero(sizes) * sizes[unit])
