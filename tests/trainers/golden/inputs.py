"""The tensors on which every implementation is asked. Numpy only: each environment imports this file by itself."""

from typing import Any

import numpy as np

GROUPS, SIZE, LENGTH = 5, 4, 9
CLIP_LOW, CLIP_HIGH, DUAL_CLIP = 0.2, 0.28, 3.0
GSPO_LOW, GSPO_HIGH = 0.03, 0.04
TRUNCATION, VALUE_CLIP, GAMMA, LAMBDA, BETA, DIVISOR = 1.3, 0.2, 0.97, 0.9, 0.05, 32.0


def make() -> dict[str, Any]:
    """Rollouts [GROUPS * SIZE] with up to LENGTH tokens, padded on the right; float64."""
    rng = np.random.default_rng(20)
    rows = GROUPS * SIZE
    lengths = rng.integers(1, LENGTH + 1, size=rows)
    lengths[0] = LENGTH
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.float64)
    current = rng.normal(-2.0, 0.7, size=(rows, LENGTH)) * mask
    rewards = rng.normal(size=rows)
    rewards[-SIZE:] = 0.3 + 1e-3 * rng.normal(size=SIZE)

    def near(scale: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        return (current + rng.normal(0.0, scale, size=current.shape)) * mask

    return {
        "mask": mask,
        "group": np.repeat(np.arange(GROUPS), SIZE),
        "rewards": rewards,
        "current": current,
        "proximal": near(0.25),
        "behaviour": near(0.3),
        "reference": near(0.5),
        "values": rng.normal(size=mask.shape) * mask,
        "new_values": rng.normal(size=mask.shape) * mask,
        "returns": rng.normal(size=mask.shape) * mask,
        "advantages": rng.normal(size=rows)[:, None] * mask,
    }
