"""The baseline: each task some times, with what is published now; no training."""

from collections.abc import Sequence
from typing import Any

from headrace.trainers.baseline.report import Sample, default_ks, report_of
from headrace.trainers.custom.context import Context
from headrace.trainers.custom.decorator import algorithm


@algorithm(name="baseline")
async def baseline(
    ctx: Context,
    val_dataset: Sequence[Any],
    samples: int = 1,
    passing: float = 1.0,
    mode: str = "val",
    resources_id: str | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Evaluates tasks; the figures of `report_of`, and in `resources_id` how many rollouts had which publication."""
    ids = await ctx.enqueue(val_dataset, mode=mode, group_size=samples, resources_id=resources_id)
    found = {result.rollout_id: result for result in await ctx.trajectories(ids, timeout=timeout)}
    tasks: list[list[Sample]] = [[] for _ in val_dataset]
    used: dict[str, int] = {}
    for number, rollout_id in enumerate(ids):
        result = found.get(rollout_id)
        tasks[number // samples].append(Sample(result and result.status, result and result.reward))
        if result is not None and result.resources_id is not None:
            used[result.resources_id] = used.get(result.resources_id, 0) + 1
    return {**report_of(tasks, passing=passing, ks=default_ks(samples)), "resources_id": used}
