"""A custom algorithm that is killed by SIGKILL around its nth transaction: `dying.py SETTINGS_JSON POINT N`."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

from headrace.streams.agent.resources import PromptTemplate
from headrace.streams.kafka.transactional.transactions import Transactions
from headrace.streams.settings import load_settings
from headrace.trainers.custom import Context, algorithm
from headrace.trainers.custom.decorator import Inputs
from headrace.trainers.custom.run import CustomRun
from headrace.trainers.custom.run import run_algorithm as run
from headrace.trainers.publish import Publisher

RUN = CustomRun(
    run_id="best-prompt",
    inputs=Inputs(datasets={"train_dataset": ["a", "b"]}, arguments={"prompts": ["{x}!", "{x}?"]}),
)


@algorithm
async def find_best(ctx: Context, train_dataset: list[str], prompts: list[str]) -> Any:
    """Tries prompts side by side, and publishes the better one."""

    async def score(branch: Context, prompt: str) -> float:
        resources_id = await branch.publish(PromptTemplate(prompt), name="prompt.candidates")
        ids = await branch.enqueue(train_dataset, mode="val", resources_id=resources_id)
        rewards = [r.reward for r in await branch.trajectories(ids)]
        return sum(rewards) / len(rewards)

    scores = await asyncio.gather(*(score(ctx.branch(f"prompt-{i}"), p) for i, p in enumerate(prompts)))
    drawn = await ctx.step("draw", os.getpid)
    best = max(zip(scores, prompts, strict=True))[1]
    await ctx.publish(PromptTemplate(best), name="prompt")
    return {"scores": scores, "best": best, "drawn": drawn}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: str, point: str, nth: int) -> None:
    published = 0
    publish, retrying = Publisher.publish, Transactions._retrying

    def counting(self: Publisher, records: Any, *rest: Any) -> None:
        nonlocal published
        published += 1
        if point == "before" and published == nth:
            die()
        publish(self, records, *rest)
        if point == "after" and published == nth:
            die()

    def watching(self: Transactions, what: str, call: Any) -> None:
        if point == "in" and published == nth and what == "commit":
            assert self._producer.flush(10) == 0
            die()
        retrying(self, what, call)

    Publisher.publish = counting  # type: ignore[method-assign]
    Transactions._retrying = watching  # type: ignore[method-assign]
    asyncio.run(run(load_settings(**json.loads(arguments)), find_best, RUN))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
