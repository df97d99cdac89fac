"""Adapters in peft's format: what they do to the weights, what is refused, and how engines load them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from headrace.connectors.engine.adapter import CONFIG_FILE, WEIGHTS_FILE, floats, merge, read_adapter, read_base
from headrace.connectors.engine.checkpoint import CheckpointError, TensorBytes, read_checkpoint
from headrace.connectors.engine.control import HttpEngineControl, WeightsRefusedError
from tests.connectors.adapters import adapted_logprobs, adapter_record, save_adapter

NAME = "model.layers.1.self_attn.q_proj"
KEY = f"base_model.model.{NAME}"
CONFIG: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 3, "bias": "none", "use_dora": False}
Tensors = dict[str, torch.Tensor]


def _write(directory: Path, base: Path, tensors: Tensors | None = None, **config: Any) -> Path:
    directory.mkdir(exist_ok=True)
    rows, columns = load_file(base / "model.safetensors")[f"{NAME}.weight"].shape
    pair = {f"{KEY}.lora_A.weight": torch.randn(2, columns), f"{KEY}.lora_B.weight": torch.randn(rows, 2)}
    save_file(pair if tensors is None else tensors, directory / WEIGHTS_FILE)
    (directory / CONFIG_FILE).write_text(json.dumps(CONFIG | config))
    return directory


@pytest.mark.parametrize(("config", "scale"), [({}, 1.5), ({"use_rslora": True}, 3 / 2**0.5)])
def test_the_product_is_added(model_dir: Path, tmp_path: Path, config: dict[str, Any], scale: float) -> None:
    _write(tmp_path, model_dir, **config)
    base, pair = read_checkpoint(str(model_dir)), load_file(tmp_path / WEIGHTS_FILE)
    merged = merge(base, read_adapter(str(tmp_path), {}))
    wanted = load_file(model_dir / "model.safetensors")[f"{NAME}.weight"].double()
    wanted = wanted + scale * (pair[f"{KEY}.lora_B.weight"].double() @ pair[f"{KEY}.lora_A.weight"].double())
    assert np.abs(floats(merged[f"{NAME}.weight"]) - wanted.numpy()).max() < 1e-5
    assert merged.keys() == base.keys()
    assert all(merged[name] is base[name] for name in base if name != f"{NAME}.weight")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_floats_are_those_of_torch(tmp_path: Path, dtype: torch.dtype) -> None:
    tensor = torch.randn(3, 5).to(dtype)
    save_file({"x": tensor}, tmp_path / "x.safetensors")
    assert np.array_equal(floats(read_checkpoint(str(tmp_path))["x"]), tensor.float().numpy())
    with pytest.raises(CheckpointError, match="no type of floats"):
        floats(TensorBytes("I32", (1,), memoryview(b"0000")))


def _nan(tensors: Tensors) -> None:
    tensors[f"{KEY}.lora_A.weight"][0, 0] = float("nan")


def _alone(tensors: Tensors) -> None:
    del tensors[f"{KEY}.lora_B.weight"]


def _without_a(tensors: Tensors) -> None:
    del tensors[f"{KEY}.lora_A.weight"]


def _elsewhere(tensors: Tensors) -> None:
    for half in "AB":
        tensors[f"base_model.model.model.layers.9.x.lora_{half}.weight"] = tensors.pop(f"{KEY}.lora_{half}.weight")


def _wide(tensors: Tensors) -> None:
    tensors[f"{KEY}.lora_A.weight"] = torch.zeros(2, 3)


def _magnitude(tensors: Tensors) -> None:
    tensors[f"{KEY}.lora_magnitude_vector.weight"] = torch.zeros(3)


@pytest.mark.parametrize(
    ("spoil", "config", "reason"),
    [
        (_nan, {}, "not_finite"),
        (_alone, {}, "shape"),
        (_without_a, {}, "names"),
        (_elsewhere, {}, "names"),
        (_wide, {}, "shape"),
        (_magnitude, {}, "lora"),
        (None, {"r": 3}, "shape"),
        (None, {"use_dora": True}, "lora"),
        (None, {"bias": "all"}, "lora"),
        (None, {"rank_pattern": {"q_proj": 4}}, "lora"),
        (None, {"modules_to_save": ["lm_head"]}, "lora"),
        (None, {"peft_type": "IA3"}, "lora"),
        (None, {"r": None}, "format"),
        (None, {"lora_alpha": float("nan")}, "format"),
        (None, {"lora_alpha": 10**400}, "format"),
        (None, {"r": 10**400}, "format"),
        (None, {"r": float("inf")}, "format"),
    ],
)
def test_what_is_no_adapter_of_the_model_is_refused(
    model_dir: Path, tmp_path: Path, spoil: Callable[[Tensors], None] | None, config: dict[str, Any], reason: str
) -> None:
    _write(tmp_path, model_dir)
    tensors = load_file(tmp_path / WEIGHTS_FILE)
    if spoil is not None:
        spoil(tensors)
    _write(tmp_path, model_dir, tensors, **config)
    with pytest.raises(CheckpointError) as error:
        merge(read_checkpoint(str(model_dir)), read_adapter(str(tmp_path), {}))
    assert error.value.reason == reason


def test_files_are_those_of_the_record(model_dir: Path, tmp_path: Path) -> None:
    record = adapter_record(model_dir, _write(tmp_path, model_dir), 1)
    assert read_adapter(record.uri, record.sha256).files.keys() == {CONFIG_FILE, WEIGHTS_FILE}
    (tmp_path / CONFIG_FILE).write_text("{}")
    with pytest.raises(CheckpointError) as error:
        read_adapter(record.uri, record.sha256)
    assert error.value.reason == "sha256"
    (tmp_path / CONFIG_FILE).unlink()
    with pytest.raises(CheckpointError) as error:
        read_adapter(record.uri, {})
    assert error.value.reason == "missing_file"


def test_the_base_is_found_by_its_checksums(model_dir: Path, tmp_path: Path) -> None:
    sums = adapter_record(model_dir, _write(tmp_path, model_dir), 1).base_sha256
    assert read_base((None, str(tmp_path), str(model_dir)), sums).keys() == read_checkpoint(str(model_dir)).keys()
    for places, wanted in [((str(tmp_path), None), sums), ((str(model_dir),), {})]:
        with pytest.raises(CheckpointError) as error:
            read_base(places, wanted)
        assert error.value.reason == "base"


async def _asked(session: aiohttp.ClientSession) -> tuple[list[int], list[int], list[float], int]:
    body = {
        "messages": [{"role": "user", "content": "Please pick the digit 5."}],
        "seed": 3,
        "max_tokens": 12,
        "ignore_eos": True,
        "logprobs": True,
        "return_token_ids": True,
    }
    async with session.post("/v1/chat/completions", json=body) as answer:
        got = await answer.json()
    choice = got["choices"][0]
    logprobs = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    return got["prompt_token_ids"], choice["token_ids"], logprobs, got["policy_version"]["max"]


async def test_the_builtin_engine_serves_adapters_and_full_weights_in_turn(
    start_engine: Callable[..., Any], publish: Any, judge: Any, model_dir: Path, tmp_path: Path
) -> None:
    """Also those of another base than the model that it was started with."""
    other = publish(9)
    for seed, (name, base) in enumerate([("one", model_dir), ("two", model_dir), ("three", Path(other.uri))]):
        save_adapter(base, tmp_path / name, seed=seed)
    records = [
        adapter_record(model_dir, tmp_path / "one", 1),
        adapter_record(model_dir, tmp_path / "two", 2),
        publish(3),
        adapter_record(Path(other.uri), tmp_path / "three", 4),
    ]
    engine = start_engine(model_dir)
    async with aiohttp.ClientSession(engine.url) as session:
        control = HttpEngineControl(engine.url, session)
        for record in records:
            assert (await control.load(record)).changed
            prompt, response, logprobs, version = await _asked(session)
            assert version == record.version
            if record.format == "lora":
                wanted = adapted_logprobs(record.base_model or "", record.uri, prompt, response)
            else:
                wanted = judge(record.uri, prompt, response)
            assert logprobs == pytest.approx(wanted, abs=1e-5)
        lost = msgspec.structs.replace(records[0], version=5, base_sha256={"model.safetensors": "0" * 64})
        strange = msgspec.structs.replace(records[0], version=5, format="gguf")
        for refused, reason in ((lost, "base"), (strange, "format")):
            with pytest.raises(WeightsRefusedError) as error:
                await control.load(refused)
            assert error.value.reason == reason
        assert (await control.loaded()).version == 4
        assert (await _asked(session))[2] == logprobs
