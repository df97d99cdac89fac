"""Every named objective through the learner: however the rows lie in batches, packs and ranks, the gradient is one."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headrace.streams.errors import SettingsError
from headrace.trainers.batch import TokenRow, collate
from headrace.trainers.checkpoint import State
from headrace.trainers.groups import Group
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.assigning import Assigner, Sample
from headrace.trainers.grpo.following import ranks_of
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import OBJECTIVES, GrpoSettings, check_window, settings_of_objective
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.ranks import Ranks
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings
from tests.trainers.make import POLICY, RUN, trajectory, triplet

Make = Callable[..., Path]
ROLLOUTS, GROUP = 12, 4
ROOT = Path(__file__).parents[2]
BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-5}


def window(seed: int = 0) -> list[TokenRow]:
    """Rollouts of one or two rows, a row of one to three responses; lengths have a tail, some prompts are shared."""
    rng = np.random.default_rng(seed)
    made: list[TokenRow] = []
    for rollout in range(ROLLOUTS):
        call = 0
        for _ in range(int(rng.integers(1, 3))):
            token_ids, mask, calls = [3, 4], [False, False], []
            for _ in range(int(rng.integers(1, 4))):
                prompt, response = int(rng.integers(1, 5)), int(rng.integers(1, 12) ** 2 // 12 + 1)
                token_ids += rng.integers(0, 48, size=prompt + response).tolist()
                mask += [False] * prompt + [True] * response
                calls.append((call, response))
                call += 1
            made.append(
                TokenRow(
                    token_ids=np.array(token_ids, dtype=np.int32),
                    loss_mask=np.array(mask),
                    logprobs=rng.normal(-3.5, 0.4, size=len(mask)).astype(np.float32),
                    temperature=float(rng.choice([1.0, 0.7])),
                    rollout=rollout,
                    calls=tuple(calls),
                )
            )
    return made


def assigner(settings: GrpoSettings, seed: int = 0) -> Assigner:
    rewards = np.random.default_rng(seed).normal(size=ROLLOUTS)
    samples = [Sample(np.array([reward]), index) for index, reward in enumerate(rewards)]
    return Assigner(settings, [samples[i : i + GROUP] for i in range(0, ROLLOUTS, GROUP)])


def learner(
    model: Path, settings: GrpoSettings, dtype: torch.dtype = torch.float64, ranks: Ranks | None = None
) -> GrpoLearner:
    reference = load_causal_lm(model.with_name("reference"), dtype=dtype) if settings.needs_reference else None
    made = GrpoLearner(load_causal_lm(model, dtype=dtype), settings, reference, ranks)
    if made.value_head is not None:
        with torch.no_grad():
            made.value_head.weight.copy_(0.1 * torch.randn(32, generator=torch.Generator().manual_seed(5)))
    return made


def gradient(made: GrpoLearner, rows: list[TokenRow] | None = None) -> torch.Tensor:
    """Of the first optimizer step: a tenth of it is the first moment. Further steps are taken away."""
    assert made.settings.optimizer_steps == 1
    made.step(window() if rows is None else rows, assigner(made.settings))
    state = made.optimizer.state()
    return torch.cat([state[f"first.{name}"].flatten() for name in made.optimizer.parameters]) * 10


def single(name: str, **fields: Any) -> GrpoSettings:
    """A named objective with one optimizer step, and a divergence in the loss where it has none."""
    settings = settings_of_objective(name, epochs=1, mini_batches=1, max_grad_norm=1e9, **fields)
    return settings if settings.needs_reference else replace(settings, kl="k3", kl_beta=0.05)


@pytest.fixture
def model(make_model: Make) -> Path:
    make_model("reference", seed=1)
    return make_model("model")


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_micro_batches_and_packs_give_the_gradient_of_one_batch(model: Path, name: str) -> None:
    whole = gradient(learner(model, single(name, micro_batch_tokens=10**6)))
    assert whole.abs().max() > 0
    for fields in ({"micro_batch_tokens": 60}, {"packing": True}, {"packing": True, "micro_batch_tokens": 90}):
        assert apart(gradient(learner(model, single(name, **fields))), whole) <= BOUNDS[torch.float64], fields
    single_precision = gradient(learner(model, single(name, packing=True), torch.float32))
    of_one_batch = gradient(learner(model, single(name), torch.float32))
    assert apart(single_precision, of_one_batch) <= BOUNDS[torch.float32]


@pytest.mark.parametrize("name", ["dr_grpo", "dapo", "gspo", "ppo", "cispo"])
def test_a_row_for_each_response_gives_the_gradient_of_whole_rows(model: Path, name: str) -> None:
    pieces: list[TokenRow] = []
    for row in window():
        ends = np.flatnonzero(row.loss_mask)
        start = 0
        for call, size in row.calls:
            mask = np.zeros_like(row.loss_mask)
            mask[ends[start : start + size]] = True
            end = ends[start + size - 1] + 1
            pieces.append(
                replace(
                    row,
                    token_ids=row.token_ids[:end],
                    loss_mask=mask[:end],
                    logprobs=row.logprobs[:end],
                    calls=((call, size),),
                )
            )
            start += size
    assert len(pieces) > len(window())
    # The values and divergences of a row are rounded to float32 between the two passes.
    bound = 1e-6
    assert apart(gradient(learner(model, single(name)), pieces), gradient(learner(model, single(name)))) <= bound


def test_packing_leaves_no_padding_and_keeps_trees(model: Path) -> None:
    rows = window()
    packed = collate(rows, aggregation="row_mean", micro_batch_tokens=90, packing=True)
    assert sum(b.token_ids.size for b in packed) == sum(row.token_ids.size - 1 for row in rows)
    assert all(b.lengths is not None and sum(b.lengths) == b.token_ids.size for b in packed)
    assert all(b.token_ids.size <= 90 for b in packed)


def test_packed_sequences_do_not_see_each_other_in_transformers_either(make_model: Make) -> None:
    """Position ids alone tell it where a sequence begins, and with a cache they would be ignored."""
    make_model("reference", seed=1)
    other = make_model("model")
    config = (other / "config.json").read_text().replace('"llama"', '"mistral"').replace("Llama", "Mistral")
    (other / "config.json").write_text(config)
    loaded = load_causal_lm(other, dtype=torch.float64)
    assert not loaded.trees
    for limit in (10**6, 90):
        packed = gradient(learner(other, single("grpo", packing=True, micro_batch_tokens=limit)))
        assert apart(packed, gradient(learner(other, single("grpo")))) <= BOUNDS[torch.float64]
    batch = collate(window(), aggregation="row_mean", micro_batch_tokens=10**6, packing=True)[0]
    ids, positions = torch.from_numpy(batch.token_ids), torch.from_numpy(batch.positions)
    decoder = loaded.module.get_decoder()  # type: ignore[operator]
    trap = decoder(input_ids=ids, position_ids=positions, use_cache=True).last_hidden_state
    right = loaded.hidden(ids, positions, None, batch.lengths)
    first = (batch.lengths or [0])[0]
    assert torch.allclose(trap[:, :first], right[:, :first])
    assert not torch.allclose(trap[:, first:], right[:, first:], atol=1e-3)


RANK = """
import sys, torch
from pathlib import Path
from headrace.trainers.ranks import GlooRanks
from tests.trainers.test_objectives_learn import gradient, learner, single
rank, store, model, out = int(sys.argv[1]), *sys.argv[2:]
torch.set_num_threads(1)
ranks = GlooRanks(rank, 2, store)
for name in ("grpo", "ppo"):
    found = gradient(learner(Path(model), single(name, micro_batch_tokens=60), ranks=ranks))
    torch.save(found, f"{out}-{name}-{rank}")
ranks.close()
"""


def test_two_ranks_give_the_gradient_of_one(model: Path, tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "gradient"
    commands = [[sys.executable, "-c", RANK, str(rank), str(store), str(model), str(out)] for rank in (0, 1)]
    processes = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    try:
        assert [process.wait(60) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
    for name in ("grpo", "ppo"):
        one = gradient(learner(model, single(name, micro_batch_tokens=60)))
        both = [torch.load(f"{out}-{name}-{rank}") for rank in (0, 1)]
        assert torch.equal(both[0], both[1])
        assert apart(both[0], one) <= BOUNDS[torch.float64]


def test_a_trainer_with_two_ranks_goes_on_like_one(model: Path) -> None:
    """The further rank loads, steps and restores with the first; afterwards it ends."""
    settings = single("ppo", micro_batch_tokens=60)

    def stepped(ranks: Ranks) -> torch.Tensor:
        algorithm = Grpo(settings, POLICY, ranks)
        algorithm.load(model)
        state, weights = algorithm.state(), {name: w.clone() for name, w in algorithm.weights().items()}
        groups, windows = closed()
        assert algorithm.train(groups, windows) is not None
        whole = State(state.tensors | {f"weights.{name}": w for name, w in weights.items()}, state.facts)
        algorithm.restore(model, whole)
        groups, windows = closed()
        assert algorithm.train(groups, windows) is not None
        return torch.cat([w.flatten() for w in algorithm.weights().values()])

    with ranks_of(settings, 2, 1) as ranks:
        assert ranks.size == 2
        both = stepped(ranks)
    assert apart(both, stepped(Ranks())) <= 1e-4  # AdamW divides by the gradient's own size


def closed() -> tuple[list[Group], Windows]:
    windows = Windows(WindowSettings(run_id=RUN, policy=POLICY, groups=2))
    for group in range(2):
        for index in range(2):
            call = triplet([3, group], [7, 8 + index, 9], [-3.0, -2.0, -4.0])
            windows.take((0, 2 * group + index), 0, trajectory(f"g{group}", index, triplets=[call]))
    groups = windows.close(0, 0)
    assert groups is not None
    return groups, windows


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_step_of_each_objective_moves_the_weights_and_repeats_to_the_bit(model: Path, name: str) -> None:
    weights: list[dict[str, torch.Tensor]] = []
    for _ in range(2):
        made = learner(model, settings_of_objective(name), torch.float32)
        metrics = made.step(window(), assigner(made.settings))
        assert metrics["step/skipped"] == 0
        assert np.isfinite(list(metrics.values())).all()
        weights.append({name: w.clone() for name, w in made.weights().items()})
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert not torch.equal(weights[0]["lm_head.weight"], learner(model, GrpoSettings()).weights()["lm_head.weight"])
    assert not any(key.startswith("value_head") for key in weights[0])


def test_the_value_head_learns_and_comes_back_with_the_state(model: Path) -> None:
    settings = settings_of_objective("ppo", lr=1e-2)
    made = learner(model, settings, torch.float32)
    errors = [made.step(window(), assigner(settings))["value/error"] for _ in range(8)]
    assert errors[-1] < errors[0]
    weights = {name: w.clone() for name, w in made.weights().items()}
    state = {name: t.clone() for name, t in made.state().items()}
    again = GrpoLearner(load_causal_lm(model), settings)
    again.restore(weights, state, made.optimizer.steps)
    made.step(window(1), assigner(settings, 1))
    again.step(window(1), assigner(settings, 1))
    assert all(torch.equal(made.state()[name], again.state()[name]) for name in state)
    assert all(torch.equal(made.weights()[name], again.weights()[name]) for name in weights)


def test_decoupled_ratios_begin_at_one_and_correct_for_staleness(model: Path) -> None:
    made = learner(model, single("decoupled_ppo"), torch.float32)
    metrics = made.step(window(), assigner(made.settings))
    assert metrics["ratio/max"] == pytest.approx(1.0, abs=1e-5)
    assert metrics["clip/fraction"] == 0.0
    assert 0.0 < metrics["ratio/weight"] <= 2.0
    assert metrics["ratio/truncated"] > 0.0
    assert metrics["mismatch/alarm"] == 1.0


def test_bfloat16_is_near_float32_and_its_bound_is_wider(model: Path) -> None:
    wide = gradient(learner(model, single("grpo"), torch.float32))
    half = gradient(learner(model, single("grpo", dtype="bfloat16"), torch.float32))
    assert half.dtype == torch.float32
    assert 1e-7 < apart(half, wide) < 0.1
    assert (GrpoSettings().alarm_bound, GrpoSettings(dtype="bfloat16").alarm_bound) == (1e-3, 5e-2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epochs": 2}, "need ratio decoupled"),
        ({"advantage": "gae", "credit": "own"}, "final or return"),
        ({"token_divisor": 5.0}, "aggregation token_sum"),
        ({"kl": "k2"}, "none, k1, k3"),
        ({"kl_in": "advantage"}, "reward or loss"),
        ({"loss": "hinge"}, "clip, gspo, reinforce"),
        ({"ratio": "old"}, "behaviour, decoupled"),
        ({"advantage": "best"}, "reinforce_pp_baseline"),
        ({"dual_clip": 0.5}, "above 1"),
        ({"dual_clip": 3.0, "loss": "gspo"}, "goes with loss clip"),
        ({"over_long": "keep"}, "drop, cut"),
        ({"dtype": "float16"}, "float32, bfloat16"),
        ({"gamma": 1.5}, "between 0 and 1"),
        ({"truncation": 0.0}, "positive"),
    ],
)
def test_settings_that_do_not_go_together_say_so(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        GrpoSettings(**fields)


def test_named_objectives() -> None:
    with pytest.raises(SettingsError, match="grpo, dr_grpo, rloo"):
        settings_of_objective("best")
    assert settings_of_objective("grpo") == GrpoSettings()
    assert settings_of_objective("gspo", clip_high=0.1, lr=None).clip_high == 0.1
    assert settings_of_objective("dr_grpo", aggregation="token_mean").token_divisor is None
    window = WindowSettings(run_id="run", policy="policy", ungrouped="value")
    with pytest.raises(SettingsError, match="value head"):
        check_window(window, GrpoSettings())
    check_window(window, settings_of_objective("ppo"))
