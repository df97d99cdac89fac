"""What a trainer's step costs at the demo's shape, beside a bare torch loop on the same tokens.

    python tests/bench/trainer_step.py MODEL_DIR [--steps 30] [--distinct 3]

Prints CPU milliseconds a step of 160 rollouts, by phase. `--distinct`: how many different responses a prompt has.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import Sampling, Trajectory, Triplet, VersionRange
from headrace.streams.codec import Codec
from headrace.streams.settings import load_settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.optimizer import AdamW
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings

GROUPS, SIZE, PROMPT, RESPONSE = 10, 16, 24, 2


def window_of(step: int, distinct: int) -> list[Trajectory]:
    """Ten groups of sixteen calls with two new tokens."""
    rng = random.Random(step)
    made: list[Trajectory] = []
    for group in range(GROUPS):
        prompt = [rng.randrange(300) for _ in range(PROMPT)]
        answers = [[rng.randrange(300), 2] for _ in range(distinct)]
        for index in range(SIZE):
            version = VersionRange(min=step, max=step)
            call = Triplet(
                prompt_token_ids=pack_int32(prompt),
                response_token_ids=pack_int32(rng.choice(answers)),
                logprobs=pack_float32([-2.0, -0.1]),
                span_id="0" * 16,
                model="policy",
                policy="policy",
                policy_version=version,
                sampling=Sampling(),
                logprobs_mode="processed",
                finish_reason="stop",
            )
            made.append(
                Trajectory(
                    rollout_id=f"{step}-{group}-{index}",
                    group_id=f"{step}-{group}",
                    group_size=SIZE,
                    sample_index=index,
                    mode="train",
                    run_id="run",
                    status="succeeded",
                    triplets=[call],
                    final_reward=float(rng.random() < 0.5),
                    policy="policy",
                    policy_version=version,
                    assembled_at=0,
                )
            )
    return made


def bare(directory: Path, batch: list[Trajectory], steps: int, *, shared: bool) -> float:
    """Forward, backward and AdamW on the window's sequences: each row, or each distinct row, once."""
    model = load_causal_lm(directory)
    optimizer = AdamW(dict(model.module.named_parameters()))
    rows = [t.triplets[0].prompt_token_ids + t.triplets[0].response_token_ids for t in batch]
    rows = list(dict.fromkeys(rows)) if shared else rows
    ids = torch.tensor([list(memoryview(r).cast("i")) for r in rows])
    started = time.process_time()
    for _ in range(steps):
        hidden = model.hidden(ids)[:, PROMPT - 1 : -1]
        logprobs = model.head(hidden).log_softmax(-1).gather(-1, ids[:, PROMPT:, None])
        logprobs.mean().backward()
        optimizer.clip_gradients(1.0)
        optimizer.step(1e-3)
        optimizer.zero_grad()
    return 1e3 * (time.process_time() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--distinct", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    codec = Codec(load_settings())
    algorithm = Grpo(GrpoSettings(), "policy")
    algorithm.load(args.model)
    windows = Windows(WindowSettings(run_id="run", policy="policy", groups=GROUPS))
    spent: dict[str, float] = {}
    encoded = [[codec.encode(t) for t in window_of(step, args.distinct)] for step in range(args.steps)]

    def timed(phase: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = work()
        spent[phase] = spent.get(phase, 0.0) + time.process_time() - started
        return result

    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder), "run", keep=6)
        checkpoints.use(checkpoints.adopt(args.model, "policy", 0))
        for step, values in enumerate(encoded):
            records = timed("decode", lambda v=values: [codec.decode_as(Trajectory, x) for x in v])
            first = step * len(records)
            timed("window", lambda r=records, f=first: [windows.take((0, f + i), 0, t) for i, t in enumerate(r)])
            groups = timed("window", lambda s=step: windows.close(s, 0))
            timed("train", lambda g=groups: algorithm.train(g, windows))
            timed("window", windows.decisions)
            weights = timed("checkpoint", lambda s=step: checkpoints.write(algorithm.weights(), "policy", s + 1, None))
            timed("checkpoint", lambda s=step: checkpoints.write_state(s, algorithm.state()))
            timed("checkpoint", checkpoints.prune)
            assert weights.bytes
    for phase, seconds in spent.items():
        print(f"{phase:12s} {1e3 * seconds / args.steps:7.2f} ms a step")
    total = 1e3 * sum(spent.values()) / args.steps
    print(f"{'all':12s} {total:7.2f} ms a step, {total / GROUPS / SIZE:.3f} ms a rollout")
    batch = window_of(0, args.distinct)
    for shared, name in ((False, "every row"), (True, "distinct rows")):
        print(f"bare torch loop, {name}: {bare(args.model, batch, args.steps, shared=shared):.2f} ms a step")


if __name__ == "__main__":
    main()
