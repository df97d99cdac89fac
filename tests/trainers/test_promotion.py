import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from headrace.cli.promote import _verify as verify
from headrace.cli.promote import app
from headrace.schemas.records import RunManifest, Trajectory, VersionRange, Weights
from headrace.streams.errors import InvalidValueError
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.promotion.gate import Gate, PromotionRefusedError, Validation, validation_of
from headrace.trainers.publish import resources_update
from tests.trainers.make import POLICY, RUN, trajectory
from tests.trainers.outcomes import published
from tests.trainers.pipeline import produce

Make = Callable[..., Path]


def val(version: int, index: int, reward: float | None, **fields: Any) -> Trajectory:
    versions = VersionRange(min=version, max=version)
    values: dict[str, Any] = {"mode": "val", "policy_version": versions, "final_reward": reward, "group_id": None}
    return trajectory(f"val-{version}", index, **(values | {"rollout_id": f"val-{version}-{index}"} | fields))


def adapter() -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and configuration as peft has them."""
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    tensors = {f"{name}A.weight": torch.ones(2, 32), f"{name}B.weight": torch.zeros(64, 2)}
    return tensors, {"peft_type": "LORA", "r": 2, "lora_alpha": 4}


def test_validation_is_what_the_version_alone_has_answered() -> None:
    both = VersionRange(min=1, max=2)
    every = [
        val(1, 0, 1.0),
        val(1, 1, 0.0),
        val(1, 1, 0.5, revision=1),
        val(1, 2, None),
        val(1, 3, 9.0, mode="train"),
        val(1, 4, 9.0, policy="other"),
        val(1, 5, 9.0, policy_version=both),
        val(1, 6, math.nan),
        val(2, 0, 9.0),
    ]
    assert validation_of(every, POLICY, 1) == Validation(2, 0.75)
    assert validation_of(every, POLICY, 7) == Validation(0, None)


@pytest.mark.parametrize(
    ("gate", "candidate", "serving", "message"),
    [
        (Gate(), Validation(19, 1.0), None, "19 validation rollouts"),
        (Gate(), Validation(0, None), None, "--version 3` while engines serve it"),
        (Gate(), Validation(20, 0.5), Validation(20, 0.6), "below 0.6000 of what the channel has"),
        (Gate(min_reward=0.8), Validation(20, 0.79), None, "below 0.8000"),
    ],
)
def test_a_version_that_has_not_shown_enough_is_refused(
    gate: Gate, candidate: Validation, serving: Validation | None, message: str
) -> None:
    with pytest.raises(PromotionRefusedError, match=message):
        gate.check(3, candidate, serving)


def test_a_bound_is_a_number() -> None:
    with pytest.raises(InvalidValueError, match="finite"):
        Gate(min_reward=math.nan)


def test_an_adapter_needs_its_base(make_model: Make, tmp_path: Path) -> None:
    """It is refused wherever an engine would refuse it."""
    model = make_model()
    tensors, config = adapter()
    checkpoints = Checkpoints(tmp_path / "store", RUN, keep=9)
    base = checkpoints.adopt(model, POLICY, 0)
    checkpoints.use(base)

    def refused(weights: Weights) -> str:
        with pytest.raises(PromotionRefusedError) as error:
            verify(weights)
        return str(error.value)

    made = checkpoints.write(tensors, POLICY, 1, None, config)
    verify(made)
    endless = checkpoints.write({n: t + math.inf for n, t in tensors.items()}, POLICY, 2, None, config)
    assert refused(endless).endswith("(not_finite)")
    assert refused(msgspec.structs.replace(made, base_sha256={})).endswith("(base)")
    (Path(made.uri) / "adapter_config.json").rename(tmp_path / "hidden")
    assert refused(made).endswith("(missing_file)")
    (tmp_path / "hidden").rename(Path(made.uri) / "adapter_config.json")
    Path(base.uri).rename(tmp_path / "away")
    assert refused(made).endswith("(base)")


def test_a_version_that_is_no_worse_passes() -> None:
    Gate().check(3, Validation(20, 0.6), Validation(20, 0.6))
    Gate().check(3, Validation(20, -1.0), Validation(0, None))
    Gate(min_reward=0.5).check(3, Validation(20, 0.5), Validation(20, 0.9))


@pytest.mark.kafka
def test_promote_and_roll_back(settings: Settings, make_model: Make, tmp_path: Path) -> None:
    """A channel gets what was validated, keeps it when the run has pruned it, and takes an earlier version again."""
    model = make_model()
    checkpoints = Checkpoints(tmp_path / "store", RUN, keep=3)
    base = checkpoints.adopt(model, POLICY, 0)
    checkpoints.use(base)
    tensors = load_file(model / "model.safetensors")
    versions = [base] + [
        checkpoints.write({name: t + i for name, t in tensors.items()}, POLICY, i, None) for i in (1, 2, 3)
    ]
    endless = {name: t / 0 for name, t in tensors.items()}
    versions.append(checkpoints.write(endless, POLICY, 4, None))
    low_rank, config = adapter()
    versions.append(checkpoints.write(low_rank, POLICY, 5, None, config))
    manifest = RunManifest(run_id=RUN, algorithm="grpo", policy=POLICY, base_weights=base, created_at=0)
    updates = [resources_update(w, RUN, w.version) for w in versions]
    rewards = {1: 0.5, 2: 0.75, 3: 0.25, 4: 1.0, 5: 1.0}
    validations = [val(version, i, reward) for version, reward in rewards.items() for i in range(3)]
    produce(settings, [manifest, *updates, *validations])

    def promote(version: int, *flags: str, run: str = RUN, to: str = "production") -> tuple[int, str]:
        join = ["--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--min-samples", "3"]
        result = CliRunner().invoke(app, [run, str(version), "--to", to, *join, *flags])
        return result.exit_code, result.output if result.exception is None else str(result.exception)

    def channel() -> list[Weights]:
        return [w for w in published(settings) if w.policy == "production"]

    assert "has 0 validation rollouts" in promote(0)[1]
    assert promote(1)[0] == 0
    assert promote(2)[0] == 0
    assert "below 0.7500 of what the channel has" in promote(3)[1]
    assert "no version 9" in promote(9)[1]
    assert "choose a channel" in promote(2, to=POLICY)[1]
    assert "knows no run" in promote(2, run="other")[1]
    assert [w.version for w in channel()] == [1, 2]
    assert [w.weights_id for w in channel()] == [versions[1].weights_id, versions[2].weights_id]
    checkpoints.prune()
    assert not Path(versions[1].uri).exists()
    code, output = promote(1)
    assert (code, "it was there before" in output) == (0, True)
    assert "already" in promote(1)[1]
    now = channel()[-1]
    assert (now.version, now.weights_id, now.uri) == (3, versions[1].weights_id, channel()[0].uri)
    assert torch.equal(load_file(Path(now.uri) / "model.safetensors")["lm_head.weight"], tensors["lm_head.weight"] + 1)
    (Path(versions[3].uri) / "model.safetensors").write_bytes(b"broken")
    assert "sha256" in promote(3, "--min-reward", "0")[1]
    assert "not_finite" in promote(4)[1]
    assert len(channel()) == 3
    assert promote(5)[0] == 0
    now = channel()[-1]
    assert (now.format, now.base_model, now.base_sha256) == ("lora", base.uri, versions[5].base_sha256)
    assert Path(now.uri).parent == tmp_path / "store" / "channel-production"
    assert promote(1)[0] == promote(5)[0] == 0
    assert channel()[-1] == msgspec.structs.replace(now, version=6)
