"""The agent of the machine that kills: what it does stands in its task."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace import LLM, emit_reward, rollout

SLEEPERS = ("slow", "long", "cancelled", "withdrawn")


class PlannedFailureError(Exception):
    """A failure that the task asks for."""


@rollout
async def agent(task: dict[str, Any], llm: LLM, rollout: Any) -> float | None:
    """Calls the model once or more; sleeps, fails or hangs where its task says so."""
    kind = task["kind"]
    reward = await _ask(task, llm)
    if kind == "talk":
        for _ in range(2):
            await emit_reward(reward, name="step")
            reward = await _ask(task, llm)
        await emit_reward(reward)
        return None
    if kind in SLEEPERS:
        await asyncio.sleep(task["seconds"])
        return await _ask(task, llm)
    if kind == "failing" or (kind == "flaky" and rollout.attempt <= task["failures"]):
        raise PlannedFailureError(f"attempt {rollout.attempt} fails as planned")
    if kind == "hanging" and rollout.attempt == 1:
        await asyncio.sleep(3600)
    return reward


async def _ask(task: dict[str, Any], llm: LLM) -> float:
    client: Any = llm.client()
    answer = await client.chat.completions.create(
        model=llm.model, messages=[{"role": "user", "content": task["prompt"]}], max_tokens=4
    )
    return float((answer.choices[0].message.content or "").strip() == task["answer"])
