"""One window's step: rows in, changed weights and their figures out."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor

from headrace.trainers.advantages.estimators import GAE
from headrace.trainers.batch import Floats, MicroBatch, Scores, TokenRow, collate
from headrace.trainers.grpo.effective import ImportanceWeights
from headrace.trainers.grpo.figures import Figures
from headrace.trainers.grpo.objective import loss_of, tensor
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.layout import Ints
from headrace.trainers.losses.scores import logprobs_and_entropy
from headrace.trainers.models.loading import CausalLM
from headrace.trainers.models.lora import trained_parameters, without_adapter
from headrace.trainers.models.value_head import ValueHead
from headrace.trainers.optimizer import AdamW
from headrace.trainers.ranks import Ranks

log = logging.getLogger(__name__)

Assign = Callable[[list[TokenRow]], list[TokenRow]]
"""Gives scored rows their advantages."""
VALUE_HEAD = "value_head."


class Learner(Protocol):
    """What takes a window's step: in this process, or elsewhere."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def steps(self) -> int: ...

    def step(self, rows: Sequence[TokenRow], assign: Assign = ...) -> dict[str, float]: ...

    def weights(self) -> dict[str, Tensor]: ...

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, weights: Mapping[str, Tensor], state: Mapping[str, Tensor], steps: int) -> None: ...


class GrpoLearner:
    """The policy and its optimizer.

    A step is a pure function of weights, optimizer state and rows in their order: the same again gives the same bits on
    the same machine kind, thread count and versions.

    Args:
        reference: the frozen base weights, where the settings ask for a divergence from them. A model with an adapter
            has them in itself.
        ranks: the processes that take each step together.
    """

    def __init__(
        self, model: CausalLM, settings: GrpoSettings, reference: CausalLM | None = None, ranks: Ranks | None = None
    ) -> None:
        self.model = model
        self.settings = settings
        self.reference = reference
        self.ranks = ranks or Ranks()
        self.parameters = trained_parameters(model.module)
        dtype = next(iter(self.parameters.values())).dtype
        self.value_head = ValueHead(model.hidden_size, dtype) if settings.advantage == GAE else None
        every = dict(self.parameters)
        if self.value_head is not None:
            every |= {VALUE_HEAD + name: p for name, p in self.value_head.named_parameters()}
        self.optimizer = AdamW(every, betas=settings.betas, weight_decay=settings.weight_decay)

    @property
    def vocab_size(self) -> int:
        """Of the model."""
        return self.model.vocab_size

    @property
    def steps(self) -> int:
        """Optimizer steps since the base weights."""
        return self.optimizer.steps

    def step(self, rows: Sequence[TokenRow], assign: Assign = list) -> dict[str, float]:
        """Takes the optimizer steps of one window on all its rows.

        Args:
            assign: called once, on rank 0, with the rows as they are scored by the weights with which the window
                begins.

        Returns:
            Figures by metric name. A gradient that is not finite changes nothing and shows as `grad_norm` of NaN or
            infinity with `step/skipped` 1.
        """
        settings = self.settings
        scored = self._scored(list(rows)) if self._scores_first else list(rows)
        ready: list[TokenRow] = self.ranks.share(assign(scored) if self.ranks.rank == 0 else None)
        figures = Figures(settings)
        weights = ImportanceWeights()
        losses: list[float] = []
        norms: list[float] = []
        skipped = 0
        for epoch in range(settings.epochs):
            for part in dealt(ready, settings.mini_batches):
                loss, norm = self._update(part, figures, weights if epoch == 0 else None, first=not norms)
                losses.append(loss)
                norms.append(norm)
                skipped += not math.isfinite(norm)
        return (
            figures.metrics(self.ranks)
            | weights.metrics(self.ranks)
            | {
                "loss": sum(losses) / len(losses),
                "grad_norm": sum(norms) / len(norms),
                "lr": settings.lr,
                "step/skipped": float(skipped),
                "rows/trained": float(len(ready)),
            }
        )

    def _update(
        self, rows: Sequence[TokenRow], figures: Figures, weights: ImportanceWeights | None, *, first: bool
    ) -> tuple[float, float]:
        """One optimizer step; its loss and the norm of its gradient."""
        loss = 0.0
        for batch in self._mine(rows):
            with self._precision():
                logprobs, entropy, values = self._score(self.model, batch)
            taken = torch.from_numpy(batch.taken)
            logprobs, entropy = logprobs[taken], entropy[taken]
            values = None if values is None else values[taken]
            part = loss_of(batch, logprobs, entropy, values, self.settings)
            part.backward()  # pyright: ignore[reportUnknownMemberType]
            loss += float(part.detach())
            detached = None if values is None else values.detach()
            figures.add(batch, logprobs.detach(), entropy.detach(), detached, first=first)
            if weights is not None:
                begin = tensor(batch.proximal) if self.settings.ratio == "decoupled" else logprobs.detach()
                log_weights = (begin.double() - torch.from_numpy(batch.behaviour)).numpy()
                weights.add([rows[i].rollout for i in batch.rows], batch.counts, log_weights)
        self.ranks.add_gradients(self.optimizer.parameters.values())
        norm = self.optimizer.clip_gradients(self.settings.max_grad_norm)
        if math.isfinite(norm):
            self.optimizer.step(self.settings.lr)
        else:
            log.error("the gradient's norm is %s: the weights stay as they are", norm)
        self.optimizer.zero_grad()
        return self.ranks.add([loss])[0], norm

    @property
    def _scores_first(self) -> bool:
        s = self.settings
        return s.ratio == "decoupled" or s.needs_reference or self.value_head is not None

    @torch.no_grad()
    def _scored(self, rows: list[TokenRow]) -> list[TokenRow]:
        found: list[tuple[int, Scores]] = []
        for batch in self._mine(rows):
            with self._precision():
                proximal, _, values = self._score(self.model, batch)
                reference = self._score_reference(batch)
            bounds = np.cumsum(batch.counts)[:-1]
            proximals, references, expected = (_parts(x, batch, bounds) for x in (proximal, reference, values))
            for index, p, r, v in zip(batch.rows, proximals, references, expected, strict=True):
                found.append((index, Scores(proximal=p, reference=r, values=v)))
        scored = list(rows)
        gathered: list[list[tuple[int, Scores]]] = self.ranks.gather(found)
        for part in gathered:
            for index, scores in part:
                scored[index] = replace(rows[index], scored=scores)
        return scored

    def _mine(self, rows: Sequence[TokenRow]) -> list[MicroBatch]:
        s, model = self.settings, self.model
        limit = s.micro_batch_tokens
        batches = collate(
            rows,
            aggregation=s.aggregation,
            micro_batch_tokens=min(limit, model.pack_limit or limit) if s.packing else limit,
            trees=model.trees,
            packing=s.packing,
            token_divisor=s.token_divisor,
        )
        return batches[self.ranks.rank :: self.ranks.size]

    def _precision(self) -> AbstractContextManager[object]:
        if self.settings.dtype == "float32":
            return nullcontext()
        return cast("AbstractContextManager[object]", torch.autocast("cpu", dtype=torch.bfloat16))

    def _score(self, model: CausalLM, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor | None]:
        positions = None if batch.positions is None else torch.from_numpy(batch.positions)
        mask = None if batch.mask is None else torch.from_numpy(batch.mask)
        hidden = model.hidden(torch.from_numpy(batch.token_ids), positions, mask, batch.lengths)
        # The head is the widest product of a small model: it sees only the positions that predict a trained token.
        before = hidden.flatten(0, 1)[torch.from_numpy(batch.predictors)]
        logits = model.head(before)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if batch.temperatures is not None:
            logits = logits / torch.from_numpy(batch.temperatures).unsqueeze(-1)
        logprobs, entropy = logprobs_and_entropy(logits, torch.from_numpy(batch.targets))
        values = self.value_head(before) if self.value_head is not None and model is self.model else None
        return logprobs, entropy, values

    def _score_reference(self, batch: MicroBatch) -> Tensor | None:
        if self.reference is not None:
            return self._score(self.reference, batch)[0]
        if self.settings.lora is None or not self.settings.needs_reference:
            return None
        with without_adapter(self.model.module):
            return self._score(self.model, batch)[0]

    def weights(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, under its names; see `trained_parameters`."""
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    def state(self) -> dict[str, Tensor]:
        """The optimizer's moments, and the value head, which no checkpoint has."""
        head = {} if self.value_head is None else dict(self.value_head.named_parameters())
        return self.optimizer.state() | {VALUE_HEAD + name: p.detach() for name, p in head.items()}

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor], state: Mapping[str, Tensor], steps: int) -> None:
        """Goes on from a checkpoint and the state beside it."""
        for name, parameter in self.optimizer.parameters.items():
            parameter.copy_(state[name] if name.startswith(VALUE_HEAD) else weights[name])
        self.optimizer.restore(state, steps)


def dealt(rows: Sequence[TokenRow], hands: int) -> list[Sequence[TokenRow]]:
    """The rows of each mini-batch: rollouts are dealt out in their order, so that each has some of every group."""
    if hands == 1:
        return [rows]
    order = {rollout: place for place, rollout in enumerate(dict.fromkeys(row.rollout for row in rows))}
    dealt = [[row for row in rows if order[row.rollout] % hands == hand] for hand in range(hands)]
    return [part for part in dealt if part]


def _parts(scores: Tensor | None, batch: MicroBatch, bounds: Ints) -> list[Floats | None]:
    if scores is None:
        return [None] * len(batch.rows)
    return list(np.split(scores.float().numpy()[batch.taken], bounds))
