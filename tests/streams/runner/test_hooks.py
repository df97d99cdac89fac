"""Hooks around a call of the agent, without a broker."""

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

from headrace import Hook, emit_message, rollout
from headrace.schemas.records import Span
from headrace.streams.agent.base import Agent
from headrace.streams.agent.hooks import RunnerFacts
from headrace.streams.agent.resources import Resources
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import AttemptTracer
from headrace.streams.runner.calling import FAILED, SUCCEEDED, LocalCall, Outcome
from headrace.streams.runner.errors import HookLoadError
from headrace.streams.runner.hooks import COUNTED, ERRORS, MOST_LEFT, SKIPPED, TIMEOUTS, Hooks, load_hook
from headrace.streams.runner.observing import Observers
from headrace.streams.runner.options import ObserverOptions
from headrace.streams.runner.threads import AgentThreads
from headrace.streams.tracing.names import TracerName
from tests.waiting import PATIENCE_SECONDS, eventually

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Memory:
    """A writer that acknowledges at once."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def send(self, record: Any) -> asyncio.Future[tuple[int, int]]:
        self.records.append(record)
        future: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
        future.set_result((0, 0))
        return future


class Recorded(Hook):
    """Says what it is called with."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.spans: list[Span] = []

    async def on_rollout_start(self, *, agent: Agent, runner: RunnerFacts, rollout: Rollout) -> None:
        VARIABLE.set("set by a hook")
        self.said.append(f"start {rollout.rollout_id} {runner.worker_id}")

    async def on_trace_start(self, **facts: Any) -> None:
        await asyncio.sleep(0)
        emit_message("from a hook")
        self.said.append("trace start")

    def on_trace_end(self, **facts: Any) -> None:  # a function is as good
        assert threading.current_thread() is not threading.main_thread()
        self.said.append("trace end")

    async def on_rollout_end(self, *, spans: list[Span], **facts: Any) -> None:
        self.spans = spans
        self.said.append("end")


def observers(*hooks: Any, seconds: float = 5.0, tracer: TracerName = TracerName.NONE) -> Observers:
    made = Observers(ObserverOptions(tracer), "w", alone=False).load()
    made.hooks = Hooks(list(hooks), RunnerFacts("w"), seconds, made.counts)
    made.counts.declare(COUNTED)
    return made


async def call(agent: Agent, around: Observers, *, stop: threading.Event | None = None) -> tuple[Outcome, Memory]:
    """The outcome of a call, which is stopped once `stop` is set."""
    writer = Memory()
    tracer = AttemptTracer(Rollout(rollout_id="r", attempt_id="r-1"), writer)
    done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    running = LocalCall(agent, tracer, Resources({}), AgentThreads(), done.set_result, around)
    if stop is not None:
        await eventually(stop.is_set)
        running.stop()
    outcome = await asyncio.wait_for(done, PATIENCE_SECONDS)
    await running.flush()
    running.close()
    return outcome, writer


@rollout
async def steps(task: Any) -> float:
    emit_message(VARIABLE.get())
    return 1.0


@rollout
def plain(task: Any) -> float:
    emit_message(VARIABLE.get())
    return 1.0


@pytest.mark.parametrize("agent", [steps, plain])
@pytest.mark.parametrize("tracer", list(TracerName)[:2])
async def test_the_order_and_the_context(agent: Agent, tracer: TracerName) -> None:
    hook = Recorded()
    outcome, writer = await call(agent, observers(hook, tracer=tracer))
    assert outcome.status == SUCCEEDED
    assert hook.said == ["start r w", "trace start", "trace end", "end"]
    said = [r.attributes for r in writer.records if r.name == "agentlightning.message"]
    assert said == ['{"message": "from a hook"}', '{"message": "set by a hook"}']
    assert [s.name for s in hook.spans] == [r.name for r in writer.records]
    assert (hook.spans[-1].name == "rollout") == (tracer is TracerName.OTEL)


@pytest.mark.parametrize("agent", [steps, plain])
async def test_hooks_that_raise_or_hang_cost_no_rollout(agent: Agent) -> None:
    release = threading.Event()

    class Broken(Hook):
        async def on_rollout_start(self, **facts: Any) -> None:
            raise SystemExit("a hook's own")

        async def on_trace_start(self, **facts: Any) -> None:
            while True:
                try:
                    await asyncio.sleep(10)
                except asyncio.CancelledError:
                    await asyncio.sleep(0.2)  # it takes its time
                    raise

        def on_trace_end(self, **facts: Any) -> None:
            release.wait()

        async def on_rollout_end(self, *, spans: list[Span]) -> None:  # does not take what it gets
            raise AssertionError

    hook = Recorded()
    around = observers(Broken(), hook, seconds=0.7)  # a pause of a busy machine is shorter
    outcome, _ = await call(agent, around)
    release.set()
    assert outcome.status == SUCCEEDED
    assert len(hook.said) == 4
    assert around.counts.values() == {ERRORS: 2, TIMEOUTS: 2, SKIPPED: 0}


async def test_an_agent_that_raises_or_is_stopped_comes_to_the_end_all_the_same() -> None:
    @rollout
    async def raises(task: Any) -> None:
        raise ValueError("no")

    began, release = threading.Event(), threading.Event()

    @rollout
    async def hangs(task: Any) -> None:
        began.set()
        await asyncio.sleep(100)

    @rollout
    def hangs_on_a_thread(task: Any) -> None:
        began.set()
        release.wait(1)

    for agent, stop in ((raises, None), (hangs, began), (hangs_on_a_thread, began)):
        hook = Recorded()
        began.clear()
        outcome, _ = await call(agent, observers(hook), stop=stop)
        assert outcome.status == FAILED
        assert hook.said == ["start r w", "trace start", "end"]


def test_loading(tmp_path: Any) -> None:
    file = tmp_path / "hooks_here.py"
    file.write_text("import headrace\nclass Mine(headrace.Hook):\n    pass\nnumber = 3\n")
    assert isinstance(load_hook(f"{file}:Mine"), Hook)
    with pytest.raises(HookLoadError, match="has none of on_rollout_start"):
        load_hook(f"{file}:number")


async def test_a_hook_that_hangs_every_time_is_let_alone_until_it_ends() -> None:
    release = threading.Event()

    class Hangs(Hook):
        def on_rollout_start(self, **facts: Any) -> None:
            release.wait()

    class Cancels(Hook):
        async def on_rollout_end(self, **facts: Any) -> None:
            raise asyncio.CancelledError

    around = observers(Hangs(), Cancels(), seconds=0.02)
    assert around.hooks is not None
    context = contextvars.copy_context()
    for _ in range(MOST_LEFT + 3):
        await around.hooks.call("on_rollout_start", context, steps)
    assert around.counts.values() == {ERRORS: 0, TIMEOUTS: MOST_LEFT, SKIPPED: 3}
    release.set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while around.counts.take():  # until it is called again, and ends in time
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
        await around.hooks.call("on_rollout_start", context, steps)
    await around.hooks.call("on_rollout_end", context, steps)
    assert around.counts.values()[ERRORS] == 1


async def test_one_that_is_stopped_in_its_last_hook_is_over_too() -> None:
    began = threading.Event()

    class Slow(Hook):
        async def on_rollout_end(self, **facts: Any) -> None:
            began.set()
            await asyncio.sleep(100)

    outcome, _ = await call(steps, observers(Slow(), seconds=100.0), stop=began)
    assert outcome.status == SUCCEEDED
