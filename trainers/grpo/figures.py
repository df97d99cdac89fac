"""The figures of a step, added up over micro-batches and ranks."""

import torch
from torch import Tensor

from headrace.trainers.batch import MicroBatch
from headrace.trainers.grpo.objective import tensor
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.losses.policy import clipped
from headrace.trainers.losses.scores import k3
from headrace.trainers.ranks import Ranks

SUMS = (
    *("tokens", "fresh", "ratio", "clip", "entropy", "k3", "kl", "weight", "truncated", "kl_ref"),
    *("distinct", "forward", "value_error", "returns"),
)


class Figures:
    """Of all optimizer steps of a window."""

    def __init__(self, settings: GrpoSettings) -> None:
        self._settings = settings
        self._sums = dict.fromkeys(SUMS, 0.0)
        self._ratio_max = 0.0

    @torch.no_grad()
    def add(self, batch: MicroBatch, logprobs: Tensor, entropy: Tensor, values: Tensor | None, *, first: bool) -> None:
        """Takes a micro-batch, its tensors [tokens] without gradients.

        Args:
            first: no optimizer step of this window has changed the weights yet.
        """
        s, sums = self._settings, self._sums
        behaviour, fresh = torch.from_numpy(batch.behaviour), torch.from_numpy(batch.fresh)
        old = tensor(batch.proximal) if s.ratio == "decoupled" else behaviour
        ratio = (logprobs - old).exp()
        divergence = k3(behaviour, logprobs)
        sums["tokens"] += len(ratio)
        sums["ratio"] += float(ratio.sum())
        sums["clip"] += float(self._held(ratio, batch).sum())
        sums["entropy"] += float(entropy.sum())
        sums["kl"] += float(divergence.sum())
        sums["distinct"] += batch.targets.size
        sums["forward"] += batch.token_ids.size
        self._ratio_max = max(self._ratio_max, float(ratio.max()))
        if first:
            sums["fresh"] += int(fresh.sum())
            sums["k3"] += float(divergence[fresh].sum())
        if s.ratio == "decoupled":
            weight = (old - behaviour).exp()
            sums["weight"] += float(weight.clamp(max=s.truncation).sum())
            sums["truncated"] += float((weight > s.truncation).sum())
        if batch.reference is not None:
            sums["kl_ref"] += float(k3(logprobs, tensor(batch.reference)).sum())
        if values is not None:
            returns = tensor(batch.returns)
            sums["value_error"] += float((values - returns).square().sum())
            sums["returns"] += float(returns.sum())

    def metrics(self, ranks: Ranks) -> dict[str, float]:
        """Means over tokens, by metric name."""
        s = self._settings
        sums = dict(zip(SUMS, ranks.add([self._sums[name] for name in SUMS]), strict=True))
        tokens = max(1.0, sums["tokens"])
        metrics = {
            "ratio/mean": sums["ratio"] / tokens,
            "ratio/max": max(ranks.gather(self._ratio_max)),
            "ratio/k3": sums["kl"] / tokens,
            "clip/fraction": sums["clip"] / tokens,
            "entropy": sums["entropy"] / tokens,
            "tokens/trained": sums["tokens"],
            "tokens/distinct": sums["distinct"],
            "tokens/forward": sums["forward"],
        }
        if sums["fresh"]:
            mismatch = sums["k3"] / sums["fresh"]
            metrics["mismatch/k3"] = mismatch
            metrics["mismatch/alarm"] = float(not mismatch <= s.alarm_bound)
        if s.ratio == "decoupled":
            metrics |= {"ratio/weight": sums["weight"] / tokens, "ratio/truncated": sums["truncated"] / tokens}
        if s.needs_reference:
            metrics["kl_ref"] = sums["kl_ref"] / tokens
        if s.advantage == "gae":
            metrics |= {"value/error": sums["value_error"] / tokens, "value/returns": sums["returns"] / tokens}
        return metrics

    def _held(self, ratio: Tensor, batch: MicroBatch) -> Tensor:
        s = self._settings
        if s.loss == "reinforce":
            return (ratio > s.truncation).to(ratio.dtype)
        if s.loss == "gspo":
            responses = torch.from_numpy(batch.responses)
            sizes = torch.bincount(responses)
            sums = torch.zeros(len(sizes), dtype=ratio.dtype).index_add_(0, responses, ratio.log())
            ratio = (sums / sizes).exp()[responses]
        advantages = torch.from_numpy(batch.advantages)
        return clipped(ratio, advantages, clip_low=s.clip_low, clip_high=s.clip_high)
