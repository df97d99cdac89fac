"""GRPO and its relatives over windows: trajectories to rows, groups to advantages, rows to a step."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headrace.trainers.advantages.window import estimate
from headrace.trainers.algorithm import Trained
from headrace.trainers.batch import TokenRow
from headrace.trainers.checkpoint import State
from headrace.trainers.figures import window_figures
from headrace.trainers.groups import At, Group, Member
from headrace.trainers.grpo.assigning import Assigner, Estimator, Sample, of_group, score, unscored
from headrace.trainers.grpo.learner import GrpoLearner, Learner
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import load_causal_lm, read_tensors
from headrace.trainers.models.lora import adapter_config
from headrace.trainers.ranks import Ranks
from headrace.trainers.samples import SampleRules, token_rows
from headrace.trainers.window import Windows

MASTER = "weights."  # of weights that the checkpoint rounds


class Grpo:
    """See `Algorithm`. The family of policy-gradient algorithms that differ in settings; see `settings.OBJECTIVES`."""

    name = "grpo"

    def __init__(self, settings: GrpoSettings, policy: str, ranks: Ranks | None = None) -> None:
        self._settings = settings
        self._policy = policy
        self._ranks = ranks or Ranks()
        self._learner: Learner | None = None
        self._baseline: float | None = None
        self._estimator: Estimator = estimate

    def settings(self) -> dict[str, Any]:
        """All that a step's arithmetic depends on."""
        return asdict(self._settings) | ({"ranks": self._ranks.size} if self._ranks.size > 1 else {})

    def load(self, directory: Path) -> None:
        """Takes the weights of a Hugging Face directory, and a fresh optimizer; they are the reference too."""
        self._tell("load", str(directory))
        self._learner = self._learner_of(directory)
        self._baseline = None

    def _learner_of(self, directory: Path) -> Learner:
        s = self._settings
        reference = load_causal_lm(directory) if s.needs_reference and s.lora is None else None
        return GrpoLearner(load_causal_lm(directory, lora=s.lora), s, reference, self._ranks)

    @property
    def learner(self) -> Learner:
        """The policy and its optimizer."""
        assert self._learner is not None, "load the weights first"
        return self._learner

    def train(self, groups: Sequence[Group], windows: Windows) -> Trained | None:
        """One step on the trainable members of complete groups."""
        started = time.perf_counter()
        rules = self._rules(self.learner.vocab_size)
        rows: list[TokenRow] = []
        members: list[Member] = []
        samples: dict[At, Sample] = {}
        masked: Counter[str] = Counter()
        for group in groups:
            trainable = {member.at for member in windows.trainable(group)}
            for member in group.in_order():
                if member.trajectory.final_reward is None:
                    continue
                values = score(member, self._settings)
                samples[member.at] = Sample(values, None)
                if member.at not in trainable:
                    continue
                made, refused = token_rows(
                    member.trajectory,
                    rules,
                    rollout=len(members),
                    staleness=member.staleness,
                    unscored=unscored(values, self._settings),
                )
                masked.update(refused)
                if made:
                    samples[member.at] = Sample(values, len(members))
                    rows.extend(made)
                    members.append(member)
                else:
                    windows.drop(member, refused.most_common(1)[0][0] if refused else "no_tokens")
        if not members:
            return None
        windows.train(members)
        # A group without a trained member compares nobody, and a replay cannot know which window it stood in.
        trained = {member.at for member in members}
        groups = [group for group in groups if any(member.at in trained for member in group.members.values())]
        prepared = time.perf_counter()
        self._tell("step", rows)
        metrics = self.learner.step(rows, self._assigner(groups, samples, windows.settings.ungrouped))
        return Trained(
            metrics={
                **metrics,
                **window_figures(groups, members, rows, masked),
                "seconds/rows": prepared - started,
                "seconds/train": time.perf_counter() - prepared,
            },
            rewards=[m.trajectory.final_reward or 0.0 for m in members],
            staleness=Counter(m.staleness for m in members),
        )

    def _assigner(self, groups: Sequence[Group], samples: dict[At, Sample], ungrouped: str) -> Assigner:
        """Compares the members of each group, and the samples of none by the window's policy for them."""
        compared = [of_group(group, samples) for group in groups if not group.alone]
        alone = [sample for group in groups if group.alone for sample in of_group(group, samples)]
        if ungrouped != "running":
            return Assigner(self._settings, [*compared, alone] if alone else compared, estimator=self._estimator)
        known = [float(np.nanmean(s.scores)) for s in alone if np.isfinite(s.scores).any()]
        mean = sum(known) / len(known) if known else 0.0
        before = mean if self._baseline is None else self._baseline
        if known:
            self._baseline = before + (1.0 - self._settings.baseline_decay) * (mean - before)
        return Assigner(self._settings, compared, alone, before, estimator=self._estimator)

    def weights(self) -> dict[str, Tensor]:
        """The tensors to publish."""
        return self.learner.weights()

    def adapter(self) -> dict[str, Any] | None:
        """See `Algorithm.adapter`."""
        return None if self._settings.lora is None else adapter_config(self._settings.lora)

    def state(self) -> State:
        """The optimizer's moments, its number of steps, the running baseline, and torch's random state."""
        tensors = self.learner.state() | {"rng": torch.get_rng_state()}
        return State(tensors, {"optimizer_steps": self.learner.steps, "baseline": self._baseline})

    def restore(self, weights: Path, state: State) -> None:
        """Goes on where `state` was taken."""
        self._tell("restore", str(weights), state)
        master = {name.removeprefix(MASTER): t for name, t in state.tensors.items() if name.startswith(MASTER)}
        self.learner.restore(master or read_tensors(weights), state.tensors, int(state.facts["optimizer_steps"]))
        self._baseline = state.facts["baseline"]
        torch.set_rng_state(state.tensors["rng"])

    def _tell(self, *what: Any) -> None:
        """The other ranks do it too; see `following`."""
        if self._ranks.size > 1 and self._ranks.rank == 0:
            self._ranks.share(what)

    def _rules(self, vocab_size: int) -> SampleRules:
        return SampleRules(
            policy=self._policy,
            level=self._settings.level,
            vocab_size=vocab_size,
            max_row_tokens=self._settings.max_row_tokens,
            over_long=self._settings.over_long,
        )
