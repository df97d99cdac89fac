"""The run that is replayed, and where its replay begins: algorithm, weights, optimizer."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import msgspec
import torch

from headrace.schemas.records import ParentRun, RunManifest, TrainingStep, Weights
from headrace.streams.kafka.admin import describe, partition_ids
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import CheckpointError, State, read_state
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import settings_from
from headrace.trainers.history import History, read_history
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.settings import REPLAY, ReplaySettings
from headrace.trainers.window_settings import WindowSettings

NAMED = 12  # of the runs that there are


def history_of(settings: Settings, run_id: str) -> History:
    """What the log says of a run.

    Raises:
        ReplayError: it knows none of this name.
    """
    partition_ids(settings, settings.topic("training"))
    history = read_history(settings, run_id)
    if history.manifest is None:
        known = _runs(settings)
        raise ReplayError(f"the log knows no run {run_id} under prefix {settings.prefix!r}; it has {known}")
    return history


def _runs(settings: Settings) -> str:
    keys = {m.key() for m in read_topic(settings, settings.topic("training"), [0], client_id="replay")}
    names = sorted(key.decode(errors="replace") for key in keys if key)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (", ".join(names[:NAMED]) + more) or "none"


def refuse_known(target: Settings, run_id: str) -> None:
    """Raises ReplayError where the topics of the new run know one of its name already."""
    if target.topic("training") not in describe(target):
        return  # not one of its topics is there yet
    if read_history(target, run_id).manifest is not None:
        raise ReplayError(f"there is a run {run_id} under prefix {target.prefix!r}: choose another --into or --run")


@dataclass(frozen=True)
class Beginning:
    """Where a replay begins.

    Attributes:
        base: the run's base weights.
        reached: the weights to begin with, with optimizer and random state; None: the base, and fresh ones.
        step: of the first run, after which it begins; 0: its beginning.
        exact: whether the first run was in this state before its first replayed step.
    """

    base: Weights
    reached: tuple[Weights, State] | None
    step: int
    exact: bool

    def load(self, algorithm: Grpo, manifest: RunManifest) -> None:
        """Brings an algorithm there."""
        torch.set_num_threads(manifest.threads)
        torch.manual_seed(manifest.seed)  # pyright: ignore[reportUnknownMemberType]
        algorithm.load(Path(self.base.uri))
        if self.reached is not None:
            weights, state = self.reached
            algorithm.restore(Path(weights.uri), state)


def beginning_of(manifest: RunManifest, before: TrainingStep | None, *, from_base: bool) -> Beginning:
    """Where a replay begins whose first step comes after `before`.

    Raises:
        ReplayError: weights or state are not on disk any more.
    """
    base = manifest.base_weights
    if base is None or not Path(base.uri).is_dir():
        where = base.uri if base else "none recorded"
        raise ReplayError(f"the base weights of run {manifest.run_id} are gone: {where}")
    if before is None or from_base:
        return Beginning(base, None, 0, exact=before is None)
    advice = (
        f"the replay would begin after step {before.step}, whose weights and optimizer are not on disk any more: "
        "begin with the run's first step (no --from), or give --from-base to begin with its base weights (offline)"
    )
    if before.state is None:
        raise ReplayError(advice)
    try:
        state = read_state(before.state)
    except CheckpointError as error:
        raise ReplayError(advice) from error
    weights = msgspec.convert(state.facts["weights"], Weights)
    if not Path(weights.uri).is_dir():
        raise ReplayError(advice)
    return Beginning(base, (weights, state), before.step, exact=True)


def algorithm_of(manifest: RunManifest, level: str | None) -> tuple[Grpo, WindowSettings]:
    """The run's algorithm and its windows' settings.

    Args:
        level: of the rows; None is the run's.

    Raises:
        ReplayError: it was trained by something that replay does not start.
    """
    if manifest.algorithm != Grpo.name:
        raise ReplayError(f"run {manifest.run_id} was trained by {manifest.algorithm}; replay knows {Grpo.name}")
    settings: Mapping[str, Any] = json.loads(manifest.settings)
    arithmetic = dict(settings["algorithm"])
    if arithmetic.pop("ranks", 1) != 1:
        raise ReplayError(f"run {manifest.run_id} was trained by several ranks, which replay does not start")
    if level is not None:
        arithmetic["level"] = level
    window = dict(settings["window"])
    window["require_rewards"] = tuple(window.get("require_rewards", ()))
    names = {"run_id": manifest.run_id, "policy": manifest.policy}
    return Grpo(settings_from(arithmetic), manifest.policy), WindowSettings(**names, **window)


def manifest_of(
    first: RunManifest, told: ReplaySettings, begins: Beginning, adopted: Weights, prefix: str, *, offline: bool
) -> RunManifest:
    """The new run's manifest; `prefix` is that of the first run's topics."""
    settings: dict[str, Any] = json.loads(first.settings)
    if told.changes.level is not None:
        settings["algorithm"]["level"] = told.changes.level
    if offline:
        settings[REPLAY] = told.told(prefix)
    return msgspec.structs.replace(
        first,
        run_id=told.name,
        settings=json.dumps(settings, sort_keys=True) if offline else first.settings,
        base_weights=adopted,
        versions=_versions(first.versions),
        parent=ParentRun(run_id=first.run_id, step=begins.step),
        offline=offline or first.offline,
        created_at=wall_us(),
    )


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Those of this process."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = python_version() if name == "python" else version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found
