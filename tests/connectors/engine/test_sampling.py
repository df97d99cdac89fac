import pytest
import torch

from headrace.connectors.engine.sampling import Sampling, sample, stream_key, uniform


def test_uniforms_are_uniform_and_streams_independent() -> None:
    keys = [stream_key(seed, choice) for seed in range(50) for choice in range(4)]
    assert len(set(keys)) == 200
    numbers = torch.tensor([[uniform(key, position) for position in range(100)] for key in keys])
    assert float(numbers.min()) >= 0
    assert float(numbers.max()) < 1
    counts = torch.histc(numbers, 20, 0, 1)
    expected = numbers.numel() / 20
    assert float(((counts - expected) ** 2 / expected).sum()) < 45  # 19 degrees of freedom: p < 0.001 above 43.8
    correlation = torch.corrcoef(numbers[:2])[0, 1]
    assert abs(float(correlation)) < 0.3


def test_draws_follow_the_distribution_and_logprobs_are_those_of_it() -> None:
    logits = torch.tensor([1.0, 0.0, -1.0, -torch.inf]).repeat(20_000, 1)
    settings = [Sampling(temperature=2.0)] * 20_000
    tokens, logprobs = sample(logits, settings, [uniform(stream_key(i, 0), 0) for i in range(20_000)])
    wanted = (logits[0] / 2).softmax(-1)
    assert torch.allclose(logprobs[0].exp(), wanted)
    shares = torch.bincount(tokens, minlength=4) / 20_000
    assert torch.allclose(shares, wanted, atol=0.015)
    assert shares[3] == 0


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        (Sampling(top_k=2), [0, 2]),
        (Sampling(top_k=99), [0, 1, 2, 3, 4]),
        (Sampling(top_p=0.5), [0, 2]),
        (Sampling(top_p=0.35), [0]),
        (Sampling(top_p=1e-9), [0]),
        (Sampling(top_p=0.85), [0, 1, 2]),
        (Sampling(top_k=3, top_p=0.7), [0, 2]),
        (Sampling(temperature=100.0, top_p=0.5), [0, 1, 2]),
    ],
)
def test_truncation_keeps_what_it_should_and_renormalises(setting: Sampling, kept: list[int]) -> None:
    logits = torch.tensor([[0.4, 0.2, 0.25, 0.1, 0.05]]).log()
    _, logprobs = sample(logits, [setting], [0.5])
    assert (logprobs[0] > -torch.inf).nonzero()[:, 0].tolist() == kept
    wanted = torch.full((5,), -torch.inf)
    wanted[kept] = (logits[0, kept] / setting.temperature).log_softmax(-1)
    assert torch.allclose(logprobs[0], wanted, atol=1e-6)


def test_rows_of_one_batch_do_not_touch_each_other() -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 50)
    settings = [
        Sampling(),
        Sampling(temperature=0.0),
        Sampling(temperature=0.0, top_p=0.1),
        Sampling(temperature=0.3, top_k=5),
        Sampling(top_p=0.4),
        Sampling(temperature=3.0),
    ]
    uniforms = [uniform(stream_key(i, 0), 3) for i in range(6)]
    tokens, logprobs = sample(logits, settings, uniforms)
    for i in range(6):
        alone, alone_logprobs = sample(logits[i : i + 1], settings[i : i + 1], uniforms[i : i + 1])
        assert alone[0] == tokens[i]
        assert torch.equal(alone_logprobs[0], logprobs[i])
    assert tokens[1] == logits[1].argmax()
    assert torch.allclose(logprobs[1], logits[1].log_softmax(-1))  # greedy rows: those at temperature 1
