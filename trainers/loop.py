"""The loop of every trainer: read, close a window, train, write a checkpoint, publish it with its window.

Restart order: fence whoever wrote before, read the run's records to their read_uncommitted end, restore weights,
optimizer and random state, then read triplets from the position of the last step. What a killed process has done
beyond its last committed transaction never happened.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from headrace.schemas.records import RunManifest, TrainerState, TrainingStep, Weights, Window
from headrace.streams.errors import BrokerUnavailableError, SettingsError, UnavailableError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clock import LogClock, wall_us
from headrace.streams.kafka.transactional.errors import SessionLostError
from headrace.streams.settings import Settings
from headrace.trainers.algorithm import Algorithm, Trained
from headrace.trainers.checkpoint import Checkpoints, State, read_state
from headrace.trainers.groups import Curriculum, Group
from headrace.trainers.history import FINISHED, GOAL_REACHED, History, read_history
from headrace.trainers.metrics.names import times
from headrace.trainers.publish import Publisher, resources_update, run_manifest
from headrace.trainers.reader import Reader
from headrace.trainers.settings import RunSettings
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings

log = logging.getLogger(__name__)

CARRY_SECONDS = 0.5  # drops wait no longer for a window; the feeder must not wait for them more than two seconds
CARRY_MOST = 5_000  # decisions in one step: far below the size limit of a record
POSITION_SECONDS = 2.0  # a position that only passes transaction markers is copied to the group this often
REJOIN_SECONDS = 1.0  # after the brokers were away
Joined = Callable[[dict[str, Any]], None]


class TrainerLoop:
    """One process of one run."""

    def __init__(
        self,
        settings: Settings,
        run: RunSettings,
        windows: WindowSettings,
        algorithm: Algorithm,
        *,
        windows_type: type[Windows] = Windows,
        curriculum: Curriculum | None = None,
    ) -> None:
        """`windows_type` says which trajectories a window takes, `curriculum` which groups teach nothing."""
        self._settings = settings
        self._run = run
        self._window_settings = windows
        self._windows_type = windows_type
        self._curriculum = curriculum
        self._algorithm = algorithm

    def run(self, stop: threading.Event, joined: Joined = lambda facts: None) -> None:
        """Works until `stop` is set.

        Args:
            joined: called once with facts for the ready line, when the run's log is read and its state restored.

        Raises:
            FencedError: another process has taken over the run.
            BrokerUnavailableError: no broker answered at the start; later ones are waited for.
            TopicError: the pipeline has no topics yet.
            SettingsError: the run was started with other settings.
            CheckpointError: a checkpoint cannot be written or read; the window is trained again after a restart.
        """
        partition_ids(self._settings, self._settings.topic("training"))  # or says at once that there is no broker
        was_in = False
        while not stop.is_set():
            windows = self._windows_type(self._window_settings, self._curriculum)
            session = _Session(self._settings, self._run, windows, self._algorithm)
            try:
                session.join(stop.is_set)
                if not was_in:
                    joined(session.facts())
                was_in = True
                session.work(stop)
            except (SessionLostError, BrokerUnavailableError, UnavailableError) as error:
                if not was_in and not stop.is_set():
                    raise
                log.warning("%s; reading the log again", error)
                stop.wait(REJOIN_SECONDS)
            finally:
                session.close()


class _Session:
    """From one fencing to the next failure."""

    def __init__(self, settings: Settings, run: RunSettings, windows: Windows, algorithm: Algorithm) -> None:
        self._settings = settings
        self._run = run
        self._windows = windows
        self._algorithm = algorithm
        self._checkpoints = Checkpoints(run.checkpoints, run.run_id, keep=run.keep)
        self._clock = LogClock()
        self._publisher: Publisher | None = None
        self._reader: Reader | None = None
        self._recent: deque[float] = deque(maxlen=run.goal_samples)
        self._samples = 0
        self._step = 0
        self._version = 0
        self._started_at = wall_us()
        self._carried = self._positioned = time.monotonic()
        self._copied: list[tuple[int, int]] = []
        self._seconds = dict.fromkeys(("read", "checkpoint", "publish"), 0.0)

    def facts(self) -> dict[str, Any]:
        """What the ready line says."""
        return {"run_id": self._run.run_id, "policy": self._run.policy, "step": self._step, "version": self._version}

    def join(self, stopping: Callable[[], bool]) -> None:
        """Fences, reads the log, restores."""
        self._publisher = Publisher(self._settings, self._run.run_id, stopping)
        history = read_history(self._settings, self._run.run_id, self._run.policy)
        if history.manifest is None:
            self._checkpoints.refuse_foreign()
            self._begin(history)
        else:
            self._check(history, history.manifest)
            self._sweep(history)
            self._resume(history, history.manifest)
        self._reader = Reader(self._settings, self._run.run_id, self._windows, self._clock)

    def work(self, stop: threading.Event) -> None:
        """Reads and trains until told to stop."""
        assert self._reader is not None
        while not stop.is_set():
            began = time.perf_counter()
            self._reader.read()
            self._seconds["read"] += time.perf_counter() - began
            timers = self._reader.timers
            while not stop.is_set():
                groups = self._windows.close(self._version, self._clock.now(), timers=timers)
                if groups is None:
                    break
                self._window(groups)
                timers = False  # a step takes long: what has come meanwhile is read first
            self._carry()
        self._carry(now=True)

    def close(self) -> None:
        """Lets all clients go."""
        if self._reader is not None:
            self._reader.close()
        if self._publisher is not None:
            self._publisher.close()

    def _arithmetic(self) -> dict[str, Any]:
        window = {k: v for k, v in asdict(self._windows.settings).items() if k not in ("run_id", "policy")}
        return {"algorithm": self._algorithm.settings(), "window": window}

    def _begin(self, history: History) -> None:
        assert self._publisher is not None
        self._algorithm.load(self._run.model)
        # Versions of a policy never decrease, whatever run publishes them.
        self._version = 0 if history.newest_version is None else history.newest_version + 1
        base = self._checkpoints.adopt(self._run.model, self._run.policy, self._version)
        self._checkpoints.use(base)
        manifest = run_manifest(self._run, self._algorithm.name, self._arithmetic(), base)
        self._publisher.publish([manifest, resources_update(base, self._run.run_id, 0)])
        log.info("run %s begins: %s is version %d of %s", self._run.run_id, base.uri, self._version, base.policy)

    def _sweep(self, history: History) -> None:
        if self._checkpoints.directory in {Path(weights.uri).parent for weights in history.published}:
            self._checkpoints.sweep(
                [w.uri for w in history.published], [s.state.uri for s in history.steps if s.state is not None]
            )
        else:  # given anew; a run of the same name under another prefix may stand there
            self._checkpoints.refuse_foreign()

    def _check(self, history: History, manifest: RunManifest) -> None:
        if manifest.offline:
            raise SettingsError(
                f"run {self._run.run_id} is an offline replay, and no trainer goes on with it: begin a new run with "
                "another --run, from its weights with --model if you like"
            )
        if history.with_state is None and any(step.window.samples for step in history.steps):
            raise SettingsError(
                f"run {manifest.run_id} is a replay, whose optimizer is not kept: begin a new run with another --run, "
                "from its weights with --model if you like"
            )
        before = {
            "settings": msgspec.json.decode(manifest.settings.encode()),
            "policy": manifest.policy,
            "algorithm": manifest.algorithm,
            "seed": manifest.seed,
        }
        now = {
            "settings": json.loads(json.dumps(self._arithmetic())),
            "policy": self._run.policy,
            "algorithm": self._algorithm.name,
            "seed": self._run.seed,
        }
        changed = sorted(_differences(before, now))
        if changed:
            raise SettingsError(
                f"run {self._run.run_id} was begun with other settings: {'; '.join(changed)}. "
                "Give it those again, or begin a new run with another --run"
            )
        if manifest.threads != self._run.threads:
            log.warning("the run was begun with %d threads: results may differ in the last bits", manifest.threads)

    def _resume(self, history: History, manifest: RunManifest) -> None:
        base = manifest.base_weights
        if base is None:
            raise SettingsError(f"run {manifest.run_id} has no base weights in its manifest; begin a new run")
        self._checkpoints.use(base)
        self._algorithm.load(Path(base.uri))
        self._version = base.version
        self._windows = type(self._windows).restored(self._windows.settings, history.steps, self._windows.curriculum)
        trained, last = history.with_state, history.last
        if trained is not None and trained.state is not None:
            state = read_state(trained.state)
            weights = msgspec.convert(state.facts["weights"], Weights)
            self._algorithm.restore(Path(weights.uri), state)
            self._recent.extend(state.facts["recent"])
            self._samples = int(state.facts["samples"])
        if last is not None:
            self._step, self._version = last.step, last.policy_version
        if history.finished:
            self._windows.finish()
        log.info("run %s goes on after step %d, version %d", self._run.run_id, self._step, self._version)

    def _window(self, groups: list[Group]) -> None:
        trained = self._algorithm.train(groups, self._windows)
        if trained is None:
            return  # what was dropped goes out with the next decisions
        began = time.perf_counter()
        weights = self._checkpoints.write(
            self._algorithm.weights(),
            self._run.policy,
            self._version + 1,
            self._run.model.name,
            self._algorithm.adapter(),
        )
        self._recent.extend(trained.rewards)
        self._samples += len(trained.rewards)
        state = self._write_state(weights)
        self._seconds["checkpoint"] += time.perf_counter() - began
        self._step += 1
        self._version += 1
        end = self._end(trained)
        if end:
            self._windows.finish()
        window = self._windows.decisions()
        step = self._training_step(window, {**trained.metrics, **end}, trained, state)
        self._publish(window, step, weights)
        self._checkpoints.prune()
        _report(step, trained)

    def _write_state(self, weights: Weights) -> TrainerState:
        state = self._algorithm.state()
        tensors = state.tensors
        if self._checkpoints.loses_precision(self._algorithm.weights()):
            tensors = tensors | {f"weights.{name}": t for name, t in self._algorithm.weights().items()}
        facts = {"weights": msgspec.to_builtins(weights), "recent": list(self._recent), "samples": self._samples}
        return self._checkpoints.write_state(self._step + 1, State(tensors, state.facts | facts))

    def _end(self, trained: Trained) -> dict[str, float]:
        """What a step's metrics say of the run's end."""
        run = self._run
        mean = sum(self._recent) / max(1, len(self._recent))
        metrics: dict[str, float] = {}
        if run.goal is not None and len(self._recent) == run.goal_samples and mean >= run.goal:
            metrics |= {GOAL_REACHED: 1.0, FINISHED: 1.0}
        if run.max_steps is not None and self._step >= run.max_steps:
            metrics |= {FINISHED: 1.0}
        return metrics

    def _training_step(
        self, window: Window, metrics: dict[str, float], trained: Trained | None, state: TrainerState | None
    ) -> TrainingStep:
        drops = {f"dropped/{d.reason}": float(len(d.samples)) for d in window.dropped}
        if trained is not None:
            recent = sum(self._recent) / max(1, len(self._recent))
            drops |= {"reward/recent": recent, **{f"seconds/{k}": v for k, v in self._seconds.items()}}
            self._seconds = dict.fromkeys(self._seconds, 0.0)
        ended_at = wall_us()
        if trained is not None:
            drops |= times(metrics | drops, self._started_at, ended_at)
        step = TrainingStep(
            run_id=self._run.run_id,
            step=self._step,
            policy=self._run.policy,
            policy_version=self._version,
            window=window,
            decided=self._windows.decided,
            state=state,
            metrics=metrics | drops | {"outstanding": float(self._windows.held)},
            staleness={str(k): n for k, n in sorted(trained.staleness.items())} if trained else {},
            started_at=self._started_at,
            ended_at=ended_at,
        )
        self._started_at = step.ended_at
        return step

    def _carry(self, *, now: bool = False) -> None:
        """Decisions that no window carries go out alone; they have no state, so that the last trained step's stands."""
        at = time.monotonic()
        windows = self._windows
        if not windows.carrying:
            if at - self._positioned > POSITION_SECONDS or now:
                self._copy_position()
            self._carried = at
        elif now or at - self._carried > CARRY_SECONDS or windows.undelivered > CARRY_MOST:
            window = windows.decisions()
            self._publish(window, self._training_step(window, {}, None, None), None)
            log.info("step %d stands; dropped without a window: %s", self._step, _drops(window))

    def _copy_position(self) -> None:
        assert self._reader is not None
        self._positioned = time.monotonic()
        position = self._windows.position()
        offsets = [(p.partition, p.next) for p in position]
        if offsets != self._copied and offsets:
            self._reader.copy_position(position)
            self._copied = offsets

    def _publish(self, window: Window, step: TrainingStep, weights: Weights | None) -> None:
        assert self._publisher is not None
        assert self._reader is not None
        began = time.perf_counter()
        records = [step] if weights is None else [resources_update(weights, self._run.run_id, step.step), step]
        dead_letters, self._reader.dead_letters = self._reader.dead_letters, []
        self._publisher.publish(records, dead_letters)
        self._reader.copy_position(window.position)
        self._copied = [(p.partition, p.next) for p in window.position]
        self._carried = time.monotonic()
        self._seconds["publish"] += time.perf_counter() - began


def _report(step: TrainingStep, trained: Trained) -> None:
    m = step.metrics
    log.info(
        "step %d: version %d, %d samples, reward %.3f (recent %.3f), entropy %.3f, staleness %s%s%s%s",
        step.step,
        step.policy_version,
        len(trained.rewards),
        m.get("reward/mean", float("nan")),
        m["reward/recent"],
        m.get("entropy", float("nan")),
        dict(trained.staleness),
        f", dropped {_drops(step.window)}" if step.window.dropped else "",
        f", MISMATCH k3 {m['mismatch/k3']:.2e}" if m.get("mismatch/alarm") else "",
        ", the goal is reached" if m.get(GOAL_REACHED) else "",
    )


def _drops(window: Window) -> str:
    return ", ".join(f"{d.reason} {len(d.samples)}" for d in window.dropped) or "none"


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        names: set[str] = {*before, *now}
        return [line for n in names for line in _differences(before.get(n), now.get(n), f"{path}.{n}" if path else n)]
    return [] if before == now else [f"{path} was {before!r}, is {now!r}"]
