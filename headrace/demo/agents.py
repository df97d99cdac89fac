"""The demo's agents. Copy one as a start: it needs nothing but `headrace` and the `openai` client it is given."""

from __future__ import annotations

from typing import Any

from headrace import LLM, operation, rollout
from headrace.demo.tasks import GUESS, RIGHT, reply


@rollout
async def pick_digit(task: dict[str, str], llm: LLM) -> float:
    """Asks for a digit; 1.0 for exactly the right answer."""
    return await _exact_match(task, llm, max_tokens=4)


@rollout
async def addition(task: dict[str, str], llm: LLM) -> float:
    """Asks for the sum of two digits; 1.0 for exactly the right answer."""
    return await _exact_match(task, llm, max_tokens=4)


@rollout
async def guess(task: dict[str, str], llm: LLM) -> float:
    """Asks for a number and tells where it is after each guess; 1.0 if one of them is right."""
    client: Any = llm.client()
    messages = [{"role": "user", "content": task["prompt"]}]
    for _ in range(GUESS.guesses):
        answer = await client.chat.completions.create(model=llm.model, messages=messages, max_tokens=4)
        text = answer.choices[0].message.content or ""
        told = compare(task["answer"], text)
        if told is None or told == RIGHT:
            return float(told == RIGHT)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": told}]
    return 0.0


@operation
def compare(number: str, guess: str) -> str | None:
    """The tool of `guess`: a span of its own in the trace."""
    return reply(number, guess)


async def _exact_match(task: dict[str, str], llm: LLM, max_tokens: int) -> float:
    client: Any = llm.client()
    answer = await client.chat.completions.create(
        model=llm.model,
        messages=[{"role": "user", "content": task["prompt"]}],
        max_tokens=max_tokens,
    )
    text = answer.choices[0].message.content or ""
    return float(text.strip() == task["answer"])
