"""LoRA adapters (arXiv:2106.09685) in peft's format: read, checked, and merged into the weights that they belong to.

Needs numpy only and nothing else of Headrace, because the vLLM server's own environment loads this file too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from headrace.connectors.engine.checkpoint import (
    CheckpointError,
    Signature,
    TensorBytes,
    is_finite,
    parse_files,
    read_checkpoint,
    read_files,
)

LORA = "lora"
"""`format` of the Weights record of an adapter."""
CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
MOST_RANK = 1 << 31  # of any matrix there is
_A, _B = ".lora_A.weight", ".lora_B.weight"
# What changes the arithmetic of an adapter, and is implemented neither here nor in vLLM.
_REFUSED = (
    *("use_dora", "lora_bias", "fan_in_fan_out", "use_qalora", "use_bdlora", "modules_to_save", "rank_pattern"),
    *("alpha_pattern", "alora_invocation_tokens", "layer_replication", "target_parameters", "trainable_token_indices"),
)


@dataclass(frozen=True, slots=True)
class Adapter:
    """What is added to some matrices of a model: scale * B @ A each.

    Attributes:
        pairs: A [rank, columns] and B [rows, rank] by the name of the weight [rows, columns] that they change.
        files: the adapter's two files, the very bytes that were checked.
    """

    rank: int
    scale: float
    pairs: dict[str, tuple[TensorBytes, TensorBytes]]
    files: dict[str, memoryview]


def read_adapter(uri: str, sha256: Mapping[str, str]) -> Adapter:
    """The adapter in a directory.

    sha256: see `read_checkpoint`.

    Raises:
        CheckpointError: it is not whole, not finite, or no plain LoRA.
    """
    files = read_files(uri, sha256, (CONFIG_FILE, WEIGHTS_FILE))
    rank, scale = _scale(uri, files[CONFIG_FILE])
    halves = parse_files(uri, {WEIGHTS_FILE: files[WEIGHTS_FILE]})
    pairs: dict[str, tuple[TensorBytes, TensorBytes]] = {}
    for name, a in halves.items():
        if not name.endswith((_A, _B)) or not name.startswith(PREFIX):
            raise CheckpointError(LORA, f"{name} in {uri} is no matrix of a LoRA adapter")
        if name.endswith(_A):
            b = halves.get(name.removesuffix(_A) + _B)
            if b is None or len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != rank or b.shape[1] != rank:
                raise CheckpointError("shape", f"{name} in {uri} has no partner of rank {rank}")
            if not is_finite(a) or not is_finite(b):
                raise CheckpointError("not_finite", f"{name} or its partner in {uri} holds NaN or infinite values")
            pairs[name.removeprefix(PREFIX).removesuffix(_A) + ".weight"] = a, b
    if not pairs or 2 * len(pairs) != len(halves):
        raise CheckpointError("names", f"the matrices in {uri} are no pairs")
    return Adapter(rank, scale, pairs, {name: files[name] for name in (CONFIG_FILE, WEIGHTS_FILE)})


def _scale(uri: str, content: memoryview) -> tuple[int, float]:
    try:
        config = cast("dict[str, Any]", json.loads(bytes(content)))
        kind, rank, alpha = config["peft_type"], int(config["r"]), float(config["lora_alpha"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise CheckpointError("format", f"{CONFIG_FILE} in {uri} is not understood: {error!r}") from error
    odd = [name for name in _REFUSED if config.get(name)]
    if kind != "LORA" or config.get("bias", "none") != "none" or odd:
        raise CheckpointError(LORA, f"{uri} is no plain LoRA adapter: {kind} {', '.join(odd) or 'with biases'}")
    if not 1 <= rank < MOST_RANK or not math.isfinite(alpha):
        raise CheckpointError("format", f"{CONFIG_FILE} in {uri}: rank {rank}, lora_alpha {alpha}")
    return rank, alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def fits(adapter: Adapter, base: Signature) -> None:
    """Raises CheckpointError where a matrix has no place in a model, or one of another size."""
    for name, (a, b) in adapter.pairs.items():
        if name not in base:
            raise CheckpointError("names", f"the model has no {name} that the adapter could change")
        if base[name][1] != (b.shape[0], a.shape[1]):
            raise CheckpointError("shape", f"{name} has shape {list(base[name][1])}, {[b.shape[0], a.shape[1]]} fits")


def merge(base: Mapping[str, TensorBytes], adapter: Adapter) -> dict[str, TensorBytes]:
    """The weights with the adapter in them; those that it changes are float32.

    Raises:
        CheckpointError: it does not fit.
    """
    fits(adapter, {name: (tensor.dtype, tensor.shape) for name, tensor in base.items()})
    merged = dict(base)
    for name, (a, b) in adapter.pairs.items():
        weight = floats(base[name]) + np.float32(adapter.scale) * (floats(b) @ floats(a))
        data = np.ascontiguousarray(weight, dtype="<f4").data.cast("B")
        merged[name] = TensorBytes("F32", base[name].shape, data)
    return merged


def floats(tensor: TensorBytes) -> npt.NDArray[np.float32]:
    """A tensor of floats as a float32 array of its shape."""
    if tensor.dtype == "BF16":  # the upper half of a float32
        wide = np.frombuffer(tensor.data, dtype="<u2").astype("<u4") << 16
        return wide.view("<f4").reshape(tensor.shape)
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
    if tensor.dtype not in kinds:
        raise CheckpointError("dtype", f"{tensor.dtype} is no type of floats")
    return np.frombuffer(tensor.data, dtype=kinds[tensor.dtype]).astype(np.float32).reshape(tensor.shape)


def read_base(places: Sequence[str | None], sha256: Mapping[str, str]) -> dict[str, TensorBytes]:
    """The weights that an adapter belongs to, from the first directory that holds them.

    Args:
        sha256: of all safetensors files, by name.

    Raises:
        CheckpointError: reason base; no directory has them, or nobody has said which they are.
    """
    found: list[str] = []
    for place in places if sha256 else ():
        try:
            if place is not None:
                return read_checkpoint(place, sha256)
        except CheckpointError as error:
            found.append(str(error))
    why = "; ".join(found) or "the record does not say which they are (base_sha256)"
    raise CheckpointError("base", f"the weights that the adapter belongs to are not here: {why}")
