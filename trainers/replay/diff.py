"""Where two runs differ: manifests, windows, weights. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from headrace.schemas.records import LogPosition, RunManifest, TrainingStep, Weights
from headrace.trainers.groups import At
from headrace.trainers.history import History

PLAIN = ("algorithm", "policy", "seed", "threads", "dtype", "device", "offline")
UNTIMED = ("seconds/", "idle/", "dropped/", "reward/recent", "outstanding", "run/", "goal_reached")
"""Metrics that say how a step went, not what it has computed."""


class SampleFacts(msgspec.Struct, frozen=True):
    """What of a trajectory can change a step.

    Attributes:
        reward: the final one.
        tokens: SHA-256 of ids, log-probabilities and sampling of all triplets.
        call_rewards: of its triplets.
    """

    rollout_id: str
    reward: float | None
    tokens: str
    call_rewards: tuple[float | None, ...]


Facts = Mapping[At, SampleFacts]
"""By position; what retention has taken is missing."""


def manifest_differences(one: RunManifest, other: RunManifest) -> list[str]:
    """Lines such as `settings.algorithm.lr: 0.001, 0.002`, one a difference that can change a result."""
    pairs: list[tuple[str, Any, Any]] = [(name, getattr(one, name), getattr(other, name)) for name in PLAIN]
    pairs.append(("settings", json.loads(one.settings), json.loads(other.settings)))
    pairs.append(("versions", one.versions, other.versions))
    pairs.append(("base_weights", _tensors(one.base_weights), _tensors(other.base_weights)))
    return [line for name, a, b in pairs for line in _differences(name, a, b)]


def step_differences(
    one: History,
    other: History,
    facts: tuple[Facts, Facts] | None = None,
    apart: Callable[[Weights, Weights], float | None] = lambda one, other: None,
) -> Iterator[dict[str, Any]]:
    """Each trained step of either run, by its number, and what differs in it.

    `only`: one of the runs has no such step.

    Weights are compared by the SHA-256 of their safetensors files. `None` is what one of the runs does not have, or
    what is not known any more.

    Args:
        facts: of the samples of each run: they are compared by what they are, and the step says how they differ
            (`trajectories`). Without them, by position: of runs that read the same topic.
        apart: how far from each other weights are that differ (`distance`), as far as their files are still there.
    """
    first, second = _steps(one), _steps(other)
    published = [{w.version: w for w in history.published} for history in (one, other)]
    for number in sorted({*first, *second}):
        a, b = first.get(number), second.get(number)
        if a is None or b is None:
            unknown = dict.fromkeys(("samples", "weights", "distance"))
            yield {"number": number, "only": True, **unknown, "metrics": [], "trajectories": {}}
            continue
        x, y = (known.get(step.policy_version) for known, step in zip(published, (a, b), strict=True))
        sums = _tensors(x), _tensors(y)
        equal = sums[0] == sums[1] if all(sums) else None
        same, how = _samples(a, b, facts)
        yield {
            "number": number,
            "only": False,
            "samples": same,
            "weights": equal,
            "distance": apart(x, y) if x is not None and y is not None and equal is False else None,
            "metrics": sorted(
                name
                for name in {*a.metrics, *b.metrics}
                if not name.startswith(UNTIMED) and a.metrics.get(name) != b.metrics.get(name)
            ),
            "trajectories": how,
        }


def positions_of(history: History) -> list[At]:
    """The positions of all that a run has trained."""
    return [(p.partition, p.offset) for step in history.steps for p in step.window.samples]


def _samples(a: TrainingStep, b: TrainingStep, facts: tuple[Facts, Facts] | None) -> tuple[bool | None, dict[str, int]]:
    """Whether two steps have the same samples in the same order, and else how many of them differ, by how."""
    if facts is None:
        return a.window.samples == b.window.samples, {}
    first, second = _facts(a.window.samples, facts[0]), _facts(b.window.samples, facts[1])
    if first is None or second is None:
        return None, {}
    there = {f.rollout_id: f for f in second}
    known = {f.rollout_id for f in first}
    both = [(f, there[f.rollout_id]) for f in first if f.rollout_id in there]
    how = {
        "only_first": len(first) - len(both),
        "only_second": sum(f.rollout_id not in known for f in second),
        "rewards": sum(x.reward != y.reward for x, y in both),
        "call_rewards": sum(x.call_rewards != y.call_rewards for x, y in both),
        "tokens": sum(x.tokens != y.tokens for x, y in both),
        "order": int([x.rollout_id for x, _ in both] != [f.rollout_id for f in second if f.rollout_id in known]),
    }
    how = {name: count for name, count in how.items() if count}
    return not how, how


def _facts(samples: list[LogPosition], facts: Facts) -> list[SampleFacts] | None:
    found = [facts.get((p.partition, p.offset)) for p in samples]
    return [f for f in found if f is not None] if None not in found else None


def _steps(history: History) -> dict[int, TrainingStep]:
    trained = [step for step in history.steps if step.window.samples]
    return {step.step: step for step in trained}


def _tensors(weights: Weights | None) -> dict[str, str]:
    if weights is None:
        return {}
    return {name: digest for name, digest in weights.sha256.items() if name.endswith(".safetensors")}


def _differences(name: str, one: Any, other: Any) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys: set[str] = {*one, *other}
        return [line for key in sorted(keys) for line in _differences(f"{name}.{key}", one.get(key), other.get(key))]
    return [] if one == other else [f"{name}: {one!r}, {other!r}"]
