"""`Hook`: what a user wants done around every attempt."""

from typing import Any

import msgspec

from headrace.schemas.records import Span
from headrace.streams.agent.base import Agent
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import AttemptTracer


class RunnerFacts(msgspec.Struct, frozen=True):
    """The runner, as a hook sees it."""

    worker_id: str


class Hook:
    """Callbacks around an attempt, under Agent Lightning's names; override any of them, as coroutines or functions.

    The order is `on_rollout_start`, `on_trace_start`, the agent, `on_trace_end`, `on_rollout_end`. They run where the
    agent runs, in its context: emitters work in all of them, and what one sets in a `contextvars.ContextVar` the agent
    sees. A callback that raises, or takes longer than `--hook-timeout`, is logged and counted; the rollout goes on.
    Coroutines run on the runner's event loop and must not block it; functions run on a thread.
    """

    async def on_rollout_start(self, *, agent: Agent, runner: RunnerFacts, rollout: Rollout) -> None:
        """Before anything of the attempt."""

    async def on_trace_start(
        self, *, agent: Agent, runner: RunnerFacts, tracer: AttemptTracer, rollout: Rollout
    ) -> None:
        """The rollout's span has begun, the agent has not."""

    async def on_trace_end(self, *, agent: Agent, runner: RunnerFacts, tracer: AttemptTracer, rollout: Rollout) -> None:
        """The agent has returned, the rollout's span is open; not called for an agent that raised or was stopped."""

    async def on_rollout_end(self, *, agent: Agent, runner: RunnerFacts, rollout: Rollout, spans: list[Span]) -> None:
        """The attempt is over; its end is written after this. A stopped attempt's end may stand in the log already.

        Args:
            spans: what was written from here, acknowledged. The gateway's spans of the same attempt are not among them.
        """


CALLBACKS: tuple[str, ...] = ("on_rollout_start", "on_trace_start", "on_trace_end", "on_rollout_end")
Callback = Any
