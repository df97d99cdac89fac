"""Dev mode: an agent over tasks in this process, without a broker; what it says is kept in memory."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.schemas.records import ErrorInfo, Record, Reward, Span
from headrace.streams.agent.base import Agent
from headrace.streams.agent.emit import returned_reward
from headrace.streams.agent.resources import Resource, Resources
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import CURRENT, AttemptTracer, Position
from headrace.streams.runner.calling import FAILED, SUCCEEDED, TIMEOUT, error_info
from headrace.streams.runner.threads import AgentThreads


@dataclass(frozen=True, slots=True, kw_only=True)
class FastResult:
    """One rollout.

    Attributes:
        task: number of its task, from 0.
        sample: which of the task's samples, from 0.
        status: succeeded, failed or timeout.
        reward: the last primary one; None where there is none.
        spans: names of the spans that the agent wrote, in their order.
    """

    task: int
    sample: int
    status: str
    reward: float | None
    rewards: Mapping[str, float]
    spans: Sequence[str]
    error: ErrorInfo | None


class _Memory:
    """The tracer's writer."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def send(self, record: Record) -> asyncio.Future[Position]:
        self.records.append(record)
        future: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        future.set_result((0, len(self.records) - 1))
        return future


async def run_fast(
    agent: Agent,
    inputs: Sequence[Any],
    resources: Mapping[str, Resource],
    *,
    samples: int = 1,
    mode: str = "val",
    concurrency: int = 8,
    timeout: float | None = None,
) -> AsyncIterator[FastResult]:
    """Runs the agent on each input `samples` times; results as they come.

    Args:
        resources: by name, the same for every rollout.
        timeout: seconds of a rollout.
    """
    threads = AgentThreads()
    room = asyncio.Semaphore(concurrency)

    async def one(task: int, sample: int) -> FastResult:
        async with room:
            rollout_id = f"fast-{task}-{sample}"
            rollout = Rollout(
                rollout_id=rollout_id,
                attempt_id=f"{rollout_id}-1",
                input=inputs[task],
                mode=mode,
                group_size=samples,
                sample_index=sample,
            )
            return await _run(agent, rollout, Resources(resources), threads, timeout, task, sample)

    jobs = [asyncio.ensure_future(one(t, s)) for t in range(len(inputs)) for s in range(samples)]
    try:
        for done in asyncio.as_completed(jobs):
            yield await done
    finally:
        for job in jobs:
            job.cancel()


async def _run(
    agent: Agent,
    rollout: Rollout,
    resources: Resources,
    threads: AgentThreads,
    timeout: float | None,
    task: int,
    sample: int,
) -> FastResult:
    memory = _Memory()
    tracer = AttemptTracer(rollout, memory)
    CURRENT.set(tracer)  # the context is this rollout's own: each is a task of the event loop
    rewards: list[Reward] = []
    status, error = SUCCEEDED, None
    try:
        value = await asyncio.wait_for(_called(agent, rollout, resources, threads), timeout)
        if value is not None:
            rewards.append(returned_reward(tracer, value))
    except TimeoutError as late:
        status, error = TIMEOUT, error_info(late)
    except Exception as raised:  # whatever an agent raises ends its rollout and nothing else
        status, error = FAILED, error_info(raised)
    tracer.close()
    rewards = [record for record in memory.records if isinstance(record, Reward)] + rewards
    return FastResult(
        task=task,
        sample=sample,
        status=status,
        reward=next((r.value for r in reversed(rewards) if r.primary), None),
        rewards={r.name or "primary": r.value for r in rewards},
        spans=[record.name for record in memory.records if isinstance(record, Span)],
        error=error,
    )


async def _called(agent: Agent, rollout: Rollout, resources: Resources, threads: AgentThreads) -> Any:
    """What the agent returns; a sync one runs on a thread, which is left behind when it hangs."""
    if agent.is_async():
        return await cast(Awaitable[Any], agent.call(rollout.input, resources, rollout))
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def call() -> None:
        try:
            value, error = agent.call(rollout.input, resources, rollout), None
        except BaseException as raised:  # as for an async agent
            value, error = None, raised
        loop.call_soon_threadsafe(tell, value, error)

    threads.submit(contextvars.copy_context(), call)
    return await done
