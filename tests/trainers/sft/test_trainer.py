"""Supervised fine-tuning on a real broker."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.demo.tinymodel.tokenizer import build_tokenizer, save_tokenizer
from headrace.schemas.records import Trajectory
from headrace.streams.settings import Settings
from headrace.trainers.loop import TrainerLoop
from headrace.trainers.settings import RunSettings
from headrace.trainers.sft.algorithm import Sft
from headrace.trainers.sft.settings import SftSettings
from headrace.trainers.sft.windows import ImitationWindows, ImitationWindowSettings
from tests.trainers.make import POLICY, RUN, trajectory
from tests.trainers.pipeline import decided, produce, run_until, trained_at_least, training, triplets

pytestmark = pytest.mark.kafka


def told(number: int, **fields: Any) -> Trajectory:
    """What a model without token ids has said."""
    messages = [{"role": "user", "content": f"{number}?"}, {"role": "assistant", "content": f"{number}!"}]
    conversations = json.dumps([{"span_id": "s", "choice": 0, "messages": messages}])
    alone: dict[str, Any] = {"rollout_id": f"told-{number}", "policy": None, "policy_version": None, "triplets": []}
    return trajectory(None, 0, **{**alone, "conversations": conversations, "final_reward": 1.0, **fields})


def loop(settings: Settings, model: Path, tmp_path: Path) -> TrainerLoop:
    run = RunSettings(run_id=RUN, policy=POLICY, model=model, checkpoints=tmp_path / "checkpoints")
    windows = ImitationWindowSettings(run_id=RUN, policy=POLICY, groups=4, min_reward=0.5)
    return TrainerLoop(settings, run, windows, Sft(SftSettings(lr=1e-2), POLICY), windows_type=ImitationWindows)


def test_recorded_and_told_answers_are_imitated_over_a_restart(
    settings: Settings, make_model: Callable[..., Path], tmp_path: Path
) -> None:
    model = make_model(vocab_size=384)
    save_tokenizer(build_tokenizer(["1?", "1!"]), model, 128)
    produce(settings, [told(n) for n in range(3)] + [trajectory("g", n) for n in range(2)])
    run_until(
        settings, loop(settings, model, tmp_path), lambda steps: trained_at_least(4)(steps) and len(decided(steps)) == 5
    )
    # Those that wait for a window, and the windows themselves, outlive the process.
    produce(settings, [told(n) for n in range(3, 6)] + [told(9, final_reward=0.25), told(10, conversations=None)])
    run_until(settings, loop(settings, model, tmp_path), lambda steps: len(decided(steps)) >= 7)
    produce(settings, [told(6)])
    run_until(settings, loop(settings, model, tmp_path), trained_at_least(8))
    _, steps = training(settings)
    log = triplets(settings)
    places = decided(steps)
    assert len(places) == len(set(places)) == len(log) == 11
    trained = [s for s in steps if s.window.samples]
    assert [s.policy_version for s in trained] == [1, 2]
    assert trained[0].metrics["nll"] > 0
    drops = Counter(d.reason for s in steps for d in s.window.dropped for _ in d.samples)
    assert drops == {"reward_below": 2, "no_triplets": 1}
