"""Adapters: what is trained, what is published, and that a restart goes on with the same bits."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

from headrace.connectors.engine.adapter import read_adapter
from headrace.connectors.engine.checkpoint import read_checkpoint
from headrace.streams.errors import SettingsError
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import Dtype, GrpoSettings, settings_from
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.models.lora import LoraSettings, adapter_config, lora_of
from headrace.trainers.sft.algorithm import Sft
from headrace.trainers.sft.settings import SftSettings
from tests.trainers.make import POLICY, RUN
from tests.trainers.outcomes import published
from tests.trainers.pipeline import (
    loop,
    produce,
    run_until,
    synthetic,
    trained_at_least,
    training,
    triplets,
    undisturbed,
)
from tests.trainers.test_learner import rows, same

Make = Callable[..., Path]
LORA = LoraSettings(rank=4, alpha=8, targets=("q_proj", "v_proj", "down_proj"))


def learner(model: Path, lora: LoraSettings = LORA, **fields: Any) -> GrpoLearner:
    settings = GrpoSettings(lora=lora, **({"lr": 1e-2} | fields))
    return GrpoLearner(load_causal_lm(model, lora=lora), settings)


def gradient(model: Path, **fields: Any) -> torch.Tensor:
    one = learner(model, max_grad_norm=1e9, **fields)
    one.step(rows(20))
    return torch.cat([one.state()[f"first.{name}"].flatten() for name in one.parameters])


def test_peft_loads_what_is_published(make_model: Make, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = make_model()
    one = learner(model)
    for _ in range(3):
        one.step(rows(20))
    checkpoints = Checkpoints(tmp_path / "store", RUN, keep=2)
    base = checkpoints.adopt(model, POLICY, 0)
    checkpoints.use(base)
    weights = checkpoints.write(one.weights(), POLICY, 1, "model", adapter_config(LORA))
    assert (weights.format, weights.base_model) == ("lora", base.uri)
    digest = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    assert weights.base_sha256 == {"model.safetensors": digest}
    files = {"adapter_config.json", "adapter_model.safetensors"}
    assert {p.name for p in Path(weights.uri).iterdir()} == {*files, "manifest.json"}
    assert weights.sha256.keys() == files
    assert not checkpoints.loses_precision(one.weights())

    token_ids = torch.tensor([[1, 5, 9, 2, 40, 7]])
    plain: Any = AutoModelForCausalLM.from_pretrained(weights.base_model, dtype=torch.float32)
    with torch.no_grad():
        before = plain(token_ids).logits.clone()
        after = PeftModel.from_pretrained(plain, weights.uri).eval()(token_ids).logits
        mine = one.model.head(one.model.hidden(token_ids))
    assert (after - before).abs().max() > 0.05  # the check can fail
    assert (after - mine).abs().max() < 1e-5
    adapter = read_adapter(weights.uri, weights.sha256)
    assert (adapter.rank, adapter.scale, len(adapter.pairs)) == (4, 2.0, 6)


def test_only_the_adapter_is_trained(make_model: Make) -> None:
    model = make_model()
    one = learner(model)
    one.step(rows(20))
    state = one.model.module.state_dict()
    for name, tensor in load_file(model / "model.safetensors").items():
        found = state[name] if name in state else state[name.replace(".weight", ".base_layer.weight")]
        assert torch.equal(found, tensor)
    names = {name.rpartition(".lora_")[0] for name in one.parameters}
    layers = [f"base_model.model.model.layers.{i}" for i in (0, 1)]
    parts = ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj")
    assert names == {f"{layer}.{part}" for layer in layers for part in parts}


def test_the_adapter_is_that_of_its_seed_and_touches_no_other_randomness(make_model: Make) -> None:
    model = make_model()
    torch.manual_seed(1)
    first = learner(model).weights()
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1))
    torch.manual_seed(2)
    second = learner(model).weights()
    other = learner(model, LoraSettings(rank=4, alpha=8, targets=LORA.targets, seed=3)).weights()
    a = next(name for name in first if ".lora_A." in name)
    assert torch.equal(first[a], second[a])
    assert not torch.equal(first[a], other[a])
    assert not first[a.replace("lora_A", "lora_B")].any()


def test_micro_batches_add_up_and_bfloat16_is_near(make_model: Make) -> None:
    model = make_model()
    whole = gradient(model)
    assert same(gradient(model, micro_batch_tokens=40), whole)
    assert same(gradient(model, packing=True), whole)
    assert same(gradient(model, dtype="bfloat16"), whole, 0.1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_reference_of_an_adapter_is_its_own_base(make_model: Make, dtype: str) -> None:
    """As with a second copy of the base weights, bit for bit, and without one."""
    model = make_model()
    settings = GrpoSettings(lr=1e-2, lora=LORA, kl="k3", kl_beta=0.1, dtype=cast("Dtype", dtype))
    algorithm = Grpo(settings, POLICY)
    algorithm.load(model)
    one = cast("GrpoLearner", algorithm.learner)
    assert one.reference is None
    base = sum(tensor.numel() for tensor in load_file(model / "model.safetensors").values())
    adapter = sum(parameter.numel() for parameter in one.parameters.values())
    assert sum(parameter.numel() for parameter in one.model.module.parameters()) == base + adapter
    two = GrpoLearner(load_causal_lm(model, lora=LORA), settings, load_causal_lm(model))
    metrics = [one.step(rows(20)) for _ in range(3)]
    assert metrics == [two.step(rows(20)) for _ in range(3)]
    assert metrics[0]["kl_ref"] == 0.0  # not trained yet
    assert metrics[2]["kl_ref"] > 0.0
    assert all(torch.equal(tensor, two.weights()[name]) for name, tensor in one.weights().items())


def test_settings_come_back_from_a_manifest() -> None:
    settings = GrpoSettings(lora=LORA)
    assert settings_from(json.loads(json.dumps(asdict(settings)))) == settings
    assert settings_from(asdict(GrpoSettings())) == GrpoSettings()


def test_flags(make_model: Make) -> None:
    assert lora_of(None, None, None, 0) is None
    assert lora_of(8, None, None, 5) == LoraSettings(rank=8, alpha=16, seed=5)
    made = lora_of(8, 4, "q_proj, v_proj", 0)
    assert made == LoraSettings(rank=8, alpha=4, targets=("q_proj", "v_proj"))
    for given in ((None, 4, None, 0), (None, None, "q_proj", 0), (0, None, None, 0), (4, None, "q_proj,", 0)):
        with pytest.raises(SettingsError, match="--lora"):
            lora_of(*given)
    for targets in (("q_proj", "c_attn"), ("lm_head",), ("embed_tokens",)):
        with pytest.raises(SettingsError, match="the model has down_proj, gate_proj"):
            learner(make_model("-".join(targets)), LoraSettings(rank=4, alpha=8, targets=targets))


def test_sft_goes_on_with_the_same_bits(make_model: Make, tmp_path: Path) -> None:
    model = make_model()

    def made() -> Sft:
        algorithm = Sft(SftSettings(lr=1e-2, lora=LORA), POLICY)
        algorithm.load(model)
        return algorithm

    one, other = made(), made()
    one.step(rows(6))
    checkpoints = Checkpoints(tmp_path, RUN, keep=2)
    checkpoints.use(checkpoints.adopt(model, POLICY, 0))
    saved = checkpoints.write(one.weights(), POLICY, 1, None, one.adapter())
    other.restore(Path(saved.uri), one.state())
    for algorithm in (one, other):
        algorithm.step(rows(6, seed=1))
    assert len(one.weights()) == 12
    assert all(torch.equal(tensor, other.weights()[name]) for name, tensor in one.weights().items())


@pytest.mark.kafka
def test_a_run_stopped_and_started_again_publishes_the_same_adapters(
    settings: Settings, make_model: Make, tmp_path: Path
) -> None:
    model, arithmetic = make_model(), GrpoSettings(lr=1e-2, lora=LORA)
    produce(settings, synthetic(range(4)))
    run_until(settings, loop(settings, model, tmp_path, arithmetic=arithmetic), trained_at_least(16))
    produce(settings, synthetic(range(4, 8)))
    run_until(settings, loop(settings, model, tmp_path, arithmetic=arithmetic), trained_at_least(32))
    manifests, steps = training(settings)
    assert json.loads(manifests[0].settings)["algorithm"]["lora"]["rank"] == 4
    assert "peft" in manifests[0].versions
    versions = published(settings)
    assert [w.format for w in versions] == ["safetensors"] + ["lora"] * 4
    assert [w.version for w in versions] == [0, 1, 2, 3, 4]
    base = versions[0]
    assert all(w.base_model == base.uri for w in versions[1:])
    assert read_checkpoint(base.uri, versions[-1].base_sha256).keys() == load_file(model / "model.safetensors").keys()
    expected = undisturbed(model, steps, triplets(settings), arithmetic)
    actual = load_file(Path(versions[-1].uri) / "adapter_model.safetensors")
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], expected[name]) for name in expected)
