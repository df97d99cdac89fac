"""verl's step on Ray beside Headrace's own, and the whole trainer on a broker."""

from pathlib import Path

import numpy as np
import pytest
import torch

from headrace.connectors.engine.checkpoint import read_checkpoint, signature, verify
from headrace.streams.settings import Settings
from headrace.trainers.advantages.window import Scored, estimate
from headrace.trainers.batch import TokenRow
from headrace.trainers.grpo.learner import GrpoLearner
from headrace.trainers.loop import TrainerLoop
from headrace.trainers.metrics.names import is_fixed, scalars
from headrace.trainers.models.loading import load_causal_lm
from headrace.trainers.settings import RunSettings
from headrace.trainers.verl.algorithm import Verl
from headrace.trainers.verl.learner import VerlLearner
from headrace.trainers.verl.process import VerlProcess
from headrace.trainers.verl.settings import VerlSettings
from tests.processes import put_away, ready, start, variables
from tests.trainers.make import POLICY, RUN
from tests.trainers.outcomes import published
from tests.trainers.pipeline import (
    decided,
    produce,
    run_until,
    synthetic,
    trained_at_least,
    training,
    triplets,
    window_settings,
)
from tests.trainers.verl.conftest import OBJECTIVE, left_of
from tests.waiting import until

# Ray gives its processes thirty seconds to start, whatever it is told.
pytestmark = [pytest.mark.alone, pytest.mark.verl, pytest.mark.slow, pytest.mark.timeout(600)]
START_SECONDS = 400.0
NAMES = {
    *("reward/mean", "reward/recent", "groups/count", "groups/size", "groups/zero_variance"),
    *("staleness/mean", "staleness/max", "ratio/mean", "ratio/max", "ratio/k3", "clip/fraction"),
    *("entropy", "loss", "grad_norm", "lr", "step/skipped", "tokens/trained", "rows/trained", "turns"),
    *("length/mean", "length/max", "outstanding", "idle/share"),
    *(f"seconds/{phase}" for phase in ("read", "rows", "train", "score", "update", "checkpoint", "publish", "step")),
}
FRESH_NAMES = {"mismatch/k3", "mismatch/alarm"}


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


@pytest.mark.kafka
def test_a_command_that_is_killed_leaves_nothing_and_another_process_goes_on(
    settings: Settings, verl_python: str, model_dir: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Three windows with a kill between them: each trajectory once, and versions that an engine takes."""
    command = ["trainer", "verl", "--model", str(model_dir), "--run", RUN, "--policy", POLICY, "--window-groups", "2"]
    command += ["--checkpoints", str(tmp_path / "c"), "--max-staleness", "1000", "--lr", str(OBJECTIVE.lr)]
    command += ["--entropy", str(OBJECTIVE.entropy), "--micro-batch-tokens", str(OBJECTIVE.micro_batch_tokens)]
    produce(settings, synthetic(range(2)))
    first = start(*command, env=variables(settings))
    try:
        assert ready(first)["ready"] == "trainer"
        until(lambda: sum(bool(s.window.samples) for s in training(settings)[1]) == 1, START_SECONDS, look=0.5)
    finally:
        put_away(first)  # by SIGKILL
    until(lambda: not left_of(first.pid), 20, what="something of Ray or verl outlives its trainer")
    produce(settings, synthetic(range(2, 6)))
    # Its workers are made now, and are those of the tests below.
    algorithm = Verl(OBJECTIVE, VerlSettings(), POLICY, request.getfixturevalue("verl"))
    run = RunSettings(run_id=RUN, policy=POLICY, model=model_dir, checkpoints=tmp_path / "c")
    run_until(settings, TrainerLoop(settings, run, window_settings(), algorithm), trained_at_least(24), START_SECONDS)
    steps = training(settings)[1]
    assert sorted(decided(steps)) == sorted(triplets(settings))
    for step in (s for s in steps if s.window.samples):
        # The weights that have sampled are those of the first step alone.
        expected = NAMES | FRESH_NAMES if step.step == 1 else NAMES
        assert set(step.metrics) == expected
        assert all(is_fixed(name) for name in scalars(step))
    weights = published(settings)
    assert [w.version for w in weights] == [0, 1, 2, 3]
    expected = signature(read_checkpoint(str(model_dir)))
    for w in weights[1:]:
        verify(read_checkpoint(w.uri, w.sha256), expected, frozenset())
    assert len({w.weights_id for w in weights}) == 4


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
