"""Steps of supervised fine-tuning, and what its windows take."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace.schemas.records import Trajectory
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.sft.algorithm import Sft
from headrace.trainers.sft.settings import SftSettings
from headrace.trainers.sft.windows import ImitationWindows, ImitationWindowSettings
from tests.trainers.make import POLICY, RUN, at, trajectory, triplet

Make = Callable[..., Path]


def taken(trajectories: Iterable[Trajectory], **fields: Any) -> ImitationWindows:
    values: dict[str, Any] = {"run_id": RUN, "policy": POLICY, "groups": 2, "min_reward": 0.5} | fields
    windows = ImitationWindows(ImitationWindowSettings(**values))
    for offset, each in enumerate(trajectories):
        windows.take((0, offset), 0, each)
    return windows


def drops(windows: ImitationWindows) -> dict[str, int]:
    return {d.reason: len(d.samples) for d in windows.decisions().dropped}


def test_good_trajectories_of_any_policy_and_age_fill_a_window() -> None:
    windows = taken(
        [
            trajectory("g", 0, final_reward=0.4),
            trajectory(None, 0, rollout_id="alone", policy="other", policy_version=None),
            trajectory("g", 1, final_reward=0.5),
            trajectory("h", 0, final_reward=None),
            trajectory("h", 1, final_reward=float("nan")),
            trajectory("h", 1, mode="val"),
            trajectory("h", 1, run_id="another"),
            trajectory(None, 0, rollout_id="one more", final_reward=1.0),
        ]
    )
    groups = windows.close(version=50, now=0)
    assert groups is not None
    assert [m.trajectory.rollout_id for g in groups for m in windows.trainable(g)] == ["g-1", "one more"]
    windows.train([m for g in groups for m in windows.trainable(g)])
    assert drops(windows) == {
        "mode": 1, "no_reward": 1, "other_run": 1, "reward_below": 2, "reward_not_finite": 1
    }  # fmt: skip


def test_a_reward_that_comes_later_is_waited_for() -> None:
    windows = taken([trajectory("g", 0, final_reward=None)], groups=1, require_rewards=("judge",))
    assert windows.close(version=1, now=0) is None
    graded = trajectory("g", 0, final_reward=0.9, rewards={"judge": 0.9}, revision=1, supersedes=at(0, 0))
    windows.take((0, 1), 0, graded)
    (group,) = windows.close(version=1, now=0) or []
    assert [m.trajectory.final_reward for m in windows.trainable(group)] == [0.9]


def test_the_best_of_each_group_are_trained(make_model: Make) -> None:
    algorithm = Sft(SftSettings(best_of_group=1), POLICY)
    algorithm.load(make_model())
    group = [trajectory("g", i, group_size=4, final_reward=r) for i, r in enumerate((0.6, 0.9, 0.2, 0.9))]
    windows = taken(group, groups=1, by_group=True)
    groups = windows.close(version=1, now=0)
    assert groups is not None
    trained = algorithm.train(groups, windows)
    assert trained is not None
    assert trained.rewards == [0.9]
    decided = windows.decisions()
    assert [p.offset for p in decided.samples] == [1]
    assert {d.reason: [p.offset for p in d.samples] for d in decided.dropped} == {
        "not_best": [3, 0],
        "reward_below": [2],
    }


def test_the_loss_is_the_mean_negative_log_likelihood(make_model: Make) -> None:
    directory = make_model()
    algorithm = Sft(SftSettings(lr=1e-2), POLICY)
    algorithm.load(directory)
    calls = [([5, 6, 7], [8, 9]), ([5, 6], [1, 2, 3]), ([5, 6, 7, 8, 9, 4], [3])]
    each = [
        trajectory("g", 0, rollout_id="two", triplets=[triplet(*calls[0], None), triplet(*calls[2], None)]),
        trajectory("g", 1, rollout_id="one", triplets=[triplet(*calls[1], None)]),
    ]

    def step(window: list[Trajectory]) -> Any:
        windows = taken(window, min_reward=None)
        groups = windows.close(version=1, now=0)
        assert groups is not None
        return algorithm.train(groups, windows)

    model = load_causal_lm(directory)
    with torch.no_grad():
        nll: list[float] = []
        for prompt, response in calls:
            ids = torch.tensor([prompt + response])
            logprobs = model.head(model.hidden(ids)).log_softmax(-1)[0]
            nll += [-float(logprobs[len(prompt) + i - 1, token]) for i, token in enumerate(response)]
    first = step(each)
    assert first.metrics["loss"] == pytest.approx(sum(nll) / len(nll), rel=1e-5)
    assert first.metrics["nll"] == pytest.approx(first.metrics["loss"], rel=1e-6)
    assert first.metrics["tokens/trained"] == 6
    assert first.metrics["rows/trained"] == 2  # the second call continues the first
    for _ in range(20):
        last = step(each)
    assert last.metrics["loss"] < 0.5 * first.metrics["loss"]


def test_a_state_goes_on_bit_identically(make_model: Make, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    window = [trajectory("g", i, triplets=[triplet([1, 2, i], [3, 4], None)]) for i in range(2)]

    def step(algorithm: Sft) -> None:
        windows = taken(window, min_reward=None)
        groups = windows.close(version=1, now=0)
        assert groups is not None
        assert algorithm.train(groups, windows) is not None

    directory = make_model()
    one = Sft(SftSettings(lr=1e-2), POLICY)
    one.load(directory)
    step(one)
    saved = tmp_path / "saved"
    saved.mkdir()
    save_file({k: t.clone() for k, t in one.weights().items()}, saved / "model.safetensors")
    state = one.state()
    other = Sft(SftSettings(lr=1e-2), POLICY)
    other.load(directory)
    other.restore(saved, state)
    step(one)
    step(other)
    assert all(torch.equal(tensor, other.weights()[name]) for name, tensor in one.weights().items())
