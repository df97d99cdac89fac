"""Safetensors checkpoints, verified before anything touches a model.

Needs numpy only and nothing else of Headrace, because the vLLM server's own environment loads this file too.
Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import numpy as np

# Bits of the exponent: a float is infinite or not a number if and only if all of them are set.
_EXPONENTS = {"F64": ("<u8", 0x7FF0 << 48), "F32": ("<u4", 0x7F800000), "F16": ("<u2", 0x7C00), "BF16": ("<u2", 0x7F80)}
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_WIDER = {"BF16": {"F32", "F64"}, "F16": {"F32", "F64"}, "F32": {"F64"}}
_CHUNK = 1 << 22


class CheckpointError(ValueError):
    """A checkpoint that must not be loaded.

    Attributes:
        reason: a short name: uri, missing_file, unlisted_file, sha256, bytes, format, names, shape, dtype, not_finite,
            lora, base.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class TensorBytes:
    """One tensor as it lies in its file: dtype in safetensors' name, shape, the bytes (little-endian, contiguous)."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview


Signature = dict[str, tuple[str, tuple[int, ...]]]
"""dtype and shape of each tensor by name."""


def directory_of(uri: str) -> Path:
    """The folder of a path or a file:// URL."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise CheckpointError("uri", f"cannot read {uri}: only paths and file:// URLs are supported")
    directory = Path(unquote(parts.path) if parts.scheme else uri)
    if not directory.is_dir():
        raise CheckpointError("uri", f"no directory at {uri}; is the path visible from this machine?")
    return directory


def read_checkpoint(uri: str, sha256: Mapping[str, str] | None = None) -> dict[str, TensorBytes]:
    """All tensors of the safetensors files in a directory; see `read_files`.

    Raises:
        CheckpointError: with a reason; nothing is returned of a checkpoint that is not whole.
    """
    files = read_files(uri, sha256)
    return parse_files(uri, {name: files[name] for name in files if name.endswith(".safetensors")})


def read_files(uri: str, sha256: Mapping[str, str] | None = None, also: Sequence[str] = ()) -> dict[str, memoryview]:
    """The content of the safetensors files in a directory, by name.

    Args:
        sha256: hex digest by file name. When given, each file named is checked, and a weight file that it does not name
            is refused. The bytes that were hashed are the bytes returned, whatever happens to the path meanwhile.
        also: further files that must be there.

    Raises:
        CheckpointError: with a reason.
    """
    directory = directory_of(uri)
    files = sorted(p.name for p in directory.glob("*.safetensors"))
    listed = dict(sha256 or {})
    for name in (*listed, *also):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise CheckpointError("uri", f"{name!r} is no file name inside {uri}")
        if not (directory / name).is_file():
            raise CheckpointError("missing_file", f"{name} is missing in {uri}")
    if not files:
        raise CheckpointError("missing_file", f"no .safetensors file in {uri}")
    contents: dict[str, memoryview] = {}
    for name in sorted({*files, *listed, *also}):
        if listed and name not in listed:
            raise CheckpointError("unlisted_file", f"{name} in {uri} has no sha256 in the weights record")
        content = contents[name] = _read(directory / name)
        if listed and (found := hashlib.sha256(content).hexdigest()) != listed[name].lower():
            raise CheckpointError("sha256", f"{name} in {uri} has sha256 {found}, expected {listed[name]}")
    return contents


def parse_files(uri: str, files: Mapping[str, memoryview]) -> dict[str, TensorBytes]:
    """All tensors of safetensors files, by their content; `uri` is for messages.

    Raises:
        CheckpointError: format or names.
    """
    tensors: dict[str, TensorBytes] = {}
    for name, content in files.items():
        for key, tensor in _parse(name, content):
            if key in tensors:
                raise CheckpointError("names", f"tensor {key} stands in two files of {uri}")
            tensors[key] = tensor
    return tensors


def _read(path: Path) -> memoryview:
    # A private copy in memory: a mapped file could change between the hash and the load.
    size = path.stat().st_size
    if size == 0:
        return memoryview(b"")
    buffer = mmap.mmap(-1, size)
    view = memoryview(buffer)
    with path.open("rb") as file:
        if file.readinto(view) != size:
            raise CheckpointError("bytes", f"{path} became shorter while it was read")
    return view


def _parse(name: str, content: memoryview) -> Iterator[tuple[str, TensorBytes]]:
    length = int.from_bytes(content[:8], "little") if len(content) >= 8 else 0
    if not 2 <= length <= len(content) - 8:
        raise CheckpointError(
            "format", f"{name} is no safetensors file (header length {length} of {len(content)} bytes)"
        )
    try:
        header: Any = json.loads(bytes(content[8 : 8 + length]))
    except (ValueError, RecursionError) as error:
        raise CheckpointError("format", f"{name} has a header that is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise CheckpointError("format", f"{name} has a header that is no object")
    body = content[8 + length :]
    for key, entry in cast("dict[str, Any]", header).items():
        if key == "__metadata__":
            continue
        try:
            dtype, shape = str(entry["dtype"]), tuple(int(n) for n in entry["shape"])
            start, end = (int(n) for n in entry["data_offsets"])
            count = _SIZES[dtype]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError("format", f"{name}: the entry of {key} is not understood: {entry}") from error
        for extent in shape:
            count *= extent
        if not 0 <= start <= end <= len(body) or end - start != count or min(shape, default=0) < 0:
            raise CheckpointError("format", f"{name}: {key} has {end - start} bytes at {start}, {count} are needed")
        yield key, TensorBytes(dtype, shape, body[start:end])


def signature(tensors: Mapping[str, TensorBytes]) -> Signature:
    """What a later checkpoint of the same model must look like."""
    return {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}


def verify(tensors: Mapping[str, TensorBytes], expected: Signature, optional: frozenset[str] = frozenset()) -> None:
    """Names and shapes equal those expected, every value is finite and no dtype is narrower than expected.

    A trainer that keeps a bfloat16 model in float32 publishes float32; the reverse would lose what was trained.

    optional: names that may be missing or be there in addition (the head of a model with tied embeddings).

    Raises:
        CheckpointError: names, shape, dtype or not_finite.
    """
    missing = sorted(expected.keys() - tensors.keys() - optional)
    unknown = sorted(tensors.keys() - expected.keys() - optional)
    if missing or unknown:
        raise CheckpointError(
            "names", f"tensors missing: {missing[:5] or 'none'}; not of this model: {unknown[:5] or 'none'}"
        )
    for name, tensor in tensors.items():
        dtype, shape = expected.get(name, (tensor.dtype, tensor.shape))
        if tensor.shape != shape:
            raise CheckpointError("shape", f"{name} has shape {list(tensor.shape)}, the model has {list(shape)}")
        if tensor.dtype != dtype and not (dtype in _WIDER and tensor.dtype in _WIDER[dtype]):
            raise CheckpointError("dtype", f"{name} is {tensor.dtype}, the model is {dtype}")
        if not is_finite(tensor):
            raise CheckpointError("not_finite", f"{name} holds NaN or infinite values")


def is_finite(tensor: TensorBytes) -> bool:
    """Whether no value is NaN or infinite."""
    if tensor.dtype not in _EXPONENTS:
        return True
    kind, mask = _EXPONENTS[tensor.dtype]
    values = np.frombuffer(tensor.data, dtype=kind)
    for start in range(0, len(values), _CHUNK):
        if bool(np.any((values[start : start + _CHUNK] & np.array(mask, dtype=kind)) == mask)):
            return False
    return True
