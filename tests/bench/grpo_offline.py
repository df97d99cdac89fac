"""The pure learner on the digits task: samples in the same process, without Kafka. Prints the steps to the goal.

python tests/bench/grpo_offline.py MODEL_DIR [--seed 0] [--delay 0] [--aggregation rollout_mean]
"""

import argparse
import random
import time
from collections import deque
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from headrace.trainers.advantages.estimators import group_relative
from headrace.trainers.batch import TokenRow
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import load_causal_lm

PROMPT = "<|im_start|>user\nPlease pick the digit {}.<|im_end|>\n<|im_start|>assistant\n"


@torch.no_grad()
def sample(model, prompts, count, eos, limit, generator):
    """`count` responses a prompt, with log-probabilities; equal prefixes are computed once."""
    pending = [(tuple(p), [], []) for p in prompts for _ in range(count)]
    everything = list(pending)
    for _ in range(limit):
        prefixes = {}
        where = [prefixes.setdefault(p + tuple(r), len(prefixes)) for p, r, _ in pending]
        length = max(map(len, prefixes))
        ids = torch.tensor([list(p) + [0] * (length - len(p)) for p in prefixes])
        ends = torch.tensor([len(p) - 1 for p in prefixes])
        logprobs = model.head(model.hidden(ids)[torch.arange(len(ids)), ends]).log_softmax(-1)[torch.tensor(where)]
        tokens = torch.multinomial(logprobs.exp(), 1, generator=generator)
        for (_, response, values), token, lp in zip(
            pending, tokens[:, 0].tolist(), logprobs.gather(1, tokens)[:, 0].tolist(), strict=True
        ):
            response.append(token)
            values.append(lp)
        pending = [p for p in pending if p[1][-1] != eos]
        if not pending:
            break
    return everything


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delay", type=int, default=0, help="windows between sampling and training")
    parser.add_argument("--aggregation", default="rollout_mean")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--entropy", type=float, default=0.02)
    parser.add_argument("--max-steps", type=int, default=300)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = load_causal_lm(args.model)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    eos = tokenizer.token_to_id("<|im_end|>")
    learner = GrpoLearner(model, GrpoSettings(lr=args.lr, entropy=args.entropy, aggregation=args.aggregation))
    generator = torch.Generator().manual_seed(args.seed)
    order = random.Random(args.seed)
    recent: deque[float] = deque(maxlen=200)
    waiting: deque[list[TokenRow]] = deque()
    first = None
    sampling = training = 0.0
    for step in range(1, args.max_steps + 1):  # noqa: B007 (reported below)
        digits = list(range(10))
        order.shuffle(digits)
        prompts = [tokenizer.encode(PROMPT.format(d), add_special_tokens=False).ids for d in digits]
        started = time.perf_counter()
        rollouts = sample(model, prompts, 16, eos, 4, generator)
        sampling += time.perf_counter() - started
        rows: list[TokenRow] = []
        for g, digit in enumerate(digits):
            group = rollouts[g * 16 : (g + 1) * 16]
            texts = [tokenizer.decode(response, skip_special_tokens=True).strip() for _, response, _ in group]
            rewards = [float(text == str(digit)) for text in texts]
            recent.extend(rewards)
            for (prompt, response, values), advantage in zip(group, group_relative(rewards), strict=True):
                rows.append(
                    TokenRow(
                        token_ids=np.array([*prompt, *response], dtype=np.int32),
                        loss_mask=np.array([False] * len(prompt) + [True] * len(response)),
                        logprobs=np.array([0.0] * len(prompt) + values, dtype=np.float32),
                        advantage=float(advantage),
                        rollout=len(rows),
                        staleness=args.delay,
                    )
                )
        first = first if first is not None else sum(recent) / len(recent)
        waiting.append(rows)
        if len(waiting) <= args.delay:
            continue
        started = time.perf_counter()
        metrics = learner.step(waiting.popleft())
        training += time.perf_counter() - started
        if len(recent) == 200 and sum(recent) / 200 >= 0.9:
            break
    print(
        f"{args.model.name} seed {args.seed} delay {args.delay} {args.aggregation}: {first:.2f} -> "
        f"{sum(recent) / 200:.2f} in {step} steps, {1e3 * sampling / step:.0f} ms sampling and "
        f"{1e3 * training / step:.0f} ms training a step; entropy {metrics['entropy']:.3f} ratio "
        f"{metrics['ratio/max']:.2f} k3 {metrics.get('mismatch/k3', -1):.1e} "
        f"distinct tokens {metrics['tokens/distinct']:.0f}"
    )


if __name__ == "__main__":
    main()
