"""One GRPO step: rows of a window in, changed weights and their figures out."""

import logging
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headrace.trainers.batch import MicroBatch, TokenRow, collate
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.losses import clipped, clipped_loss, k3, logprobs_and_entropy
from headrace.trainers.models.loading import CausalLM
from headrace.trainers.optimizer import AdamW

log = logging.getLogger(__name__)


class GrpoLearner:
    """The policy and its optimizer.

    A step is a pure function of weights, optimizer state and rows in their order: the same again gives the same bits on
    the same machine kind, thread count and versions.
    """

    def __init__(self, model: CausalLM, settings: GrpoSettings) -> None:
        self.model = model
        self.settings = settings
        # A tied head is one parameter under two names, and stands here once.
        self.parameters = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        self.optimizer = AdamW(self.parameters, betas=settings.betas, weight_decay=settings.weight_decay)

    def step(self, rows: Sequence[TokenRow]) -> dict[str, float]:
        """Takes one optimizer step on all rows of a window.

        Returns:
            Figures by metric name. A gradient that is not finite changes nothing and shows as `grad_norm` of NaN or
            infinity with `step/skipped` 1.
        """
        settings = self.settings
        batches = collate(
            rows,
            aggregation=settings.aggregation,
            micro_batch_tokens=settings.micro_batch_tokens,
            trees=self.model.trees,
        )
        figures = _Figures(settings)
        loss = 0.0
        for batch in batches:
            logprobs, entropy = self._score(batch)
            taken = torch.from_numpy(batch.taken)
            logprobs, entropy = logprobs[taken], entropy[taken]
            behaviour, advantages = torch.from_numpy(batch.behaviour), torch.from_numpy(batch.advantages)
            each = clipped_loss(
                logprobs, behaviour, advantages, clip_low=settings.clip_low, clip_high=settings.clip_high
            )
            part = ((each - settings.entropy * entropy) * torch.from_numpy(batch.weights)).sum()
            part.backward()  # pyright: ignore[reportUnknownMemberType]
            loss += float(part.detach())
            figures.add(logprobs.detach(), entropy.detach(), behaviour, advantages, torch.from_numpy(batch.fresh))
        norm = self.optimizer.clip_gradients(settings.max_grad_norm)
        finite = math.isfinite(norm)
        if finite:
            self.optimizer.step(settings.lr)
        else:
            log.error("the gradient's norm is %s: the weights stay as they are", norm)
        self.optimizer.zero_grad()
        return figures.metrics() | {
            "loss": loss,
            "grad_norm": norm,
            "lr": settings.lr,
            "step/skipped": 0.0 if finite else 1.0,
            "rows/trained": float(len(rows)),
            "tokens/distinct": float(sum(batch.targets.size for batch in batches)),
            "tokens/forward": float(sum(batch.token_ids.size for batch in batches)),
        }

    def _score(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        positions = None if batch.positions is None else torch.from_numpy(batch.positions)
        mask = None if batch.mask is None else torch.from_numpy(batch.mask)
        hidden = self.model.hidden(torch.from_numpy(batch.token_ids), positions, mask)
        # The head is the widest product of a small model: it sees only the positions that predict a trained token.
        logits = self.model.head(hidden.flatten(0, 1)[torch.from_numpy(batch.predictors)]).float()
        if batch.temperatures is not None:
            logits = logits / torch.from_numpy(batch.temperatures).unsqueeze(-1)
        return logprobs_and_entropy(logits, torch.from_numpy(batch.targets))

    def weights(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, under Hugging Face's names."""
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor], optimizer: Mapping[str, Tensor], steps: int) -> None:
        """Goes on from a checkpoint and the optimizer's state beside it."""
        for name, parameter in self.parameters.items():
            parameter.copy_(weights[name])
        self.optimizer.restore(optimizer, steps)


class _Figures:
    def __init__(self, settings: GrpoSettings) -> None:
        self.settings = settings
        self.tokens = 0
        self.fresh = 0
        self.sums = dict.fromkeys(("ratio", "clip", "entropy", "k3", "kl"), 0.0)
        self.ratio_max = 0.0

    @torch.no_grad()
    def add(self, logprobs: Tensor, entropy: Tensor, behaviour: Tensor, advantages: Tensor, fresh: Tensor) -> None:
        ratio = (logprobs - behaviour).exp()
        limits = {"clip_low": self.settings.clip_low, "clip_high": self.settings.clip_high}
        divergence = k3(behaviour, logprobs)
        self.tokens += len(ratio)
        self.fresh += int(fresh.sum())
        self.sums["ratio"] += float(ratio.sum())
        self.sums["clip"] += float(clipped(ratio, advantages, **limits).sum())
        self.sums["entropy"] += float(entropy.sum())
        self.sums["kl"] += float(divergence.sum())
        self.sums["k3"] += float(divergence[fresh].sum())
        self.ratio_max = max(self.ratio_max, float(ratio.max()))

    def metrics(self) -> dict[str, float]:
        tokens = max(1, self.tokens)
        metrics = {
            "ratio/mean": self.sums["ratio"] / tokens,
            "ratio/max": self.ratio_max,
            "ratio/k3": self.sums["kl"] / tokens,
            "clip/fraction": self.sums["clip"] / tokens,
            "entropy": self.sums["entropy"] / tokens,
            "tokens/trained": float(self.tokens),
        }
        if self.fresh:
            mismatch = self.sums["k3"] / self.fresh
            metrics["mismatch/k3"] = mismatch
            metrics["mismatch/alarm"] = float(not mismatch <= self.settings.mismatch_bound)
        return metrics
