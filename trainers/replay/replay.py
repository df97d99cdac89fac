"""Trains a run's windows again, in their order, into a run under another prefix: the same, or with other rewards."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.schemas.records import Reward, RunManifest, Weights
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.admin import create_topics
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.groups import At
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.history import History
from headrace.trainers.publish import Publisher, resources_update
from headrace.trainers.replay.beginning import (
    Beginning,
    algorithm_of,
    beginning_of,
    history_of,
    manifest_of,
    refuse_known,
)
from headrace.trainers.replay.bounds import places_of
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.offsets import Places, Selection, select, told
from headrace.trainers.replay.reader import SampleReader
from headrace.trainers.replay.reassembly import Reassembler
from headrace.trainers.replay.rewarding import RewardFunction
from headrace.trainers.replay.settings import ReplaySettings
from headrace.trainers.replay.steps import Answers, Outcome, Replayed, StepTrainer
from headrace.trainers.replay.survey import Survey, survey
from headrace.trainers.replay.windows import Planned, planned
from headrace.trainers.window_settings import WindowSettings

log = logging.getLogger(__name__)

Stopping = Callable[[], bool]


@dataclass
class _Job:
    """A replay that may begin: everything that can be refused was looked at, and nothing is written."""

    manifest: RunManifest
    plan: Sequence[Planned]
    found: Survey
    begins: Beginning
    algorithm: Grpo
    window: WindowSettings
    checkpoints: Checkpoints
    published: dict[int, Weights]
    outcome: Outcome


class Replay:
    """Of one run of `trainer grpo`.

    Args:
        target: settings of the pipeline that the new run belongs to: of another prefix, or of another cluster.
    """

    def __init__(self, settings: Settings, target: Settings, told: ReplaySettings) -> None:
        if (settings.bootstrap, settings.prefix) == (target.bootstrap, target.prefix):
            raise SettingsError(f"a replay goes under a prefix of its own, not {target.prefix!r}: give another --into")
        self._settings = settings
        self._target = target
        self._told = told

    def run(
        self,
        surveyed: Callable[[Survey, Outcome], None],
        trained: Callable[[Replayed], None],
        stopping: Stopping = lambda: False,
        *,
        dry_run: bool = False,
    ) -> Outcome:
        """Trains all steps.

        Args:
            surveyed: hears first what of all that is needed is there.
            trained: hears of each step.
            dry_run: nothing is trained, or written.

        Raises:
            ReplayError: no such run, not one of this algorithm, the new run's name is taken, the log lacks some of it,
                or the reward function fails.
        """
        asked = self._told.reward
        function = None
        if asked is not None:
            seconds, key = self._told.reward_seconds, self._told.primary_key
            function = RewardFunction(asked, seconds=seconds, primary_key=key)
        reassembler: Reassembler | None = None
        try:
            job = self._prepare(stopping)
            surveyed(job.found, job.outcome)
            self._check(job.found)
            job.outcome.stopped = stopping()
            if dry_run or job.outcome.stopped:
                return job.outcome
            if not self._told.recorded:
                reassembler = Reassembler(self._settings, self._told.changes)
            answers = None
            if function is not None and reassembler is not None:
                answers = self._ask(function, job, reassembler, stopping)
            self._train(job, reassembler, answers, trained, stopping)
            return job.outcome
        finally:
            if reassembler is not None:
                reassembler.close()
            if function is not None:
                function.close()

    def _prepare(self, stopping: Stopping) -> _Job:
        asked = self._told
        history = history_of(self._settings, asked.run_id)
        manifest = history.manifest
        assert manifest is not None
        selection = self._select(history)
        begins = beginning_of(manifest, selection.before, from_base=asked.from_base)
        algorithm, window = algorithm_of(manifest, asked.changes.level)
        refuse_known(self._target, asked.name)
        checkpoints = Checkpoints(asked.checkpoints, asked.name, keep=asked.keep)
        checkpoints.refuse_foreign()
        plan = planned(history.steps, selection.steps, offline=asked.changed)
        found = survey(self._settings, plan, sources=not asked.recorded, stopping=stopping)
        offline = asked.changed or not begins.exact or bool(found.gone)
        outcome = Outcome(offline, selection.cut)
        published = {weights.version: weights for weights in history.published}
        return _Job(manifest, plan, found, begins, algorithm, window, checkpoints, published, outcome)

    def _select(self, history: History) -> Selection:
        asked = self._told
        start = None if asked.start is None else places_of(self._settings, asked.start, "from")
        end = None if asked.end is None else places_of(self._settings, asked.end, "to")
        if asked.until is not None:
            end = Places({}, asked.until + 1)
        steps = [step for step in history.steps if step.window.samples]
        selection = select(steps, start, end)
        if selection.cut:
            log.info("steps across a bound are left out: %s", ", ".join(map(str, selection.cut)))
        log.info("run %s has %s", asked.run_id, told(steps))
        return selection

    def _check(self, found: Survey) -> None:
        if found.whole or self._told.allow_missing:
            return
        advice = "--allow-missing leaves out what is gone (offline), --from and --to choose other steps"
        if not found.gone and not self._told.changed:
            advice = "--recorded trains trajectories as they stand; --allow-missing those that cannot be made again"
        raise ReplayError(f"{'; '.join(found.lines()[1:])}. {advice}")

    def _ask(self, function: RewardFunction, job: _Job, reassembler: Reassembler, stopping: Stopping) -> Answers:
        """The rewards of all trajectories, before anything is trained or written."""
        answers: dict[At, list[Reward]] = {}
        reader = self._reader(job)
        for number, step in enumerate(job.plan, 1):
            recorded = [r for at, r in reader.read(step.wanted).items() if at not in job.found.sourceless]
            found = reassembler.find(recorded)
            subjects = [reassembler.subject(r, found) for r in recorded]
            given = function(subjects, stopping)
            answers |= {r.at: rewards for r, rewards in zip(recorded, given, strict=True)}
            log.info("rewards of %d of %d steps", number, len(job.plan))
        return answers

    def _train(
        self,
        job: _Job,
        reassembler: Reassembler | None,
        answers: Answers | None,
        trained: Callable[[Replayed], None],
        stopping: Stopping,
    ) -> None:
        asked, begins = self._told, job.begins
        begins.load(job.algorithm, job.manifest)
        create_topics(self._target)
        publisher = Publisher(self._target, asked.name, stopping)
        try:
            refuse_known(self._target, asked.name)
            adopted = job.checkpoints.adopt(Path(begins.base.uri), job.manifest.policy, begins.base.version)
            job.checkpoints.use(adopted)
            offline = job.outcome.offline
            new = manifest_of(job.manifest, asked, begins, adopted, self._settings.prefix, offline=offline)
            publisher.publish([new, resources_update(adopted, asked.name, 0)])
            trainer = StepTrainer(
                asked,
                job.algorithm,
                job.window,
                job.checkpoints,
                publisher,
                job.found,
                job.outcome,
                reassembler,
                answers,
            )
            reader = self._reader(job)
            for step in job.plan:
                if stopping():
                    job.outcome.stopped = True
                    break
                trained(trainer.train(step, reader.read(step.wanted), job.published.get(step.step.policy_version)))
        finally:
            publisher.close()

    def _reader(self, job: _Job) -> SampleReader:
        return SampleReader(self._settings, [at for step in job.plan for at in step.wanted])
