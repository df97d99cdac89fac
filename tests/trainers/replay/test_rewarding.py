"""Another reward: what a function may answer, and what is said of one that fails."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.errors import HeadraceError
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.reassembly import ReplayedTrajectory
from headrace.trainers.replay.rewarding import RewardFunction
from tests.trainers.make import trajectory

CODE = """
    import asyncio, math, time

    def doubled(trajectory):
        return 2 * trajectory.final_reward

    async def later(trajectory):
        await asyncio.sleep(0.01)
        return trajectory.final_reward > 0

    def dimensions(trajectory):
        return {"helpful": 0.5, "brief": 1}

    def none(trajectory):
        return None

    def raises(trajectory):
        if trajectory.rollout_id == "g-1":
            raise KeyError("answer")
        return 0.0

    def nan(trajectory):
        return math.nan

    def text(trajectory):
        return "0.5"

    def hangs(trajectory):
        time.sleep(30)

    async def blocks(trajectory):
        time.sleep(3)

    VALUE = 3
"""
Make = Callable[..., RewardFunction]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    file = tmp_path / "replay_rewards.py"
    file.write_text(textwrap.dedent(CODE))
    made: list[RewardFunction] = []

    def named(name: str, *, seconds: float = 5.0, primary_key: str | None = None) -> RewardFunction:
        made.append(RewardFunction(f"{file}:{name}", seconds=seconds, primary_key=primary_key))
        return made[-1]

    yield named
    for function in made:
        function.close()


SUBJECTS = [ReplayedTrajectory(trajectory("g", n), RolloutRecords(f"g-{n}")) for n in range(3)]


def test_numbers_and_none(make: Make) -> None:
    assert [[r.value for r in rewards] for rewards in make("doubled")(SUBJECTS)] == [[0.0], [2.0], [4.0]]
    (first, *_) = make("later")(SUBJECTS)
    assert [(r.name, r.primary, r.value, r.source) for r in first] == [("later", True, 0.0, "grader")]
    assert make("none")(SUBJECTS) == [[], [], []]


def test_dimensions_need_to_know_which_is_the_reward(make: Make) -> None:
    (rewards, *_) = make("dimensions", primary_key="helpful")(SUBJECTS)
    assert {(r.name, r.primary, r.value) for r in rewards} == {("helpful", True, 0.5), ("brief", False, 1.0)}
    with pytest.raises(ReplayError, match=r"dimensions \(brief, helpful\): say with --primary-key"):
        make("dimensions")(SUBJECTS)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", "rollout g-1: KeyError: 'answer'"),
        ("nan", "non_finite_reward"),
        ("text", "non_numeric_reward"),
        ("hangs", r"no answer within 0.1 s \(--reward-timeout\)"),
    ],
)
def test_a_function_that_fails(make: Make, name: str, why: str) -> None:
    with pytest.raises(ReplayError, match=why):
        make(name, seconds=0.1 if name == "hangs" else 5.0)(SUBJECTS)


def test_an_async_function_that_blocks_its_loop(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.trainers.replay.rewarding.BLOCKED_SECONDS", 0.3)
    with pytest.raises(ReplayError, match="blocks its event loop"):
        make("blocks", seconds=0.1)(SUBJECTS)


@pytest.mark.parametrize("name", ["missing", "VALUE"])
def test_what_is_no_function(make: Make, name: str) -> None:
    with pytest.raises(HeadraceError, match=name):
        make(name)


def test_whoever_waits_for_it_can_be_stopped(make: Make) -> None:
    with pytest.raises(ReplayError, match="nothing was written"):
        make("hangs", seconds=20.0)(SUBJECTS, lambda: True)
