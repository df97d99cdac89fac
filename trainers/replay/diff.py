"""Where two runs differ: manifests, windows, weights. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from headrace.schemas.records import RunManifest, TrainingStep, Weights
from headrace.trainers.history import History

PLAIN = ("algorithm", "policy", "seed", "threads", "dtype", "device", "offline")


def manifest_differences(one: RunManifest, other: RunManifest) -> list[str]:
    """Lines such as `settings.algorithm.lr: 0.001, 0.002`, one a difference that can change a result."""
    pairs: list[tuple[str, Any, Any]] = [(name, getattr(one, name), getattr(other, name)) for name in PLAIN]
    pairs.append(("settings", json.loads(one.settings), json.loads(other.settings)))
    pairs.append(("versions", one.versions, other.versions))
    pairs.append(("base_weights", _tensors(one.base_weights), _tensors(other.base_weights)))
    return [line for name, a, b in pairs for line in _differences(name, a, b)]


def step_differences(one: History, other: History) -> Iterator[dict[str, Any]]:
    """Each trained step of either run, by its policy version counted from the run's first, and what differs in it.

    The samples are compared by position; weights by the SHA-256 of their safetensors files. `None` is what one of the
    runs does not have.
    """
    first, second = _steps(one), _steps(other)
    published = [{w.version: w for w in history.published} for history in (one, other)]
    for number in sorted({*first, *second}):
        a, b = first.get(number), second.get(number)
        if a is None or b is None:
            yield {"number": number, "samples": None, "weights": None, "metrics": []}
            continue
        weights = [_tensors(known.get(step.policy_version)) for known, step in zip(published, (a, b), strict=True)]
        yield {
            "number": number,
            "samples": a.window.samples == b.window.samples,
            "weights": weights[0] == weights[1] if all(weights) else None,
            "metrics": sorted(
                name
                for name in {*a.metrics, *b.metrics}
                if not name.startswith(("seconds/", "dropped/")) and a.metrics.get(name) != b.metrics.get(name)
            ),
        }


def _steps(history: History) -> dict[int, TrainingStep]:
    trained = [step for step in history.steps if step.window.samples]
    return dict(enumerate(trained, 1))


def _tensors(weights: Weights | None) -> dict[str, str]:
    if weights is None:
        return {}
    return {name: digest for name, digest in weights.sha256.items() if name.endswith(".safetensors")}


def _differences(name: str, one: Any, other: Any) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys: set[str] = {*one, *other}
        return [line for key in sorted(keys) for line in _differences(f"{name}.{key}", one.get(key), other.get(key))]
    return [] if one == other else [f"{name}: {one!r}, {other!r}"]
