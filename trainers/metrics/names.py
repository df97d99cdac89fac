"""The fixed names of a run's metrics: what a TrainingStep says, as scalars by name. Pure."""

from math import isfinite

from headrace.schemas.records import TrainingStep

NAMES: dict[str, str] = {
    "reward/": "rewards of the trained samples: mean, and recent over the last goal_samples",
    "groups/": "complete groups of the window: count, size, zero_variance (share)",
    "dropped/": "samples that were decided without being trained, by reason",
    "masked/": "responses that were masked out, by reason",
    "staleness/": "versions behind, of the trained samples: mean, max; 0, 1, ... is the histogram",
    "ratio/": "current over behaviour probability: mean, max, k3",
    "mismatch/": "k3 between engine and trainer on fresh tokens, and its alarm",
    "clip/": "share of tokens that the clip holds",
    "kl_ref": "divergence from the reference",
    "entropy": "of the policy, nats a token",
    "loss": "what the step minimised",
    "grad_norm": "before clipping",
    "lr": "learning rate",
    "tokens/": "trained, distinct and forward",
    "length/": "tokens of a row",
    "turns": "model calls a trained rollout",
    "rows/": "rows that were trained",
    "value/": "of a value head",
    "seconds/": "by phase: read, rows, train, checkpoint, publish; step is all of it",
    "idle/": "share of the step in which the trainer waited for a window",
    "outstanding": "samples that wait for their group or window",
    "policy_version": "that the step published",
    "samples": "trained in the step",
    "val/": "validation: reward, pass@k, rollouts, unrewarded, exact",
}
"""Metric by name; one that ends with a slash is the head of a family."""

WORK = ("read", "rows", "train", "checkpoint", "publish")


def scalars(step: TrainingStep) -> dict[str, float]:
    """The step's metrics with what follows from its other fields; values that no chart can show are left out."""
    values = dict(step.metrics)
    seconds = (step.ended_at - step.started_at) / 1e6
    trained = len(step.window.samples)
    if trained:
        values |= {"samples": float(trained), "policy_version": float(step.policy_version), "seconds/step": seconds}
        values |= {f"staleness/{k}": float(n) for k, n in step.staleness.items()}
        if seconds > 0:
            busy = sum(values.get(f"seconds/{phase}", 0.0) for phase in WORK if phase != "read")
            values["idle/share"] = min(1.0, max(0.0, 1.0 - busy / seconds))
    return {name: value for name, value in values.items() if isfinite(value)}


def is_fixed(name: str) -> bool:
    """Whether a metric has one of the fixed names."""
    return name in NAMES or any(family.endswith("/") and name.startswith(family) for family in NAMES)
