"""The tasks that are asked for: a pure function of the seed and of the number of the batch."""

import random
from typing import Any

GROUP_SIZE = 4
KINDS = {
    "quick": 58,  # one call
    "talk": 12,  # three calls, a reward after each
    "slow": 8,  # sleeps between its calls
    "long": 2,  # sleeps for longer than a lease
    "flaky": 8,  # its first attempts fail and are retried
    "failing": 3,  # all of its attempts fail
    "hanging": 3,  # its first attempt runs into its time-out
    "cancelled": 4,  # a cancel is asked for while it runs
    "withdrawn": 2,  # a cancel is asked for right after its task
}
"""What an agent does with a task, and how often out of a hundred."""
CANCELLED_AFTER = {"cancelled": (1.0, 6.0), "withdrawn": (0.0, 0.5)}
RETRIES = {"flaky": ("failed", 4), "failing": ("failed", 2), "hanging": ("timeout", 3)}


def batch(seed: int, number: int, groups: int, lease: float) -> list[dict[str, Any]]:
    """The lines of one `headrace tasks produce`.

    Args:
        number: of the batch.
        groups: how many groups it has, of `GROUP_SIZE` each.
        lease: seconds.
    """
    rng = random.Random(f"chaos tasks {seed} {number}")
    lines: list[dict[str, Any]] = []
    for group in range(groups):
        digit = rng.randrange(10)
        for sample in range(GROUP_SIZE):
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            lines.append(
                {
                    "rollout_id": f"c{seed}-{number}-{group}-{sample}",
                    "group_id": f"c{seed}-{number}-{group}",
                    "mode": "train",
                    "input": {
                        "kind": kind,
                        "prompt": f"Please pick the digit {digit}.",
                        "answer": str(digit),
                        "seconds": _seconds(rng, kind, lease),
                        "failures": rng.randint(1, 3),
                    },
                    "config": _config(kind, lease),
                }
            )
    return lines


def cancels(seed: int, number: int, lines: list[dict[str, Any]]) -> list[tuple[float, str]]:
    """Which of a batch's rollouts are cancelled: (seconds after they were asked for, rollout_id)."""
    rng = random.Random(f"chaos cancels {seed} {number}")
    return sorted(
        (rng.uniform(*CANCELLED_AFTER[line["input"]["kind"]]), line["rollout_id"])
        for line in lines
        if line["input"]["kind"] in CANCELLED_AFTER
    )


def _seconds(rng: random.Random, kind: str, lease: float) -> float:
    if kind == "long":
        return round(rng.uniform(1.0, 1.4) * lease, 2)
    if kind in CANCELLED_AFTER:
        return 1.5 * lease
    return round(rng.uniform(1.0, 6.0), 2)


def _config(kind: str, lease: float) -> dict[str, Any]:
    if kind not in RETRIES:
        return {}
    status, attempts = RETRIES[kind]
    config: dict[str, Any] = {"max_attempts": attempts, "retry_condition": [status]}
    if kind == "hanging":
        config["timeout_seconds"] = round(lease / 3, 2)
    return config
