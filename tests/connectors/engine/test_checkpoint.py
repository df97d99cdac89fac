"""What is no whole checkpoint of this model is refused, with a reason."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headrace.connectors.engine.checkpoint import CheckpointError, read_checkpoint, signature, verify

FILE = "model.safetensors"
KEY = "model.layers.1.mlp.down_proj.weight"
Tensors = dict[str, torch.Tensor]


def _nan(tensors: Tensors) -> None:
    tensors[KEY][3, 5] = float("nan")


def _infinite(tensors: Tensors) -> None:
    tensors[KEY][0, 0] = float("-inf")


def _missing(tensors: Tensors) -> None:
    del tensors[KEY]


def _foreign(tensors: Tensors) -> None:
    tensors["lora.weight"] = torch.zeros(2)


def _reshaped(tensors: Tensors) -> None:
    tensors[KEY] = tensors[KEY].T.contiguous()


def _narrow(tensors: Tensors) -> None:
    tensors[KEY] = tensors[KEY].half()


def _integers(tensors: Tensors) -> None:
    tensors[KEY] = tensors[KEY].int()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_nan, "not_finite"),
        (_infinite, "not_finite"),
        (_missing, "names"),
        (_foreign, "names"),
        (_reshaped, "shape"),
        (_narrow, "dtype"),
        (_integers, "dtype"),
    ],
)
def test_tensors_not_of_the_model(
    model_dir: Path, tmp_path: Path, spoil: Callable[[Tensors], None], reason: str
) -> None:
    expected = signature(read_checkpoint(str(model_dir)))
    tensors = load_file(model_dir / FILE)
    verify(read_checkpoint(str(model_dir)), expected)
    spoil(tensors)
    save_file(tensors, tmp_path / FILE)
    with pytest.raises(CheckpointError) as error:
        verify(read_checkpoint(str(tmp_path)), expected)
    assert error.value.reason == reason


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_finiteness_is_read_from_the_bits(tmp_path: Path, dtype: torch.dtype, value: float | None) -> None:
    tensor = torch.tensor([0.0, -0.0, torch.finfo(dtype).max, torch.finfo(dtype).tiny, 1.0], dtype=dtype)
    if value is not None:
        tensor[2] = value
    save_file({"x": tensor}, tmp_path / FILE)
    read = read_checkpoint(str(tmp_path))
    if value is None:
        verify(read, signature(read))
    else:
        with pytest.raises(CheckpointError, match="NaN or infinite"):
            verify(read, signature(read))


def _cut(content: bytes) -> bytes:
    return content[:-100]


def _empty(content: bytes) -> bytes:
    del content
    return b""


def _huge_header(content: bytes) -> bytes:
    return struct.pack("<Q", 1 << 60) + content[8:]


def _no_json(content: bytes) -> bytes:
    return content[:9] + b"\xff\xff" + content[11:]


def _list_header(content: bytes) -> bytes:
    del content
    return struct.pack("<Q", 2) + b"[]"


def _overlong(content: bytes) -> bytes:
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    header[KEY]["data_offsets"][1] += 4
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + content[8 + length :]


def _deep_header(content: bytes) -> bytes:
    del content
    return (100_000).to_bytes(8, "little") + b"[" * 100_000


def _endless(content: bytes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header[KEY]["shape"][0] = float("inf")
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + content[8 + length :]


@pytest.mark.parametrize(
    "spoil", [_cut, _empty, _huge_header, _no_json, _list_header, _overlong, _deep_header, _endless]
)
def test_files_that_are_not_whole(model_dir: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    (tmp_path / FILE).write_bytes(spoil((model_dir / FILE).read_bytes()))
    with pytest.raises(CheckpointError) as error:
        read_checkpoint(str(tmp_path))
    assert error.value.reason == "format"


def test_sums_are_checked_and_files_without_one_refused(model_dir: Path, tmp_path: Path) -> None:
    import hashlib

    content = (model_dir / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content)
    right = {FILE: hashlib.sha256(content).hexdigest()}
    assert read_checkpoint(f"file://{tmp_path}", right).keys() == read_checkpoint(str(model_dir)).keys()

    def reason(uri: str, sums: dict[str, str]) -> str:
        with pytest.raises(CheckpointError) as error:
            read_checkpoint(uri, sums)
        return error.value.reason

    assert reason(str(tmp_path), {FILE: "0" * 64}) == "sha256"
    assert reason(str(tmp_path), right | {"more.safetensors": "0"}) == "missing_file"
    assert reason(str(tmp_path), right | {"../x": "0"}) == "uri"
    (tmp_path / "second.safetensors").write_bytes(content)
    assert reason(str(tmp_path), right) == "unlisted_file"
    assert reason(str(tmp_path), {}) == "names"
    assert reason(str(tmp_path / "nowhere"), {}) == "uri"
    assert reason("s3://bucket/x", {}) == "uri"
