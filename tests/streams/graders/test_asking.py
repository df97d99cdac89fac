"""Functions that answer, fail, hang, and answer at last."""

import asyncio
import time
from typing import Any

import pytest

from headrace.streams.agent.errors import InvalidRewardError
from headrace.streams.graders.asking import Asker, GraderError, insist


def asker(function: Any, seconds: float = 5.0) -> Asker[Any]:
    def take(answer: Any, subject: Any) -> Any:
        if answer == "nonsense":
            raise InvalidRewardError("non_numeric_reward", answer)
        return answer, subject

    return Asker(function, take, seconds=seconds)


async def test_sync_and_async() -> None:
    async def later(subject: int) -> int:
        await asyncio.sleep(0)
        return subject + 1

    assert await asker(later).ask(1) == (2, 1)
    assert await asker(lambda subject: subject + 1).ask(1) == (2, 1)


async def test_one_that_fails_is_asked_again() -> None:
    tries: list[int] = []

    def flaky(subject: int) -> Any:
        tries.append(subject)
        if len(tries) == 1:
            raise SystemExit("its own")
        return "nonsense" if len(tries) == 2 else 0.5

    async def ask() -> Any:
        return await asker(flaky).ask(1)

    assert await insist(ask, 3, 0.001) == (0.5, 1)
    tries.clear()
    with pytest.raises(GraderError, match="nonsense"):
        await insist(ask, 2, 0.001)
    with pytest.raises(GraderError, match=r"grader_failed: ZeroDivisionError: division") as caught:
        await asker(lambda subject: 1 / 0).ask(1)
    assert caught.value.reason == "grader_failed"


async def test_one_that_hangs_is_left_behind() -> None:
    async def hangs(subject: int) -> None:
        await asyncio.sleep(60)

    for function in (hangs, lambda subject: time.sleep(1)):
        with pytest.raises(GraderError, match="no answer within") as caught:
            await asker(function, seconds=0.05).ask(1)
        assert caught.value.reason == "grader_timeout"


class Untold(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Odd:
    def __eq__(self, other: object) -> bool:
        raise TypeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


async def test_what_raises_where_it_is_looked_at_is_a_failed_try() -> None:
    def fails(subject: int) -> None:
        raise Untold

    def floods(subject: int) -> None:
        raise ValueError("x" * 10_000_000)

    for function, told in ((fails, "Untold"), (floods, "ValueError: xxx"), (lambda subject: Odd(), "no comparison")):
        with pytest.raises(GraderError, match=told) as caught:
            await asker(function).ask(1)
        assert caught.value.reason == "grader_failed"
        assert len(str(caught.value)) < 3000
