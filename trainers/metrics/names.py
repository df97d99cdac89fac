"""The fixed names of a run's metrics: what a TrainingStep says, as scalars by name. Pure."""

from collections.abc import Mapping
from math import isfinite

from headrace.schemas.records import TrainingStep

NAMES: dict[str, str] = {
    "reward/": "rewards of the trained samples: mean, and recent over the last goal_samples",
    "groups/": "complete groups of the window: count, size, zero_variance (share)",
    "dropped/": "samples that were decided without being trained, by reason",
    "masked/": "responses that were masked out, by reason",
    "staleness/": "versions behind, of the trained samples: mean, max; 0, 1, ... is the histogram",
    "ratio/": "current over behaviour probability: mean, max, k3",
    "ess/": "effective sample size (Kish) of importance weights: samples, share, tokens, log_weight; total of a run",
    "mismatch/": "k3 between engine and trainer on fresh tokens, and its alarm",
    "clip/": "share of tokens that the clip holds",
    "kl_ref": "divergence from the reference",
    "entropy": "of the policy, nats a token",
    "loss": "what the step minimised",
    "nll": "negative log-likelihood a token, of imitation",
    "grad_norm": "before clipping",
    "lr": "learning rate",
    "tokens/": "trained, distinct and forward",
    "length/": "tokens of a row",
    "turns": "model calls a trained rollout",
    "rows/": "rows that were trained",
    "value/": "of a value head",
    "verl/": "of rollout correction by verl",
    "seconds/": "by phase: read, rows, train, checkpoint, publish; step is all of it",
    "idle/": "share of the step in which the trainer waited for a window",
    "step/": "skipped: gradients that were not finite, and changed nothing",
    "run/": "finished: by this step",
    "goal_reached": "by this step",
    "outstanding": "samples that wait for their group or window",
    "policy_version": "that the step published",
    "samples": "trained in the step",
    "val/": "validation: reward, pass@k, rollouts, unrewarded, exact",
}
"""Metric by name; one that ends with a slash is the head of a family."""

WORK = ("rows", "train", "checkpoint", "publish")
"""Phases of a step that are no waiting; reading a window is waiting for it."""


def times(metrics: Mapping[str, float], started_at: int, ended_at: int) -> dict[str, float]:
    """How long a step took, and which share of it the trainer waited for its window.

    Args:
        metrics: with the seconds of its phases.
        started_at: microseconds, as `ended_at`.
    """
    seconds = (ended_at - started_at) / 1e6
    if seconds <= 0:
        return {}
    busy = sum(metrics.get(f"seconds/{phase}", 0.0) for phase in WORK)
    return {"seconds/step": seconds, "idle/share": min(1.0, max(0.0, 1.0 - busy / seconds))}


def scalars(step: TrainingStep) -> dict[str, float]:
    """The step's metrics with what follows from its other fields; values that no chart can show are left out."""
    values = dict(step.metrics)
    trained = len(step.window.samples)
    if trained:
        values |= {"samples": float(trained), "policy_version": float(step.policy_version)}
        values |= {f"staleness/{k}": float(n) for k, n in step.staleness.items()}
    return {name: value for name, value in values.items() if isfinite(value)}


def is_fixed(name: str) -> bool:
    """Whether a metric has one of the fixed names."""
    return name in NAMES or any(family.endswith("/") and name.startswith(family) for family in NAMES)
