from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from headrace.streams.errors import HeadraceError
from headrace.trainers.batch import TokenRow, collate
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.optimizer import AdamW

Make = Callable[..., Path]


def rows(count: int, *, seed: int = 0, temperature: float = 1.0, repeated: bool = False) -> list[TokenRow]:
    rng = np.random.default_rng(seed)
    made: list[TokenRow] = []
    for i in range(count):
        prompt, response = (6, 2) if repeated else (int(rng.integers(2, 12)), int(rng.integers(1, 6)))
        size = prompt + response
        token_ids = rng.integers(0, 2 if repeated else 48, size=size).astype(np.int32)
        if repeated:
            token_ids[:prompt] = 3
        made.append(
            TokenRow(
                token_ids=token_ids,
                loss_mask=np.arange(size) >= prompt,
                logprobs=rng.normal(-3.0, 0.5, size=size).astype(np.float32),
                temperature=temperature,
                advantage=float(rng.normal()),
                rollout=i // 2,
            )
        )
    return made


def stepped(directory: Path, batch: list[TokenRow], steps: int = 1, **fields: object) -> dict[str, torch.Tensor]:
    learner = GrpoLearner(load_causal_lm(directory), GrpoSettings(**fields))  # type: ignore[arg-type]
    for _ in range(steps):
        learner.step(batch)
    return learner.weights()


def gradient(directory: Path, batch: list[TokenRow], **fields: object) -> torch.Tensor:
    # The first moment after one step is a tenth of the gradient; no clip, so that nothing hides a scale.
    settings = GrpoSettings(max_grad_norm=1e9, **fields)  # type: ignore[arg-type]
    learner = GrpoLearner(load_causal_lm(directory), settings)
    learner.step(batch)
    state = learner.optimizer.state()
    return torch.cat([state[f"first.{name}"].flatten() for name in learner.parameters]) * 10


def same(a: torch.Tensor, b: torch.Tensor, bound: float = 1e-5) -> bool:
    return bool((a - b).abs().max() <= bound * b.abs().max())


def test_the_same_window_gives_the_same_bits(make_model: Make) -> None:
    model = make_model()
    first, second = stepped(model, rows(20), 5), stepped(model, rows(20), 5)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("aggregation", ["rollout_mean", "row_mean", "token_mean", "token_sum"])
def test_micro_batches_add_up(make_model: Make, aggregation: str) -> None:
    model = make_model()
    whole = gradient(model, rows(20), aggregation=aggregation)
    assert same(gradient(model, rows(20), aggregation=aggregation, micro_batch_tokens=40), whole)


def test_equal_rows_are_computed_once_and_count_each(make_model: Make) -> None:
    model, batch = make_model(), rows(24, repeated=True)
    assert sum(b.targets.size for b in collate(batch, aggregation="row_mean", micro_batch_tokens=9999)) <= 4 * 2
    # A temperature of each token is another key, so that nothing is shared.
    apart = [replace(r, temperature=np.full(8, 1 + 1e-7 * i, dtype=np.float32)) for i, r in enumerate(batch)]
    assert same(gradient(model, batch), gradient(model, apart))


def family(seed: int, count: int = 12) -> list[TokenRow]:
    """Rows of three prompts whose responses begin alike, some with untrained tokens in between."""
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(0, 48, size=n) for n in (20, 12, 1)]
    made: list[TokenRow] = []
    for i in range(count):
        prompt = prompts[i % 3]
        response = rng.integers(0, 2, size=int(rng.integers(1, 5)))
        token_ids = np.concatenate([prompt, response]).astype(np.int32)
        mask = np.arange(token_ids.size) >= prompt.size
        if response.size > 2 and i % 2:
            mask[prompt.size + 1] = False
        logprobs = rng.normal(-3.0, 0.5, size=token_ids.size).astype(np.float32)
        made.append(
            TokenRow(
                token_ids=token_ids,
                loss_mask=mask,
                logprobs=logprobs,
                temperature=float(rng.choice([1.0, 0.5])),
                advantage=float(rng.normal()),
                rollout=i,
            )
        )
    return made


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [60, 9999])
def test_trees_are_the_same_sequences(make_model: Make, seed: int, limit: int) -> None:
    model = make_model()
    batches = collate(family(seed), aggregation="row_mean", micro_batch_tokens=limit, trees=True)
    apart = collate(family(seed), aggregation="row_mean", micro_batch_tokens=limit)
    assert any(b.mask is not None for b in batches)
    assert sum(b.token_ids.size for b in batches) < sum(b.token_ids.size for b in apart)
    loaded = load_causal_lm(model)
    assert loaded.trees
    # A row alone shares nothing, and the loss adds up over rows.
    alone = sum(gradient(model, [row], aggregation="token_sum") for row in family(seed))
    assert isinstance(alone, torch.Tensor)
    assert same(gradient(model, family(seed), aggregation="token_sum", micro_batch_tokens=limit), alone)


def test_temperature_divides_the_logits(make_model: Make) -> None:
    model = make_model()
    batch = rows(1, temperature=0.5)
    loaded = load_causal_lm(model)
    ids = torch.from_numpy(batch[0].token_ids.astype(np.int64))[None]
    logits = loaded.head(loaded.hidden(ids))[0].detach() / 0.5
    positions = np.flatnonzero(batch[0].loss_mask)
    logprobs = logits.log_softmax(-1)[positions - 1, ids[0, positions]]
    behaviour = batch[0].logprobs.copy()
    behaviour[positions] = logprobs.numpy()
    metrics = GrpoLearner(loaded, GrpoSettings()).step([replace(batch[0], logprobs=behaviour)])
    assert metrics["mismatch/k3"] < 1e-10
    assert metrics["ratio/max"] == pytest.approx(1.0, abs=1e-5)


def test_other_weights_than_those_that_sampled_raise_the_alarm(make_model: Make) -> None:
    metrics = GrpoLearner(load_causal_lm(make_model()), GrpoSettings()).step(rows(10))
    assert metrics["mismatch/alarm"] == 1.0
    stale = [replace(r, staleness=1) for r in rows(10)]
    assert "mismatch/k3" not in GrpoLearner(load_causal_lm(make_model("again")), GrpoSettings()).step(stale)


def test_a_gradient_that_is_not_finite_changes_nothing(make_model: Make) -> None:
    learner = GrpoLearner(load_causal_lm(make_model()), GrpoSettings())
    before = {name: w.clone() for name, w in learner.weights().items()}
    metrics = learner.step([replace(rows(1)[0], advantage=float("inf"))])
    assert metrics["step/skipped"] == 1.0
    assert all(torch.equal(before[name], w) for name, w in learner.weights().items())
    assert learner.step(rows(4))["step/skipped"] == 0.0


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_is_torchs(decay: float) -> None:
    generator = torch.Generator().manual_seed(0)
    mine = {f"p{i}": torch.randn(5, 3, generator=generator) for i in range(3)}
    theirs = [p.clone().requires_grad_(True) for p in mine.values()]
    reference = torch.optim.AdamW(theirs, lr=1e-2, weight_decay=decay, foreach=True)
    optimizer = AdamW(mine, weight_decay=decay)
    for _ in range(20):
        for p, q in zip(mine.values(), theirs, strict=True):
            p.grad = torch.randn(5, 3, generator=generator)
            q.grad = p.grad.clone()
        expected = torch.nn.utils.clip_grad_norm_(theirs, 0.7, foreach=True)
        assert optimizer.clip_gradients(0.7) == pytest.approx(expected.item(), rel=1e-6)
        optimizer.step(1e-2)
        reference.step()
    for p, q in zip(mine.values(), theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("tied", [False, True])
def test_llama_is_transformers(make_model: Make, tied: bool) -> None:
    from transformers import LlamaForCausalLM

    model = make_model(tie_word_embeddings=tied)
    theirs = LlamaForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    mine = load_causal_lm(model)
    ids = torch.randint(0, 48, (3, 40), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(mine.head(mine.hidden(ids)), theirs(ids).logits, rtol=0, atol=1e-5)
    assert set(GrpoLearner(mine, GrpoSettings()).parameters) == {name for name, _ in theirs.named_parameters()}


def test_other_architectures_go_through_transformers(make_model: Make) -> None:
    native, other = make_model("native"), make_model("other")
    config = (other / "config.json").read_text().replace('"llama"', '"mistral"').replace("Llama", "Mistral")
    (other / "config.json").write_text(config)
    batch = rows(6)
    assert same(gradient(other, batch), gradient(native, batch), 1e-4)


def test_a_directory_without_a_model_says_so(tmp_path: Path, make_model: Make) -> None:
    with pytest.raises(HeadraceError, match="no Hugging Face model directory"):
        load_causal_lm(tmp_path)
    model = make_model(name="broken")
    (model / "config.json").write_text(
        (model / "config.json").read_text().replace('"hidden_size": 32', '"hidden_size": 64')
    )
    with pytest.raises(HeadraceError, match="do not fit"):
        load_causal_lm(model)
