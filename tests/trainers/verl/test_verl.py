"""verl's step on Ray beside Headrace's own, and the whole trainer on a broker."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from headrace.connectors.engine.checkpoint import read_checkpoint, signature, verify
from headrace.schemas.records import TrainingStep
from headrace.streams.settings import Settings
from headrace.trainers.advantages.window import Scored, estimate
from headrace.trainers.batch import TokenRow
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.verl.learner import VerlLearner
from headrace.trainers.verl.process import VerlProcess
from tests.trainers.make import POLICY, RUN
from tests.trainers.pipeline import decided, produce, synthetic, training, triplets
from tests.trainers.test_trainer import published
from tests.trainers.verl.conftest import OBJECTIVE

pytestmark = [pytest.mark.verl, pytest.mark.slow, pytest.mark.timeout(600)]
START_SECONDS = 400.0


def rows(count: int, seed: int) -> list[TokenRow]:
    """One to three responses a row, with what the environment says between them, at three temperatures."""
    rng = np.random.default_rng(seed)
    made: list[TokenRow] = []
    for i in range(count):
        mask = np.zeros(0, dtype=np.bool_)
        for _ in range(int(rng.integers(1, 4))):
            mask = np.concatenate([mask, np.zeros(rng.integers(2, 9), np.bool_), np.ones(rng.integers(1, 6), np.bool_)])
        made.append(
            TokenRow(
                token_ids=rng.integers(3, 290, size=mask.size).astype(np.int32),
                loss_mask=mask,
                logprobs=rng.normal(-5.0, 0.5, size=mask.size).astype(np.float32),
                temperature=(1.0, 0.7, 1.3)[i % 3],
                advantage=float(rng.normal()),
                rollout=i,
            )
        )
    return made


def apart(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], prefix: str = "") -> float:
    """The largest distance, as a share of the largest component of its tensor."""
    names = [name for name in expected if name.startswith(prefix)]
    return max(float((actual[n] - expected[n]).abs().max() / expected[n].abs().max()) for n in names)


def test_a_step_is_that_of_the_own_learner(verl: VerlProcess, model_dir: Path) -> None:
    own = GrpoLearner(load_causal_lm(model_dir), OBJECTIVE)
    there = VerlLearner(verl, model_dir, OBJECTIVE)
    for seed in range(2):
        figures, expected = there.step(rows(63, seed), list), own.step(rows(63, seed))
        for name in ("loss", "grad_norm", "entropy", "ratio/mean", "ratio/k3", "mismatch/k3"):
            assert figures[name] == pytest.approx(expected[name], rel=1e-4), name
        assert figures["tokens/trained"] == expected["tokens/trained"]
    assert there.weights().keys() == own.weights().keys()
    assert apart(there.state(), own.state(), "first.") < 1e-5
    assert apart(there.state(), own.state(), "second.") < 1e-5
    # Adam divides by the gradient's size: where it is near epsilon, its rounding is a share of the step.
    assert max(float((a - own.weights()[n]).abs().max()) for n, a in there.weights().items()) < 0.05 * OBJECTIVE.lr
    assert there.steps == own.steps == 2


def test_it_goes_on_where_its_state_was_taken(verl: VerlProcess, model_dir: Path) -> None:
    first = VerlLearner(verl, model_dir, OBJECTIVE)
    first.step(rows(20, 0), list)
    weights, state, steps = first.weights(), first.state(), first.steps
    first.step(rows(20, 1), list)
    expected = first.weights() | first.state()
    again = VerlLearner(verl, model_dir, OBJECTIVE)
    again.restore(weights, state, steps)
    again.step(rows(20, 1), list)
    actual = again.weights() | again.state()
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], expected[name]) for name in expected)


@pytest.mark.parametrize("estimator", ["grpo", "dr_grpo", "rloo"])
def test_its_advantages_are_ours(verl: VerlProcess, estimator: str) -> None:
    groups = [[0.0, 1.0, 1.0, 0.0], [0.25, 0.5, -2.0], [1.0, 1.0]]
    one = np.ones(1, dtype=np.int64)
    ours = estimate([[Scored(np.array([r]), one) for r in group] for group in groups], estimator)
    theirs = verl.ask("advantages", groups=groups, estimator=estimator)["advantages"]
    flat = [float(a[0]) for group in ours for a in group]
    assert [a for group in theirs for a in group] == pytest.approx(flat, abs=1e-5)


@pytest.mark.kafka
def test_the_command_is_killed_and_goes_on(
    settings: Settings, verl_python: str, model_dir: Path, tmp_path: Path
) -> None:
    """Three windows with a kill between them: each trajectory once, versions that an engine takes, nothing left."""
    command = [str(Path(sys.executable).parent / "headrace"), "trainer", "verl", "--model", str(model_dir)]
    command += ["--run", RUN, "--policy", POLICY, "--window-groups", "2", "--checkpoints", str(tmp_path / "c")]
    command += ["--max-staleness", "1000", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix]
    produce(settings, synthetic(range(2)))
    first = start(command)
    try:
        wait_for_steps(settings, 1)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    wait_until_none_is_left(first.pid)
    produce(settings, synthetic(range(2, 6)))
    second = start(command)
    try:
        steps = wait_for_steps(settings, 3)
        second.terminate()
        assert second.wait(60) == 0
    finally:
        second.kill()
        second.wait()
    wait_until_none_is_left(second.pid)
    assert sorted(decided(steps)) == sorted(triplets(settings))
    weights = published(settings)
    assert [w.version for w in weights] == [0, 1, 2, 3]
    expected = signature(read_checkpoint(str(model_dir)))
    for w in weights[1:]:
        verify(read_checkpoint(w.uri, w.sha256), expected, frozenset())
    assert len({w.weights_id for w in weights}) == 4


def start(command: list[str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "it did not start; its log is on stderr"
    assert json.loads(line)["ready"] == "trainer"
    return process


def wait_for_steps(settings: Settings, count: int) -> list[TrainingStep]:
    deadline = time.monotonic() + START_SECONDS
    while len(steps := [s for s in training(settings)[1] if s.window.samples]) < count:
        assert time.monotonic() < deadline, f"only {len(steps)} steps"
        time.sleep(0.5)
    return steps


def wait_until_none_is_left(parent: int) -> None:
    """Every process of Ray and verl has the trainer's number in its environment."""
    deadline = time.monotonic() + 20
    while left := [p for p in Path("/proc").iterdir() if p.name.isdigit() and belongs(p, parent)]:
        assert time.monotonic() < deadline, [(p / "cmdline").read_text() for p in left]
        time.sleep(0.2)


def belongs(process: Path, parent: int) -> bool:
    try:
        return f"HEADRACE_VERL_PARENT={parent}\0".encode() in (process / "environ").read_bytes()
    except OSError:
        return False
