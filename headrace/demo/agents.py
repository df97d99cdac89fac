"""The demo's agents. Copy one as a start: it needs nothing but `headrace` and the `openai` client it is given."""

from __future__ import annotations

from typing import Any

from headrace import LLM, rollout


@rollout
async def pick_digit(task: dict[str, str], llm: LLM) -> float:
    """Asks for a digit; 1.0 for exactly the right answer."""
    return await _exact_match(task, llm, max_tokens=4)


@rollout
async def addition(task: dict[str, str], llm: LLM) -> float:
    """Asks for the sum of two digits; 1.0 for exactly the right answer."""
    return await _exact_match(task, llm, max_tokens=4)


async def _exact_match(task: dict[str, str], llm: LLM, max_tokens: int) -> float:
    client: Any = llm.client()
    answer = await client.chat.completions.create(
        model=llm.model,
        messages=[{"role": "user", "content": task["prompt"]}],
        max_tokens=max_tokens,
    )
    text = answer.choices[0].message.content or ""
    return float(text.strip() == task["answer"])
