"""Tokens a second of a step on lengths with a long tail: padded batches, batches sorted by length, and packing.

    python tests/bench/packing.py MODEL_DIR [--rows 256] [--steps 5] [--micro-batch-tokens 16384]

Lengths are log-normal, as answers of reasoning models are: half are below 80 tokens, the longest are cut at 2,048. A
step is forward, backward and AdamW on all rows; `padded` fills batches in the order in which rows come, `sorted` and
`packed` are what the trainer does without and with --packing. All three give the same gradient.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from headrace.trainers.batch import MicroBatch, TokenRow, collate
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import load_causal_lm

MEDIAN, SIGMA, LONGEST, PROMPT = 80, 1.1, 2048, 8


def rows_of(count: int, vocabulary: int) -> list[TokenRow]:
    rng = np.random.default_rng(0)
    made: list[TokenRow] = []
    for rollout in range(count):
        size = PROMPT + int(min(LONGEST, max(2, rng.lognormal(np.log(MEDIAN), SIGMA))))
        made.append(
            TokenRow(
                token_ids=rng.integers(0, vocabulary, size=size).astype(np.int32),
                loss_mask=np.arange(size) >= PROMPT,
                logprobs=rng.normal(-5.0, 0.5, size=size).astype(np.float32),
                advantage=float(rng.normal()),
                rollout=rollout,
            )
        )
    return made


class Padded(GrpoLearner):
    """Batches of rows as they come, each padded to its longest: no sorting, no packing."""

    def _mine(self, rows: Sequence[TokenRow]) -> list[MicroBatch]:
        limit, batches, part = self.settings.micro_batch_tokens, [], []
        for row in rows:
            longest = max(r.token_ids.size for r in [*part, row])
            if part and longest * (len(part) + 1) > limit:
                batches.append(part)
                part = []
            part.append(row)
        batches.append(part)
        made: list[MicroBatch] = []
        for part in batches:
            found = collate(part, aggregation="rollout_mean", micro_batch_tokens=10**9)
            # The weight of a rollout is that of the window, not of its batch.
            made += [replace(b, weights=b.weights * (len(part) / len(rows))) for b in found]
        return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--micro-batch-tokens", type=int, default=16384)
    args = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = load_causal_lm(args.model).vocab_size
    rows = rows_of(args.rows, vocabulary)
    tokens = sum(row.token_ids.size for row in rows)
    sizes = sorted(row.token_ids.size for row in rows)
    print(f"{len(rows)} rows, {tokens} tokens; median {sizes[len(sizes) // 2]}, longest {sizes[-1]}")
    rates: dict[str, float] = {}
    norms: list[float] = []
    for name, kind, packing in (
        ("padded", Padded, False),
        ("sorted", GrpoLearner, False),
        ("packed", GrpoLearner, True),
    ):
        settings = GrpoSettings(packing=packing, micro_batch_tokens=args.micro_batch_tokens, lr=1e-9)
        learner = kind(load_causal_lm(args.model), settings)
        metrics = learner.step(rows)  # warm
        norms.append(metrics["grad_norm"])
        started = time.process_time()
        for _ in range(args.steps):
            learner.step(rows)
        rates[name] = args.steps * tokens / (time.process_time() - started)
        share = tokens / metrics["tokens/forward"]
        print(
            f"{name:7s} {rates[name]:9.0f} tokens a CPU second, {100 * share:5.1f} % of the forward pass is no padding"
        )
    for name in ("padded", "sorted"):
        print(f"packed / {name} {rates['packed'] / rates[name]:.2f}")
    print(f"norms of the gradient {', '.join(f'{norm:.6f}' for norm in norms)}")


if __name__ == "__main__":
    main()
