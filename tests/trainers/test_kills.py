"""A trainer that is killed wherever it happens to be: nothing of its run differs from one that nobody disturbed.

`HEADRACE_TRAINER_KILLS=30 pytest tests/trainers/test_kills.py` kills it so often, with more to train.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import read_state
from tests.trainers.outcomes import assert_exact
from tests.trainers.pipeline import (
    GROUP,
    learnt_undisturbed,
    loop,
    produce,
    run_until,
    synthetic,
    trained_at_least,
    training,
    triplets,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("HEADRACE_TRAINER_KILLS", "5"))
WINDOWS = 4 * KILLS
GROUPS = 2  # a window


def test_killed_at_random_moments(
    make_settings: Callable[..., Settings], make_model: Callable[..., Path], tmp_path: Path
) -> None:
    settings = make_settings(partitions=1)  # so that the log's order is the order of the windows
    model = make_model()
    produce(settings, synthetic(range(GROUPS * WINDOWS)))
    given = {
        "settings": {"bootstrap": settings.bootstrap, "prefix": settings.prefix, "partitions": settings.partitions},
        "model": str(model),
        "tmp": str(tmp_path),
        "kills": KILLS,
        "seed": 1,
    }
    command = [sys.executable, "-m", "tests.trainers.killed", json.dumps(given)]
    done = subprocess.run(command, cwd=ROOT, timeout=500, check=True, stdout=subprocess.PIPE, text=True)
    lives = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["killed"] for each in lives] == KILLS * [True], lives
    samples = GROUPS * GROUP
    run_until(settings, loop(settings, model, tmp_path), trained_at_least(WINDOWS * samples), 120.0)

    steps = [s for s in assert_exact(settings, model) if s.window.samples]
    assert [s.step for s in steps] == list(range(1, WINDOWS + 1))
    log = triplets(settings)
    trained = [[(p.partition, p.offset) for p in s.window.samples] for s in steps]
    assert trained == [sorted(log)[samples * n : samples * (n + 1)] for n in range(WINDOWS)]
    assert all(before.ended_at <= after.ended_at for before, after in pairwise(steps))
    state = steps[-1].state
    assert state is not None
    actual, expected = read_state(state).tensors, learnt_undisturbed(model, training(settings)[1], log).state().tensors
    assert actual.keys() == expected.keys()
    # Torch's random state is the process's own, and no step draws from it.
    assert all(torch.equal(actual[name], expected[name]) for name in expected if name != "rng")
