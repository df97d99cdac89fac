"""Tasks that an agent spawns on the event loop: one that exits ends itself, not the process."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from headrace.streams.agent.errors import AgentError
from headrace.streams.agent.tracer import CURRENT

T = TypeVar("T")


class ExitedError(AgentError):
    """A task of an agent called `sys.exit()`; asyncio would end the event loop, and all other rollouts with it."""


def guard_spawned_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """From now on a task made within a rollout turns `SystemExit` into `ExitedError`, for whoever awaits it."""
    loop.set_task_factory(_make_task)


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T], **given: Any
) -> asyncio.Task[T]:
    context = given.get("context")
    tracer = CURRENT.get(None) if context is None else context.get(CURRENT)
    if tracer is not None and asyncio.iscoroutine(coroutine):
        coroutine = _guarded(coroutine)
    return asyncio.Task(coroutine, loop=loop, **given)


async def _guarded(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return await coroutine
    except SystemExit as exited:
        raise ExitedError(f"a task of the agent called sys.exit({exited.code!r})") from exited
