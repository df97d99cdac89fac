"""GRPO over windows: groups to advantages, trajectories to rows, rows to a step."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headrace.trainers.advantages import group_relative
from headrace.trainers.algorithm import Trained
from headrace.trainers.batch import TokenRow
from headrace.trainers.checkpoint import State
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import CausalLM, load_causal_lm, read_tensors
from headrace.trainers.samples import SampleRules, token_rows
from headrace.trainers.window import Group, Member, Windows

MASTER = "weights."  # of weights that the checkpoint rounds


class Grpo:
    """See `Algorithm`. Group-relative policy optimisation, arXiv:2402.03300, one optimizer step a window."""

    name = "grpo"

    def __init__(self, settings: GrpoSettings, policy: str) -> None:
        self._settings = settings
        self._policy = policy
        self._learner: GrpoLearner | None = None

    def settings(self) -> dict[str, Any]:
        """All that a step's arithmetic depends on."""
        return asdict(self._settings)

    def load(self, directory: Path) -> None:
        """Takes the weights of a Hugging Face directory, and a fresh optimizer."""
        self._learner = GrpoLearner(load_causal_lm(directory), self._settings)

    @property
    def learner(self) -> GrpoLearner:
        """The policy and its optimizer."""
        assert self._learner is not None, "load the weights first"
        return self._learner

    def train(self, groups: Sequence[Group], windows: Windows) -> Trained | None:
        """One step on the trainable members of complete groups."""
        started = time.perf_counter()
        rules = self._rules(self.learner.model)
        rows: list[TokenRow] = []
        members: list[Member] = []
        masked: Counter[str] = Counter()
        flat = 0
        for group in groups:
            rewarded = [m for m in group.in_order() if m.trajectory.final_reward is not None]
            values = group_relative(
                [m.trajectory.final_reward or 0.0 for m in rewarded], epsilon=self._settings.advantage_epsilon
            )
            advantages = {m.at: float(value) for m, value in zip(rewarded, values, strict=True)}
            flat += not values.any()
            for member in windows.trainable(group):
                made, refused = token_rows(
                    member.trajectory,
                    rules,
                    advantage=advantages[member.at],
                    rollout=len(members),
                    staleness=member.staleness,
                )
                masked.update(refused)
                if made:
                    rows.extend(made)
                    members.append(member)
                else:
                    windows.drop(member, refused.most_common(1)[0][0] if refused else "no_tokens")
        if not members:
            return None
        windows.train(members)
        prepared = time.perf_counter()
        metrics = self.learner.step(rows)
        rewards = [m.trajectory.final_reward or 0.0 for m in members]
        staleness = Counter(m.staleness for m in members)
        return Trained(
            metrics={
                **metrics,
                "reward/mean": sum(rewards) / len(rewards),
                "groups/count": float(len(groups)),
                "groups/zero_variance": flat / len(groups),
                "groups/size": sum(len(g.members) for g in groups) / len(groups),
                "staleness/mean": sum(k * n for k, n in staleness.items()) / len(members),
                "staleness/max": float(max(staleness)),
                "turns": sum(len(m.trajectory.triplets) for m in members) / len(members),
                **{f"masked/{reason}": float(n) for reason, n in masked.items()},
                "seconds/rows": prepared - started,
                "seconds/train": time.perf_counter() - prepared,
            },
            rewards=rewards,
            staleness=staleness,
        )

    def weights(self) -> dict[str, Tensor]:
        """The tensors to publish."""
        return self.learner.weights()

    def state(self) -> State:
        """The optimizer's moments, its number of steps, and torch's random state."""
        tensors = self.learner.optimizer.state() | {"rng": torch.get_rng_state()}
        return State(tensors, {"optimizer_steps": self.learner.optimizer.steps})

    def restore(self, weights: Path, state: State) -> None:
        """Goes on where `state` was taken."""
        master = {name.removeprefix(MASTER): t for name, t in state.tensors.items() if name.startswith(MASTER)}
        self.learner.restore(master or read_tensors(weights), state.tensors, int(state.facts["optimizer_steps"]))
        torch.set_rng_state(state.tensors["rng"])

    def _rules(self, model: CausalLM) -> SampleRules:
        return SampleRules(
            policy=self._policy,
            level=self._settings.level,
            vocab_size=model.vocab_size,
            max_row_tokens=self._settings.max_row_tokens,
        )
