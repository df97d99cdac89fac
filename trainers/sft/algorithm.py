"""Supervised fine-tuning over windows: maximum likelihood of the answers that were good."""

import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headrace.trainers.algorithm import Trained
from headrace.trainers.batch import MicroBatch, TokenRow, collate
from headrace.trainers.checkpoint import State
from headrace.trainers.figures import window_figures
from headrace.trainers.losses import logprobs_and_entropy
from headrace.trainers.models.loading import CausalLM, load_causal_lm, read_tensors
from headrace.trainers.models.lora import adapter_config, trained_parameters
from headrace.trainers.optimizer import AdamW
from headrace.trainers.sft.rendering import Renderer
from headrace.trainers.sft.samples import MARKED, ImitationRules, imitated_rows
from headrace.trainers.sft.settings import SftSettings
from headrace.trainers.sft.tokenizing import load_renderer
from headrace.trainers.window import Group, Member, Windows

log = logging.getLogger(__name__)
MASTER = "weights."  # of weights that the checkpoint rounds


class Sft:
    """See `Algorithm`. One optimizer step a window."""

    name = "sft"

    def __init__(self, settings: SftSettings, policy: str) -> None:
        self._settings = settings
        self._policy = policy
        self._renderer: Renderer | None = None
        self._loaded: CausalLM | None = None

    def settings(self) -> dict[str, Any]:
        """All that a step's arithmetic depends on."""
        return asdict(self._settings)

    def load(self, directory: Path) -> None:
        """Takes the weights and the chat template of a Hugging Face directory, and a fresh optimizer."""
        model = self._loaded = load_causal_lm(directory, lora=self._settings.lora)
        self._renderer = load_renderer(directory)
        self.parameters = trained_parameters(model.module)
        self.optimizer = AdamW(self.parameters, betas=self._settings.betas, weight_decay=self._settings.weight_decay)

    @property
    def model(self) -> CausalLM:
        """The policy."""
        assert self._loaded is not None, "load the weights first"
        return self._loaded

    def train(self, groups: Sequence[Group], windows: Windows) -> Trained | None:
        """One step on what is good enough in the window."""
        started = time.perf_counter()
        rules = self._rules()
        rows: list[TokenRow] = []
        members: list[Member] = []
        masked: Counter[str] = Counter()
        for group in groups:
            for member in self._chosen(group, windows):
                made, refused = imitated_rows(member.trajectory, rules, self._renderer, rollout=len(members))
                masked.update(refused)
                if made:
                    rows.extend(made)
                    members.append(member)
                else:
                    reasons = Counter({k: n for k, n in refused.items() if k != MARKED})
                    windows.drop(member, reasons.most_common(1)[0][0] if reasons else "no_tokens")
        if not members:
            return None
        windows.train(members)
        prepared = time.perf_counter()
        metrics = self.step(rows)
        rewards = [m.trajectory.final_reward for m in members if m.trajectory.final_reward is not None]
        return Trained(
            metrics={
                **metrics,
                **window_figures(groups, members, rows, masked),
                "seconds/rows": prepared - started,
                "seconds/train": time.perf_counter() - prepared,
            },
            rewards=rewards,
            staleness=Counter(m.staleness for m in members),
        )

    def step(self, rows: Sequence[TokenRow]) -> dict[str, float]:
        """One optimizer step on all rows of a window; figures by metric name.

        A gradient that is not finite changes nothing, and shows as `step/skipped` 1.
        """
        settings = self._settings
        batches = collate(
            rows,
            aggregation=settings.aggregation,
            micro_batch_tokens=settings.micro_batch_tokens,
            trees=self.model.trees,
        )
        loss = nll = entropies = 0.0
        tokens = 0
        for batch in batches:
            logprobs, entropy = self._score(batch)
            taken = torch.from_numpy(batch.taken)
            logprobs, entropy = logprobs[taken], entropy[taken]
            part = -(logprobs * torch.from_numpy(batch.weights)).sum()
            part.backward()  # pyright: ignore[reportUnknownMemberType]
            loss += float(part.detach())
            nll -= float(logprobs.detach().sum())
            entropies += float(entropy.detach().sum())
            tokens += int(taken.numel())
        norm = self.optimizer.clip_gradients(settings.max_grad_norm)
        finite = math.isfinite(norm)
        if finite:
            self.optimizer.step(settings.lr)
        else:
            log.error("the gradient's norm is %s: the weights stay as they are", norm)
        self.optimizer.zero_grad()
        return {
            "loss": loss,
            "nll": nll / max(1, tokens),
            "entropy": entropies / max(1, tokens),
            "grad_norm": norm,
            "lr": settings.lr,
            "step/skipped": 0.0 if finite else 1.0,
            "rows/trained": float(len(rows)),
            "tokens/trained": float(tokens),
            "tokens/distinct": float(sum(batch.targets.size for batch in batches)),
            "tokens/forward": float(sum(batch.token_ids.size for batch in batches)),
        }

    def weights(self) -> dict[str, Tensor]:
        """The tensors to publish."""
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    def adapter(self) -> dict[str, Any] | None:
        """See `Algorithm.adapter`."""
        return None if self._settings.lora is None else adapter_config(self._settings.lora)

    def state(self) -> State:
        """The optimizer's moments, its number of steps, and torch's random state."""
        return State(self.optimizer.state() | {"rng": torch.get_rng_state()}, {"optimizer_steps": self.optimizer.steps})

    @torch.no_grad()
    def restore(self, weights: Path, state: State) -> None:
        """Goes on where `state` was taken."""
        master = {name.removeprefix(MASTER): t for name, t in state.tensors.items() if name.startswith(MASTER)}
        tensors = master or read_tensors(weights)
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[name])
        self.optimizer.restore(state.tensors, int(state.facts["optimizer_steps"]))
        torch.set_rng_state(state.tensors["rng"])

    def _chosen(self, group: Group, windows: Windows) -> list[Member]:
        """The best members of a group, by sample_index; the others are dropped."""
        left, most = windows.trainable(group), self._settings.best_of_group
        if most is None:
            return left
        ranked = sorted(left, key=_reward, reverse=True)
        best = {member.at for member in ranked[:most]}
        for member in ranked[most:]:
            windows.drop(member, "not_best")
        return [member for member in left if member.at in best]

    def _score(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        positions = None if batch.positions is None else torch.from_numpy(batch.positions)
        mask = None if batch.mask is None else torch.from_numpy(batch.mask)
        hidden = self.model.hidden(torch.from_numpy(batch.token_ids), positions, mask)
        logits = self.model.head(hidden.flatten(0, 1)[torch.from_numpy(batch.predictors)]).float()
        return logprobs_and_entropy(logits, torch.from_numpy(batch.targets))

    def _rules(self) -> ImitationRules:
        return ImitationRules(
            policy=self._policy,
            recorded=self._settings.recorded,
            level=self._settings.level,
            vocab_size=self.model.vocab_size,
            max_row_tokens=self._settings.max_row_tokens,
        )


def _reward(member: Member) -> float:
    reward = member.trajectory.final_reward
    return -math.inf if reward is None else reward
