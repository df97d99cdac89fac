"""The socket's frames: whole whatever the pieces they come in, and what goes in comes out."""

import asyncio
import random
from typing import Any, cast

import pytest

from headrace.schemas.records import Reward
from headrace.streams.agent.resources import LLM, PromptTemplate, Resources
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.runner.children import frames
from headrace.streams.runner.children.process import died_of


class Wire:
    """Takes what a link writes."""

    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return False


def link(kinds: Any, got: list[Any]) -> tuple[frames.FrameLink, Wire]:
    wire = Wire()
    made = frames.FrameLink(kinds, got.append, lambda: None)
    made.connection_made(cast(asyncio.BaseTransport, wire))
    return made, wire


def test_frames_come_whole_whatever_the_pieces() -> None:
    got: list[Any] = []
    child, wire = link(frames.ToChild, [])
    parent, _ = link(frames.FromChild, got)
    reward = Reward(rollout_id="r", reward_id="1", primary=True, value=0.5, source="agent", at=1)
    said = [
        frames.Ready(),
        frames.Say(1, "t", b"k", b"\x00" * 70_000, [("h", b"\xff"), ("s", "text"), ("n", None)], -1),
        frames.Say(2, "t", None, b"", [], 3),
        frames.Done(status="succeeded", reward=reward, threads=3),
    ]
    for frame in said:
        child.send(frame)
    pieces = random.Random(1)
    left = wire.sent
    while left:
        size = pieces.choice([1, 3, 4, 5, 1000, 100_000])
        parent.data_received(left[:size])
        left = left[size:]
    assert got == said


def test_work_keeps_its_resources_in_their_order() -> None:
    named = {
        "prompt": PromptTemplate("{x}", "f-string"),
        "b": LLM("http://b/v1", "mb", {"temperature": 0.5, "stop": ["\n"]}, "KEY"),
        "a": LLM("http://a/v1", "ma"),
    }
    rollout = Rollout(rollout_id="r", attempt_id="r-1", input={"big": 1 << 80}, metadata={"k": "v"})
    got: list[Any] = []
    parent, wire = link(frames.FromChild, [])
    child, _ = link(frames.ToChild, got)
    parent.send(frames.work_of(rollout, '{"big": 1208925819614629174706176}', Resources(named, "res-1")))
    child.data_received(wire.sent)
    (work,) = got
    resources = frames.resources_of(work)
    assert dict(resources) == named
    assert list(resources) == ["prompt", "b", "a"]
    assert resources.resources_id == "res-1"
    assert work.rollout.metadata == {"k": "v"}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "ended with exit code 0"),
        (1, "ended with exit code 1"),
        (-11, "was killed by SIGSEGV"),
        (-9, "was killed by SIGKILL (out of memory?)"),
        (-60, "was killed by signal 60"),
    ],
)
def test_what_an_exit_code_says(code: int, said: str) -> None:
    assert died_of(code) == said
