"""Figures of an evaluation. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """One rollout of a task.

    Attributes:
        status: how it ended; None where it had not in time.
        reward: None where it gave none.
    """

    status: str | None
    reward: float | None


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """The chance that one of k samples passes, estimated from n >= k without bias: 1 - C(n - c, k) / C(n, k).

    Codex, arXiv:2107.03374, section 2.1.
    """
    return 1.0 - math.comb(samples - passed, k) / math.comb(samples, k)


def report_of(tasks: Sequence[Sequence[Sample]], *, passing: float, ks: Sequence[int]) -> dict[str, Any]:
    """The report of an evaluation.

    Args:
        tasks: the samples of each task, of equal number.
        passing: least reward of a sample that passes.
        ks: of pass@k, none above the number of samples a task.

    Returns:
        `reward`: mean over the samples that gave one (None where none did); `reward_zero`: mean where the others count
        as 0; `std`: of the rewards that were given; `pass@k` for each k, where a sample without a reward does not pass.
    """
    samples = [sample for group in tasks for sample in group]
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else None
    passed = [sum(s.reward is not None and s.reward >= passing for s in group) for group in tasks]
    rates = {
        f"pass@{k}": sum(pass_at_k(len(group), c, k) for group, c in zip(tasks, passed, strict=True)) / len(tasks)
        for k in ks
    }
    return {
        "tasks": len(tasks),
        "samples": len(samples),
        "rewarded": len(rewards),
        "reward": mean,
        "reward_zero": sum(rewards) / len(samples) if samples else None,
        "std": None if mean is None else math.sqrt(sum((r - mean) * (r - mean) for r in rewards) / len(rewards)),
        **rates,
        "statuses": dict(sorted(Counter(s.status or "unfinished" for s in samples).items())),
    }


def default_ks(samples: int) -> list[int]:
    """1, 2, 4, ... up to the number of samples a task."""
    return [k for k in (2**n for n in range(samples.bit_length())) if k <= samples]
