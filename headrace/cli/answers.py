"""What a replay of recorded traces gave, as plain JSON."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headrace.connectors.casedir.reader import read_entries, read_settings
from headrace.connectors.casedir.replay import Replay, replay
from headrace.schemas.packing import float32_array, unpack_int32
from headrace.schemas.records import Trajectory, Triplet
from headrace.streams.assembly.prompts import whole_prompts
from headrace.streams.assembly.settings import AssemblySettings
from headrace.trainers.rows import make_rows


def replay_directory(case: Path) -> dict[str, Any]:
    """The answer for one directory.

    Raises:
        CaseError: it holds no traces.
        HeadraceError: its settings are wrong.
    """
    settings = read_settings(case)
    level = settings.pop("level", "trajectory")
    return answer(replay(read_entries(case), msgspec.convert(settings, AssemblySettings)), level)


def answer(run: Replay, level: str) -> dict[str, Any]:
    """What came out, as plain JSON."""
    rollouts = run.assembler.rollouts.values()
    trajectories = [rollout.trajectory for rollout in rollouts if rollout.trajectory is not None]
    return {
        "trajectories": [trajectory_json(trajectory, level) for trajectory in trajectories],
        "rejected": sorted(run.refused.values()),
        "dead_letters": run.dead_letters,
        "counters": dict(run.assembler.counters),
        "calls": [],
    }


def trajectory_json(trajectory: Trajectory, level: str) -> dict[str, Any]:
    """A trajectory with whole prompts and its rows."""
    rows = make_rows(trajectory, "transition" if level == "transition" else "trajectory")
    prompts = whole_prompts(trajectory.triplets)
    fields: dict[str, Any] = msgspec.to_builtins(trajectory)
    fields.pop("source")
    return {
        **fields,
        "triplets": [triplet_json(t, prompt) for t, prompt in zip(trajectory.triplets, prompts, strict=True)],
        "dropped": trajectory.diagnostics.dropped,
        "rows": [
            {"token_ids": row.token_ids.tolist(), "loss_mask": row.loss_mask.astype(np.int8).tolist()}
            for row in rows.rows
        ],
        "row_reasons": dict(rows.reasons),
    }


def triplet_json(triplet: Triplet, prompt: bytes) -> dict[str, Any]:
    """A triplet with its ids as lists."""
    fields: dict[str, Any] = msgspec.to_builtins(triplet)
    fields.pop("prompt_prefix")
    logprobs = triplet.logprobs
    return {
        **fields,
        "prompt_token_ids": unpack_int32(prompt),
        "response_token_ids": unpack_int32(triplet.response_token_ids),
        "logprobs": [float(str(value)) for value in float32_array(logprobs)] if logprobs is not None else None,
    }
