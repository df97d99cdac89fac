"""Where two runs differ."""

import json

import msgspec

from headrace.schemas.records import LogPosition, RunManifest, TrainingStep, Weights, Window
from headrace.trainers.history import History
from headrace.trainers.replay.diff import manifest_differences, step_differences


def manifest(lr: float = 0.1, **versions: str) -> RunManifest:
    settings = json.dumps({"algorithm": {"lr": lr, "betas": [0.9, 0.999]}})
    return RunManifest(run_id="r", algorithm="grpo", policy="p", settings=settings, versions=versions, created_at=0)


def history(*digests: str, first: int = 1) -> History:
    """A run with a step for each digest, one step without samples between them."""
    found = History(manifest=manifest())
    for number, digest in enumerate(digests, first):
        sample = [LogPosition(partition=0, offset=number - first)]
        for samples in ([], sample):
            found.steps.append(
                TrainingStep(
                    run_id="r",
                    step=number,
                    policy="p",
                    policy_version=number,
                    window=Window(samples=samples),
                    metrics={"loss": float(len(digest)), "seconds/train": float(number)},
                    started_at=0,
                    ended_at=0,
                )
            )
        hashes = {"model.safetensors": digest, "config.json": str(first)}
        found.published.append(Weights(policy="p", version=number, weights_id="w", uri="u", sha256=hashes))
    return found


def test_manifests_differ_by_what_can_change_a_result() -> None:
    one, other = manifest(torch="2.13"), manifest(0.2, torch="2.14")
    assert manifest_differences(one, other) == [
        "settings.algorithm.lr: 0.1, 0.2",
        "versions.torch: '2.13', '2.14'",
    ]
    assert manifest_differences(one, msgspec.structs.replace(one, run_id="s", created_at=9)) == []


def test_steps_are_matched_by_their_number_in_the_run() -> None:
    found = list(step_differences(history("a", "b", "c"), history("a", "bb", first=7)))
    assert found == [
        {"number": 1, "samples": True, "weights": True, "metrics": []},
        {"number": 2, "samples": True, "weights": False, "metrics": ["loss"]},
        {"number": 3, "samples": None, "weights": None, "metrics": []},
    ]
