"""The real command: killed in the middle, stopped politely, restarted in its place, with a broker that goes away."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from headrace import rollout
from headrace.streams.kafka.clients import make_admin

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

AGENT = """
import asyncio
from headrace import rollout

@rollout
async def agent(task):
    await asyncio.sleep(0.2 + (task % 7) / 20)
    return 1.0
"""


@pytest.fixture
def runner(tmp_path: Path, commands: Any) -> Any:
    """Starts a `headrace runner` of that agent."""
    (tmp_path / "agent.py").write_text(AGENT)

    def start(*more: str, **env: str) -> Any:
        return commands("runner", f"{tmp_path / 'agent.py'}:agent", "--concurrency", "50", *more, **env)

    return start


async def end(process: Any, number: int) -> int:
    process.send_signal(number)
    return await asyncio.to_thread(process.wait, 60)


def counting_ends(pipeline: Any) -> Counter[str]:
    """How many counting ends other than `lost` each rollout has."""
    return Counter(
        r
        for r, judge in pipeline.judges().items()
        for a in judge.attempts.values()
        if a.end is not None and a.end.type != "lost"
    )


def members(pipeline: Any) -> int:
    """Of the group that have partitions."""
    group = pipeline.settings.group("runner")
    admin = make_admin(pipeline.settings)  # a result dies with its client
    described: Any = admin.describe_consumer_groups([group])[group].result(20)
    return sum(bool(m.assignment and m.assignment.topic_partitions) for m in described.members)


async def test_a_killed_runner_loses_nothing_and_repeats_nothing(pipeline, runner, commands) -> None:
    commands("processor", "lifecycle")
    ids = pipeline.tasks(*range(600))
    first = runner()
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 100)
    await end(first, signal.SIGKILL)
    before = set(counting_ends(pipeline))
    assert len(before) < 600
    second = runner()
    judges = await pipeline.closed(ids)
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)
    assert all(j.ignored_ends == 0 for j in judges.values())
    again = [r for r in before if len(judges[r].attempts) > 1]
    assert again == []
    assert await end(second, signal.SIGTERM) == 0
    assert pipeline.committed() == 600


async def test_a_second_runner_takes_its_share_and_nothing_runs_twice(pipeline, runner) -> None:
    pipeline.tasks(*range(400))
    processes = [runner("--concurrency", "20")]
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 50)
    processes.append(runner("--concurrency", "20"))
    await pipeline.until(lambda: members(pipeline) == 2)  # it joins the group in the middle of the work
    ids = pipeline.tasks(*range(800))
    judges = await pipeline.closed(ids)
    workers = Counter(a.started.worker_id for j in judges.values() for a in j.attempts.values())
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)
    assert all(len(j.attempts) == 1 for j in judges.values())
    assert len(workers) == 2
    assert [await end(p, signal.SIGTERM) for p in processes] == [0, 0]


async def test_sigterm_finishes_what_runs_and_commits(pipeline, runner) -> None:
    pipeline.tasks(*range(400))
    process = runner()
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 20)
    assert await end(process, signal.SIGTERM) == 0
    judges = pipeline.judges()
    assert all(j.closed and j.closing.type == "succeeded" for j in judges.values())
    assert pipeline.committed() == len(judges)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_a_rolling_restart_of_static_members_moves_nothing_and_repeats_nothing(
    pipeline, protocol: str, caplog
) -> None:
    pipeline.settings = pipeline.settings.model_copy(update={"group_protocol": protocol})
    caplog.set_level("INFO")

    @rollout
    async def agent(task: Any) -> float:
        await asyncio.sleep(0.1)
        return 1.0

    def member(name: str) -> Any:
        return pipeline.runner(agent, worker_id=name, static=True, concurrency=2)

    def assignments(name: str) -> int:
        return sum(m.startswith(f"runner {name} works on partitions") for m in caplog.messages)

    def owned(*runners: Any) -> list[frozenset[int]]:
        return [r._dispatcher.owned for r in runners]

    ids = pipeline.tasks(*range(200))
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        one, two = await first.enter_async_context(member("m1")), await second.enter_async_context(member("m2"))
        await pipeline.until(
            lambda: (
                all(owned(one, two)) and sum(map(len, owned(one, two))) == 3 and assignments("m1") * assignments("m2")
            )
        )
        before = owned(one, two)
        for name, stack, other in (("m1", first, "m2"), ("m2", second, "m1")):
            seen, mine = assignments(other), assignments(name)
            await stack.aclose()
            again = await stack.enter_async_context(member(name))
            await pipeline.until(lambda name=name, mine=mine: assignments(name) > mine)
            assert owned(again) == [before[name == "m2"]]
            assert assignments(other) == seen, "the other member was rebalanced"
        judges = await pipeline.closed(ids)
    assert all(len(j.attempts) == 1 for j in judges.values())
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)


async def test_a_static_member_that_was_killed_gets_its_place_back(pipeline, runner, commands) -> None:
    commands("processor", "lifecycle")
    ids = pipeline.tasks(*range(300))
    arguments = ("--worker-id", "static-1", "--static")
    first = runner(*arguments)
    await pipeline.until(lambda: len(counting_ends(pipeline)) > 20)
    await end(first, signal.SIGKILL)
    second = runner(*arguments)  # the group still has the first, for a session time-out
    await pipeline.closed(ids)
    assert await end(second, signal.SIGTERM) == 0


async def test_a_rollout_longer_than_the_longest_poll_interval_is_run_once(pipeline, caplog) -> None:
    properties = {"max.poll.interval.ms": 6000, "session.timeout.ms": 6000}  # the least that the brokers take
    pipeline.settings = pipeline.settings.model_copy(update={"group_protocol": "classic", "kafka": properties})

    @rollout
    async def agent(task: Any) -> float:
        await asyncio.sleep(9 if task == 0 else 0)
        return 1.0

    ids = pipeline.tasks(*range(500))  # more than is fetched ahead, so that the partitions are paused
    async with pipeline.runner(agent, concurrency=1):
        judges = await pipeline.closed(ids)
    assert all(len(j.attempts) == 1 for j in judges.values())
    assert "put out of its group" not in caplog.text


async def test_a_broker_away_for_ten_seconds_loses_nothing(pipeline, kafka) -> None:
    if not kafka.pid:
        pytest.skip("the broker is not this suite's to stop")

    @rollout
    async def agent(task: Any) -> float:
        await asyncio.sleep(0.05)
        return 1.0

    ids = pipeline.tasks(*range(300))
    async with pipeline.runner(agent, concurrency=20):
        await pipeline.until(lambda: len(counting_ends(pipeline)) > 20)
        os.kill(kafka.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(10)
        finally:
            os.kill(kafka.pid, signal.SIGCONT)
        await pipeline.closed(ids)
    assert counting_ends(pipeline) == dict.fromkeys(ids, 1)
