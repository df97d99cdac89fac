"""Where two runs differ."""

import json
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save_file

from headrace.schemas.records import LogPosition, RunManifest, TrainingStep, Weights, Window
from headrace.trainers.history import History
from headrace.trainers.replay.diff import SampleFacts, manifest_differences, step_differences
from headrace.trainers.replay.distance import distance
from headrace.trainers.replay.facts import facts_of
from tests.trainers.make import trajectory


def manifest(lr: float = 0.1, **versions: str) -> RunManifest:
    settings = json.dumps({"algorithm": {"lr": lr, "betas": [0.9, 0.999]}})
    return RunManifest(run_id="r", algorithm="grpo", policy="p", settings=settings, versions=versions, created_at=0)


def history(*digests: str, version: int = 1, samples: int = 1) -> History:
    """A run with a step for each digest, one step without samples between them."""
    found = History(manifest=manifest())
    for number, digest in enumerate(digests, 1):
        trained = [LogPosition(partition=0, offset=samples * (number - 1) + i) for i in range(samples)]
        for window in ([], trained):
            found.steps.append(
                TrainingStep(
                    run_id="r",
                    step=number,
                    policy="p",
                    policy_version=number + version,
                    window=Window(samples=window),
                    metrics={"loss": float(len(digest)), "seconds/train": float(version)},
                    started_at=0,
                    ended_at=0,
                )
            )
        hashes = {"model.safetensors": digest, "config.json": str(version)}
        found.published.append(Weights(policy="p", version=number + version, weights_id="w", uri="u", sha256=hashes))
    return found


def test_manifests_differ_by_what_can_change_a_result() -> None:
    one, other = manifest(torch="2.13"), manifest(0.2, torch="2.14")
    assert manifest_differences(one, other) == [
        "settings.algorithm.lr: 0.1, 0.2",
        "versions.torch: '2.13', '2.14'",
    ]
    assert manifest_differences(one, msgspec.structs.replace(one, run_id="s", created_at=9)) == []


def test_steps_are_matched_by_their_number_in_the_run() -> None:
    found = list(step_differences(history("a", "b", "c"), history("a", "bb", version=7), apart=lambda one, other: 0.5))
    same: dict[str, Any] = {"only": False, "samples": True, "trajectories": {}}
    unknown = {"samples": None, "weights": None, "distance": None}
    assert found == [
        {"number": 1, "weights": True, "distance": None, "metrics": [], **same},
        {"number": 2, "weights": False, "distance": 0.5, "metrics": ["loss"], **same},
        {"number": 3, "only": True, **unknown, "metrics": [], "trajectories": {}},
    ]


def test_distance_is_the_largest_difference_of_a_weight(tmp_path: Path) -> None:
    def weights(name: str, **tensors: torch.Tensor) -> Weights:
        (tmp_path / name).mkdir()
        save_file(tensors, tmp_path / name / "model.safetensors")
        return Weights(policy="p", version=1, weights_id=name, uri=str(tmp_path / name))

    one = weights("one", a=torch.tensor([1.0, 2.0]), b=torch.tensor([[3.0]]))
    other = weights("other", a=torch.tensor([1.0, 2.5]), b=torch.tensor([[3.25]]))
    assert distance(one, one) == 0.0
    assert distance(one, other) == 0.5
    assert distance(one, weights("wider", a=torch.zeros(3), b=torch.zeros(1, 1))) is None
    (tmp_path / "other" / "model.safetensors").write_bytes(b"half")
    assert distance(one, other) is None
    assert distance(one, msgspec.structs.replace(one, uri=str(tmp_path / "gone"))) is None


def test_samples_of_two_topics_are_compared_by_what_they_are() -> None:
    def facts(name: str, reward: float = 0.0, tokens: str = "x") -> SampleFacts:
        return SampleFacts(name, reward, tokens, (reward,))

    first = {(0, i): facts(name) for i, name in enumerate("abcd")}
    runs = history("w", samples=4), history("w", samples=4)
    other = {(0, 0): facts("b"), (0, 1): facts("a", 1.0), (0, 2): facts("c", tokens="y"), (0, 3): facts("e")}
    (step,) = step_differences(*runs, (first, other))
    assert step["samples"] is False
    assert step["trajectories"] == {
        "only_first": 1, "only_second": 1, "rewards": 1, "call_rewards": 1, "tokens": 1, "order": 1
    }  # fmt: skip
    assert next(step_differences(*runs, (first, dict(first))))["samples"] is True
    del other[0, 3]  # retention has taken it
    assert next(step_differences(*runs, (first, other)))["samples"] is None


def test_facts_of_a_trajectory_are_what_it_is_trained_on() -> None:
    one = trajectory("g", 0)
    assert facts_of(one) == facts_of(msgspec.structs.replace(one, assembled_at=9, status="failed"))
    twice = msgspec.structs.replace(one, triplets=[*one.triplets, *one.triplets])
    assert facts_of(one).tokens != facts_of(twice).tokens
    assert facts_of(one) != facts_of(msgspec.structs.replace(one, final_reward=0.5))
