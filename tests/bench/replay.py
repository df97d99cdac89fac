"""A run of many steps trained again from its spans, rewards and attempts: are the weights the same, bit for bit?

    .venv/bin/python -m tests.bench.replay [--steps 100] [--times 2]

Synthetic rollouts of two calls, some of them with rewards that came late, through the assembler and `headrace trainer
grpo` on the demo's model; then `headrace replay`, so many times. Prints one JSON object.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from headrace.schemas.records import Record, TrainingStep
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings
from tests.bench.synthetic import COMMAND, add_bootstrap, broker, environment, fresh_settings, start
from tests.trainers.make import RUN
from tests.trainers.replay.traffic import assembled

GROUPS = 2  # a window
WAIT_SECONDS = 600.0


def train(settings: Settings, folder: Path, model: Path, steps: int) -> float:
    """Trains the run; how many seconds its steps took."""
    done: list[TrainingStep] = []

    def handle(record: Record, message: Message) -> None:
        if isinstance(record, TrainingStep) and record.window.samples:
            done.append(record)

    follower = TopicFollower(settings, "training", handle, client_id="bench").start()
    flags = ["--window-groups", str(GROUPS), "--max-steps", str(steps), "--max-staleness", str(steps)]
    checkpoints = ["--checkpoints", str(folder / "checkpoints")]
    trainer = start(settings, "trainer", "grpo", "--model", str(model), "--run", RUN, *flags, *checkpoints)
    deadline = time.monotonic() + WAIT_SECONDS
    while len(done) < steps and time.monotonic() < deadline:
        time.sleep(0.2)
    trainer.terminate()
    trainer.wait(30)
    follower.close()
    assert len(done) == steps, f"{len(done)} of {steps} steps"
    return (done[-1].ended_at - done[0].started_at) / 1e6


def replay(settings: Settings, folder: Path, number: int) -> dict[str, Any]:
    """One replay's last line and its seconds, the start of the process included."""
    began = time.monotonic()
    command = [COMMAND, "replay", RUN, "--into", f"{settings.prefix}-{number}", "--json"]
    command += ["--checkpoints", str(folder / f"replay-{number}")]
    told = subprocess.run(command, env=environment(settings), stdout=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    steps = [line for line in lines if "identical" in line]
    return {
        "exit_code": told.returncode,
        "steps": len(steps),
        "identical": sum(step["identical"] is True for step in steps),
        "otherwise": lines[-1]["otherwise"],
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_bootstrap(parser)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--times", type=int, default=2)
    given = parser.parse_args()
    with broker(given.bootstrap) as (bootstrap, _), tempfile.TemporaryDirectory() as folder:
        settings = fresh_settings(bootstrap, 3)
        model = Path(folder) / "model"
        subprocess.run([COMMAND, "model", "create", str(model)], check=True, stdout=subprocess.DEVNULL)
        trajectories = assembled(settings, range(GROUPS * given.steps))
        seconds = train(settings, Path(folder), model, given.steps)
        replays = [replay(settings, Path(folder), number) for number in range(given.times)]
    print(json.dumps({"trajectories": trajectories, "run_seconds": round(seconds, 1), "replays": replays}))


if __name__ == "__main__":
    main()
