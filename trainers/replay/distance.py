"""How far apart two versions are that are not the same bit for bit."""

import math
from pathlib import Path

from safetensors import SafetensorError

from headrace.schemas.records import Weights
from headrace.trainers.models.loading import ModelError, read_tensors


def distance(one: Weights, other: Weights) -> float | None:
    """The largest absolute difference of two weights; None where files are gone, or are not of the same shapes."""
    try:
        first, second = read_tensors(Path(one.uri)), read_tensors(Path(other.uri))
    except (ModelError, OSError, SafetensorError):
        return None  # pruned, or being pruned now
    if {name: t.shape for name, t in first.items()} != {name: t.shape for name, t in second.items()}:
        return None
    apart = [float((t.double() - second[name].double()).abs().max()) for name, t in first.items() if t.numel()]
    largest = max(apart, default=0.0)
    return largest if math.isfinite(largest) else None
