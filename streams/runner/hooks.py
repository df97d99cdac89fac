"""Hooks as a runner calls them: what one raises, or hangs in, is its own affair."""

import asyncio
import contextvars
import inspect
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from headrace.streams.agent.base import Agent
from headrace.streams.agent.hooks import CALLBACKS, Hook, RunnerFacts
from headrace.streams.counts import Counts
from headrace.streams.kafka.client_log import Seldom
from headrace.streams.runner.errors import HookLoadError
from headrace.streams.runner.loading import load_object
from headrace.streams.runner.threads import AgentThreads

log = logging.getLogger(__name__)
log.addFilter(Seldom())

ERRORS = "hook_errors"
TIMEOUTS = "hook_timeouts"
SKIPPED = "hook_skipped"
COUNTED = (ERRORS, TIMEOUTS, SKIPPED)
MOST_LEFT = 16
"""Calls of one callback that may hang at once, each with a thread of its own, or a task that takes no cancellation."""


def load_hook(spec: str) -> Any:
    """The hook of a spec: a `Hook` class (made without arguments), an instance, or anything with its callbacks.

    Raises:
        HookLoadError: it is none.
        AgentLoadError: it cannot be imported.
    """
    found = load_object(spec, "my_hooks.py:Watch")
    if isinstance(found, type):
        found = found()
    if not any(callable(getattr(found, name, None)) for name in CALLBACKS):
        raise HookLoadError(f"--hook {spec}: it has none of {', '.join(CALLBACKS)}; derive it from headrace.Hook")
    return found


class Hooks:
    """Calls hooks, one after another. On the event loop."""

    def __init__(self, hooks: list[Any], runner: RunnerFacts, seconds: float, counts: Counts) -> None:
        self._callbacks = {name: [c for hook in hooks if (c := _own(hook, name)) is not None] for name in CALLBACKS}
        self._runner = runner
        self._seconds = seconds
        self._counts = counts
        self._threads = AgentThreads()
        self._left: Counter[int] = Counter()  # calls that hang, by the id of their callback

    async def call(self, name: str, context: contextvars.Context, agent: Agent, **facts: Any) -> None:
        """Calls a callback of every hook that has it; what they raise is logged, and what hangs is left behind.

        Args:
            context: the agent's.
        """
        for callback in self._callbacks[name]:
            if self._left[id(callback)] >= MOST_LEFT:
                self._counts.add(SKIPPED)
                log.error("Hook %s is not called while %d calls of it hang", name, MOST_LEFT)
                continue
            call = self._start(callback, context, {"agent": agent, "runner": self._runner, **facts})
            try:
                await asyncio.wait({call}, timeout=self._seconds)
            except asyncio.CancelledError:
                self._leave(callback, call)
                raise
            if not call.done():
                self._leave(callback, call)
                self._counts.add(TIMEOUTS)
                log.error("Hook %s takes longer than %g s (--hook-timeout), and is left behind", name, self._seconds)
            elif (error := asyncio.CancelledError() if call.cancelled() else call.result()) is not None:
                self._counts.add(ERRORS)
                log.error("Hook %s has failed", name, exc_info=error)

    def _leave(self, callback: Callable[..., Any], call: "asyncio.Future[BaseException | None]") -> None:
        """What goes on when nobody waits for it any more counts until it ends."""
        if isinstance(call, asyncio.Task):
            call.cancel()
        self._left[id(callback)] += 1
        call.add_done_callback(lambda _: self._left.subtract([id(callback)]))

    def _start(
        self, callback: Callable[..., Any], context: contextvars.Context, facts: dict[str, Any]
    ) -> "asyncio.Future[BaseException | None]":
        loop = asyncio.get_running_loop()
        if inspect.iscoroutinefunction(callback):
            return loop.create_task(_guarded(callback, facts), context=context)
        done: asyncio.Future[BaseException | None] = loop.create_future()

        def tell(error: BaseException | None) -> None:
            if not done.done():
                done.set_result(error)

        def run() -> None:
            error: BaseException | None = None
            try:
                callback(**facts)
            except BaseException as raised:  # whatever a hook raises, SystemExit included, is its own affair
                error = raised
            with suppress(RuntimeError):  # a thread that was left behind outlives the event loop
                loop.call_soon_threadsafe(tell, error)

        self._threads.submit(context.copy(), run)  # two threads cannot be in one context
        return done


async def _guarded(callback: Callable[..., Any], facts: dict[str, Any]) -> BaseException | None:
    try:
        await callback(**facts)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # an event loop ends with a task's SystemExit
        return error
    return None


def _own(hook: Any, name: str) -> Callable[..., Any] | None:
    """The callback, unless it is `Hook`'s own, which does nothing."""
    callback = getattr(hook, name, None)
    if callback is None or getattr(cast(Any, type(hook)), name, None) is getattr(Hook, name):
        return None
    return callback
