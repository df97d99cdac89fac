"""Trains a run's windows again, in their order, with the manifest's settings, into a run under a prefix of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from headrace.schemas.records import ParentRun, RunManifest, TrainingStep, Weights
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.admin import create_topics, partition_ids
from headrace.streams.kafka.clock import wall_us
from headrace.streams.settings import Settings
from headrace.trainers.algorithm import Algorithm
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.history import History, read_history
from headrace.trainers.publish import Publisher, resources_update
from headrace.trainers.replay.reader import StepReader
from headrace.trainers.replay.windows import ReplayError, ReplayWindows, groups_of, repeated
from headrace.trainers.window_settings import WindowSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Replayed:
    """One step.

    Attributes:
        identical: whether the weights are those of the first run, bit for bit; None where those are not known any more.
    """

    step: int
    version: int
    samples: int
    identical: bool | None


class Replay:
    """Of one run of `trainer grpo`.

    Args:
        target: settings of the pipeline that the new run belongs to: of another prefix, or of another cluster.
        until: the last step to train.
        keep: versions that stay on disk.
    """

    def __init__(
        self,
        settings: Settings,
        target: Settings,
        run_id: str,
        checkpoints: Path,
        *,
        until: int | None = None,
        keep: int = 2,
    ) -> None:
        if (settings.bootstrap, settings.prefix) == (target.bootstrap, target.prefix):
            raise SettingsError(f"a replay goes under a prefix of its own, not {target.prefix!r}: give another --into")
        self._settings = settings
        self._target = target
        self._run_id = run_id
        self._checkpoints = Checkpoints(checkpoints, run_id, keep=keep)
        self._until = until

    def run(self, told: Callable[[Replayed], None], stopping: Callable[[], bool] = lambda: False) -> None:
        """Trains all steps; `told` hears of each.

        Raises:
            ReplayError: no such run, not one of this algorithm, or the log has not all of it any more.
        """
        history = self._history()
        manifest = history.manifest
        assert manifest is not None
        steps = [s for s in history.steps if s.window.samples and (self._until is None or s.step <= self._until)]
        first = {weights.version: weights for weights in history.published}
        algorithm, window = _algorithm(manifest)
        base = manifest.base_weights
        if base is None or not Path(base.uri).is_dir():
            raise ReplayError(
                f"the base weights of run {self._run_id} are gone: {base.uri if base else 'none recorded'}"
            )
        reader = StepReader(self._settings, steps)
        torch.set_num_threads(manifest.threads)
        torch.manual_seed(manifest.seed)  # pyright: ignore[reportUnknownMemberType]
        algorithm.load(Path(base.uri))
        create_topics(self._target)
        self._checkpoints.refuse_foreign()
        publisher = Publisher(self._target, self._run_id, stopping)
        try:
            adopted = self._checkpoints.adopt(Path(base.uri), manifest.policy, base.version)
            self._checkpoints.use(adopted)
            publisher.publish([_manifest(manifest, adopted), resources_update(adopted, self._run_id, 0)])
            for step in steps:
                if stopping():
                    return
                told(self._step(step, reader, algorithm, window, publisher, first.get(step.policy_version)))
        finally:
            publisher.close()

    def _history(self) -> History:
        partition_ids(self._settings, self._settings.topic("training"))
        history = read_history(self._settings, self._run_id, "")
        if history.manifest is None:
            raise ReplayError(f"the log knows no run {self._run_id} under prefix {self._settings.prefix!r}")
        return read_history(self._settings, self._run_id, history.manifest.policy)

    def _step(
        self,
        step: TrainingStep,
        reader: StepReader,
        algorithm: Algorithm,
        window: WindowSettings,
        publisher: Publisher,
        first: Weights | None,
    ) -> Replayed:
        windows = ReplayWindows(window, [(p.partition, p.offset) for p in step.window.samples])
        started = wall_us()
        trained = algorithm.train(groups_of(step, reader.read(step)), windows)
        if trained is None:
            raise ReplayError(f"step {step.step}: nothing of its window is trained now")
        same = repeated(step, windows)
        weights = self._checkpoints.write(
            algorithm.weights(), step.policy, step.policy_version, first and first.base_model
        )
        record = msgspec.structs.replace(
            step,
            window=same,
            state=None,
            metrics=trained.metrics,
            staleness={str(k): n for k, n in sorted(trained.staleness.items())},
            started_at=started,
            ended_at=wall_us(),
        )
        publisher.publish([resources_update(weights, self._run_id, step.step), record])
        self._checkpoints.prune()
        return Replayed(
            step.step, step.policy_version, len(step.window.samples), None if first is None else _same(first, weights)
        )


def _same(first: Weights, second: Weights) -> bool:
    def tensors(weights: Weights) -> dict[str, str]:
        return {name: digest for name, digest in weights.sha256.items() if name.endswith(".safetensors")}

    return tensors(first) == tensors(second)


def _manifest(manifest: RunManifest, base: Weights) -> RunManifest:
    return msgspec.structs.replace(
        manifest, base_weights=base, parent=ParentRun(run_id=manifest.run_id, step=0), created_at=wall_us()
    )


def _algorithm(manifest: RunManifest) -> tuple[Algorithm, WindowSettings]:
    if manifest.algorithm != Grpo.name:
        raise ReplayError(f"run {manifest.run_id} was trained by {manifest.algorithm}; replay knows {Grpo.name}")
    settings: Mapping[str, Any] = json.loads(manifest.settings)
    arithmetic = dict(settings["algorithm"])
    if arithmetic.pop("ranks", 1) != 1:
        raise ReplayError(f"run {manifest.run_id} was trained by several ranks, which replay does not start")
    arithmetic["betas"] = tuple(arithmetic["betas"])
    window = dict(settings["window"])
    window["require_rewards"] = tuple(window.get("require_rewards", ()))
    names = {"run_id": manifest.run_id, "policy": manifest.policy}
    return Grpo(GrpoSettings(**arithmetic), manifest.policy), WindowSettings(**names, **window)
