"""What a trainer's step costs at the demo's shape, beside a bare torch loop on the same batch.

    python tests/bench/trainer_step.py MODEL_DIR [--steps 30] [--groups 8] [--size 16]

Median CPU milliseconds of a step of 128 calls of 24 + 2 tokens: reading the window from Kafka and decoding it, the step
itself, the checkpoint. The bare loop has its tensors ready: forward pass, clipped policy gradient with an entropy
bonus, backward pass, clipping and torch's AdamW on every row. The two take turns, so that both see the same machine.
Once with other tokens in each row, once with three different answers a prompt, of which the trainer computes each once.
"""

import argparse
import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from synthetic import Sender, add_bootstrap, broker, fresh_settings

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import Sampling, Trajectory, Triplet, VersionRange
from headrace.streams.kafka.clock import LogClock
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.reader import Reader
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings

GC_YOUNG_OBJECTS = 20_000  # as the command has it
PROMPT, VOCABULARY = 24, 290
PARTITIONS = 4
T = TypeVar("T")


def window_of(step: int, groups: int, size: int, distinct: int) -> list[Trajectory]:
    """Groups of calls with two new tokens, of which `distinct` are different."""
    rng = random.Random(step)
    made: list[Trajectory] = []
    for group in range(groups):
        prompt = [rng.randrange(VOCABULARY) for _ in range(PROMPT)]
        answers = [[token, 2] for token in rng.sample(range(VOCABULARY), distinct)]
        for index in range(size):
            version = VersionRange(min=step, max=step)
            call = Triplet(
                prompt_token_ids=pack_int32(prompt),
                response_token_ids=pack_int32(answers[index % distinct]),
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
                    group_size=size,
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


class Bare:
    """A loop as one writes it by hand."""

    def __init__(self, directory: Path) -> None:
        self._model = load_causal_lm(directory)
        self._parameters = list(self._model.module.parameters())
        self._optimizer = torch.optim.AdamW(self._parameters, lr=1e-3, weight_decay=0.0)

    def step(self, ids: torch.Tensor, behaviour: torch.Tensor, advantages: torch.Tensor) -> None:
        """One step; `ids` [rows, tokens], `behaviour` [rows, response], `advantages` [rows]."""
        logits = self._model.head(self._model.hidden(ids)[:, PROMPT - 1 : -1])
        every = logits.log_softmax(-1)
        logprobs = every.gather(-1, ids[:, PROMPT:, None]).squeeze(-1)
        ratio = (logprobs - behaviour).exp()
        gain = advantages[:, None]
        policy = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.28) * gain).mean()
        entropy = -(every.exp() * every).sum(-1).mean()
        (-policy - 0.02 * entropy).backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()


def tensors_of(batch: list[Trajectory]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What the bare loop works on."""
    calls = [t.triplets[0] for t in batch]
    ids = torch.tensor([list(memoryview(c.prompt_token_ids + c.response_token_ids).cast("i")) for c in calls])
    behaviour = torch.tensor([list(memoryview(c.logprobs or b"").cast("f")) for c in calls])
    return ids, behaviour, torch.tensor([t.final_reward or 0.0 for t in batch]) - 0.5


class Phases:
    """CPU seconds by phase, of each step."""

    def __init__(self) -> None:
        self.spent: list[dict[str, float]] = []

    def __call__(self, phase: str, work: Callable[[], T]) -> T:
        started = time.process_time()
        result = work()
        step = self.spent[-1]
        step[phase] = step.get(phase, 0.0) + time.process_time() - started
        return result


def measure(settings: Settings, args: argparse.Namespace, distinct: int, folder: Path) -> dict[str, float]:
    """Milliseconds of a median step, by phase."""
    sender = Sender(settings)
    algorithm, bare = Grpo(GrpoSettings(), "policy"), Bare(args.model)
    algorithm.load(args.model)
    checkpoints = Checkpoints(folder, "run", keep=6)
    checkpoints.use(checkpoints.adopt(args.model, "policy", 0))
    windows = Windows(WindowSettings(run_id="run", policy="policy", groups=args.groups))
    reader = Reader(settings, "run", windows, LogClock())
    phases = Phases()

    def read(step: int) -> Any:
        while (groups := windows.close(step, 0)) is None:
            reader.read()
        return groups

    def checkpoint(step: int) -> None:
        checkpoints.write(algorithm.weights(), "policy", step + 1, None)
        checkpoints.write_state(step, algorithm.state())
        checkpoints.prune()

    for step in range(args.steps + 1):
        batch = window_of(step, args.groups, args.size, distinct)
        sender.send(*batch)
        sender.flush()
        phases.spent.append({})
        groups = phases("read", lambda s=step: read(s))
        phases("step", lambda g=groups: algorithm.train(g, windows))
        phases("read", windows.decisions)
        phases("checkpoint", lambda s=step: checkpoint(s))
        ready = tensors_of(batch)
        phases("bare", lambda r=ready: bare.step(*r))
    reader.close()
    counted = phases.spent[1:]  # the first one warms up
    return {phase: 1e3 * statistics.median(step[phase] for step in counted) for phase in counted[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--size", type=int, default=16)
    add_bootstrap(parser)
    args = parser.parse_args()
    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(GC_YOUNG_OBJECTS)
    with broker(args.bootstrap) as (bootstrap, _), tempfile.TemporaryDirectory() as folder:
        for distinct in (args.size, min(3, args.size)):
            settings = fresh_settings(bootstrap, PARTITIONS)
            found = measure(settings, args, distinct, Path(folder) / str(distinct))
            print(f"{args.groups} groups of {args.size}, {distinct} different answers each, ms of CPU a step:")
            for phase, ms in found.items():
                print(f"  {phase:12s} {ms:7.2f}")
            whole = sum(ms for phase, ms in found.items() if phase != "bare")
            rollouts = args.groups * args.size
            print(
                f"  step / bare loop {found['step'] / found['bare']:.2f}; reading is {found['read'] / whole:.1%} of all"
            )
            print(f"  all {whole:.2f}, {whole / rollouts:.3f} a rollout")


if __name__ == "__main__":
    main()
