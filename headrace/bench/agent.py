"""The agent of the store benchmark: `headrace runner headrace.bench.agent:store_agent`."""

from __future__ import annotations

import asyncio
import random
import string
from typing import Any

from headrace import emit_reward, operation, rollout
from headrace.bench.scenarios import work_of

DEPTH, BREADTH, KEY, VALUE = (1, 3), (2, 6), (3, 20), (5, 300)
# Attributes are cut out of one long text: to draw every letter would be most of what is measured.
LETTERS = "".join(random.choices(string.ascii_letters + string.digits, k=1 << 18))


@rollout
async def store_agent(task: dict[str, Any]) -> None:
    """Rounds of two steps that sleep, with rewards now and then; then a final step and a reward from 1 to 2."""
    name: str = task["task"]
    work = work_of(name, task["max_rounds"], task["sleep"])
    sleeps = iter(work.sleeps)
    for number, reward in enumerate(work.rewards):
        with operation(f"agent{number}"):
            with operation(f"round{number}_1") as step:
                await asyncio.sleep(next(sleeps))
                step.set(**attributes())
                if number == work.told:
                    step.set(task=name)
            with operation(f"round{number}_2") as step:
                await asyncio.sleep(next(sleeps))
                step.set(**attributes())
        if reward is not None:
            emit_reward(reward)
    with operation("final") as step:
        await asyncio.sleep(next(sleeps))
        step.set(**attributes())
    emit_reward(work.final_reward)


def attributes() -> dict[str, str]:
    """A random nested object, flattened: one to three levels of two to six keys each."""
    return _nested("", random.randint(*DEPTH))


def _nested(prefix: str, depth: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(random.randint(*BREADTH)):
        key = prefix + _text(*KEY)
        if depth > 1:
            found |= _nested(key + ".", depth - 1)
        else:
            found[key] = _text(*VALUE)
    return found


def _text(shortest: int, longest: int) -> str:
    start = random.randrange(len(LETTERS) - longest)
    return LETTERS[start : start + random.randint(shortest, longest)]
