"""Figures of an evaluation, and agents that run without a broker."""

from itertools import combinations
from typing import Any

import pytest

from headrace import LLM, PromptTemplate, emit_message, emit_reward, rollout
from headrace.streams.agent.base import Agent
from headrace.trainers.baseline.fast import FastResult, run_fast
from headrace.trainers.baseline.report import Sample, default_ks, pass_at_k, report_of


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (6, 0, 2), (4, 4, 2), (5, 3, 4)])
def test_pass_at_k_is_the_share_of_subsets_with_one_that_passes(n: int, c: int, k: int) -> None:
    subsets = list(combinations(range(n), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(min(s) < c for s in subsets) / len(subsets))


def test_the_report() -> None:
    ended = "succeeded"
    tasks = [[Sample(ended, 1.0), Sample(ended, 0.0)], [Sample("failed", None), Sample(None, None)]]
    assert report_of(tasks, passing=1.0, ks=default_ks(2)) == {
        "tasks": 2,
        "samples": 4,
        "rewarded": 2,
        "reward": 0.5,
        "reward_zero": 0.25,
        "std": 0.5,
        "pass@1": 0.25,
        "pass@2": 0.5,
        "statuses": {"failed": 1, "succeeded": 2, "unfinished": 1},
    }
    assert report_of([[Sample("failed", None)]], passing=1.0, ks=[1])["reward"] is None
    assert default_ks(9) == [1, 2, 4, 8]


@rollout
async def templated(task: Any, prompt_template: PromptTemplate) -> float:
    emit_message("thinking")
    await emit_reward(0.25, name="style")
    return float(prompt_template.format(x=task) == "is 3")


@rollout
def emitting(task: Any, llm: LLM) -> None:
    if task == "bad":
        raise ValueError("no")
    emit_reward(0.5)
    emit_reward(0.75)


@rollout
async def hanging(task: Any) -> None:
    import asyncio

    await asyncio.Event().wait()


async def all_of(agent: Agent, inputs: list[Any], resources: dict[str, Any], **more: Any) -> list[FastResult]:
    found = [result async for result in run_fast(agent, inputs, resources, **more)]
    return sorted(found, key=lambda r: (r.task, r.sample))


async def test_agents_run_without_a_broker() -> None:
    first, second = await all_of(templated, [3, 4], {"p": PromptTemplate("is {x}")})
    assert (first.reward, second.reward) == (1.0, 0.0)
    assert first.rewards == {"style": 0.25, "primary": 1.0}
    assert first.spans == ["agentlightning.message"]


async def test_sync_agents_fail_and_emit_as_under_a_runner() -> None:
    good, bad = await all_of(emitting, ["good", "bad"], {"llm": LLM("http://127.0.0.1:1/v1", "m")}, samples=1)
    assert (good.status, good.reward, good.error) == ("succeeded", 0.75, None)
    assert (bad.status, bad.reward) == ("failed", None)
    assert bad.error is not None
    assert (bad.error.type, bad.error.message) == ("ValueError", "no")


async def test_one_that_hangs_times_out() -> None:
    (result,) = await all_of(hanging, [1], {}, timeout=0.01)
    assert (result.status, result.reward) == ("timeout", None)
