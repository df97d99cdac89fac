"""Graders that kill, block or cannot load their process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.records import Trajectory
from headrace.streams.graders.asking import GraderError
from headrace.streams.graders.child import GraderSetup
from headrace.streams.graders.process import GraderLoadError, IsolatedFunction
from headrace.streams.graders.rewards import GradingRules

GRADERS = """
import asyncio, os, time

async def judge(trajectory):
    if trajectory.input == "dies":
        os._exit(7)
    if trajectory.input == "blocks":
        time.sleep(600)
    if trajectory.input == "fails":
        raise ValueError("\\ud800")
    if trajectory.input == "exits":
        raise Exits
    await asyncio.sleep(0.1)
    return {"a": 1.0, "b": 2}

class Judge:
    pass

class Exits(Exception):
    def __str__(self):
        raise SystemExit
"""


def trajectory(text: str) -> Trajectory:
    return Trajectory(rollout_id=f"r-{text}", status="succeeded", input=f'"{text}"', assembled_at=0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graders_here.py"
    path.write_text(GRADERS)
    return path


def isolated(
    file: Path, seconds: float = 20.0, name: str = "judge", tries: int = 2, **options: Any
) -> IsolatedFunction:
    setup = GraderSetup(f"{file}:{name}", GradingRules("judge"), seconds)
    return IsolatedFunction(setup, tries=tries, first_wait=0.01, **options)


async def test_what_kills_its_process_is_found_and_costs_no_other_its_answer(file: Path) -> None:
    function = isolated(file)
    await function.start()
    try:
        names = ["one", "two", "dies", "three", "fails", "exits"]
        answers = await asyncio.gather(*(function.ask(trajectory(n)) for n in names), return_exceptions=True)
    finally:
        await function.close()
    one, two, dies, three, fails, exits = answers
    for name, rewards in (("one", one), ("two", two), ("three", three)):
        assert isinstance(rewards, list)
        assert [(r.reward_id, r.value) for r in rewards] == [
            (f"grader/judge/r-{name}/a", 1.0),
            (f"grader/judge/r-{name}/b", 2.0),
        ]
    assert isinstance(dies, GraderError)
    assert str(dies) == "grader_died: the process that ran the grader ended with exit code 7"
    assert isinstance(fails, GraderError)
    assert str(fails) == "grader_failed: ValueError: \\ud800"
    assert str(exits) == "grader_failed: Exits: its message cannot be told"


async def test_one_that_blocks_its_event_loop_is_killed_and_alone_is_to_blame(file: Path) -> None:
    function = isolated(file, seconds=1.5, grace=0.3, tries=1)
    await function.start()
    try:
        blocked, well = await asyncio.gather(
            function.ask(trajectory("blocks")), function.ask(trajectory("one")), return_exceptions=True
        )
    finally:
        await function.close()
    assert isinstance(blocked, GraderError)
    assert blocked.reason == "grader_timeout"
    assert isinstance(well, list)


async def test_a_function_that_cannot_be_loaded(file: Path) -> None:
    for name, told in (("Judge", "is no function"), ("nobody", "has no 'nobody'")):
        with pytest.raises(GraderLoadError, match=told):
            await isolated(file, name=name).start()
