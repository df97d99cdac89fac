"""The tracer on OpenTelemetry's SDK, with attempts whose records are kept in memory."""

import asyncio
import contextvars
import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace as otel_trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor

from headrace import emit_message, emit_reward, operation, reward
from headrace.schemas.records import Reward, Span
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import CURRENT, AttemptTracer
from headrace.streams.counts import Counts
from headrace.streams.tracecontext import attempt_trace_id
from headrace.streams.tracing.attempt import LATE, REWARDS_REFUSED, TRACED, UNATTRIBUTED, AttemptTrace
from headrace.streams.tracing.otel import OtelTracing

COUNTS = Counts()
TRACING = OtelTracing(COUNTS)


class Memory:
    """A writer that acknowledges at once, or when it is told to."""

    def __init__(self, *, slow: bool = False) -> None:
        self.records: list[Any] = []
        self.futures: list[asyncio.Future[tuple[int, int]]] = []
        self.slow = slow

    def send(self, record: Any) -> asyncio.Future[tuple[int, int]]:
        self.records.append(record)
        future: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
        self.futures.append(future)
        if not self.slow:
            future.set_result((0, 0))
        return future

    def acknowledge(self) -> None:
        for future in self.futures:
            if not future.done():
                future.set_result((0, 0))

    def spans(self) -> dict[str, Span]:
        return {r.name: r for r in self.records if isinstance(r, Span)}


def begin(rollout_id: str, writer: Memory) -> tuple[AttemptTracer, AttemptTrace]:
    """An attempt begins in this context, as a runner begins it."""
    tracer = AttemptTracer(Rollout(rollout_id=rollout_id, attempt_id=f"{rollout_id}-1", mode="train"), writer)
    CURRENT.set(tracer)
    return tracer, TRACING.begin(tracer)


async def finish(tracer: AttemptTracer, trace: AttemptTrace) -> None:
    trace.end(None)
    await asyncio.sleep(0)  # what threads have posted
    await tracer.flush()
    tracer.close()
    TRACING.close(trace)


def library() -> otel_trace.Tracer:
    return otel_trace.get_tracer("library", "1.2")


async def test_attempts_side_by_side_keep_their_spans_apart() -> None:
    async def attempt(number: int) -> Memory:
        writer = Memory()
        tracer, trace = begin(f"side-{number}", writer)

        async def step(name: str) -> None:
            with library().start_as_current_span(name, attributes={"number": number}):
                await asyncio.sleep(0.001 * (number % 3))
                with library().start_as_current_span(f"{name} inner"):
                    await asyncio.sleep(0)

        await asyncio.gather(step("a"), step("b"))
        await asyncio.to_thread(lambda: library().start_span("thread").end())
        await finish(tracer, trace)
        return writer

    writers = await asyncio.gather(*(asyncio.create_task(attempt(n)) for n in range(20)))
    for number, writer in enumerate(writers):
        spans = writer.spans()
        assert set(spans) == {"rollout", "a", "a inner", "b", "b inner", "thread"}
        assert {s.rollout_id for s in spans.values()} == {f"side-{number}"}
        assert {s.trace_id for s in spans.values()} == {attempt_trace_id(f"side-{number}", f"side-{number}-1")}
        root = spans["rollout"]
        assert root.parent_id is None
        assert spans["a"].parent_id == spans["b"].parent_id == spans["thread"].parent_id == root.span_id
        assert spans["b inner"].parent_id == spans["b"].span_id
        assert json.loads(spans["a"].attributes) == {"number": number}
        assert json.loads(spans["a"].scope) == {"name": "library", "version": "1.2"}
        assert writer.records[-1] is root
        assert all(s.source == "runner" and s.start <= s.end for s in spans.values())
        assert len({s.sequence for s in spans.values()}) == len(spans)


async def test_emitters_and_operations_stand_in_the_librarys_tree() -> None:
    writer = Memory()
    tracer, trace = begin("tree", writer)
    with operation("plan") as plan:
        with library().start_as_current_span("library step") as step:
            emit_message("inside")
            step_id = f"{step.get_span_context().span_id:016x}"
        emit_message("after", {"n": 1})
    emit_message("outside")
    await finish(tracer, trace)
    messages = [r for r in writer.records if r.name == "agentlightning.message"]
    assert [m.parent_id for m in messages] == [step_id, plan.span_id, writer.spans()["rollout"].span_id]
    assert writer.spans()["library step"].parent_id == plan.span_id
    assert writer.spans()["plan"].parent_id == writer.spans()["rollout"].span_id
    assert {r.trace_id for r in writer.records} == {tracer.trace_id}


async def test_a_reward_waits_for_the_spans_of_the_calls_that_it_judges() -> None:
    writer = Memory(slow=True)
    tracer, trace = begin("judged", writer)
    library().start_span("call").end()
    sent = emit_reward(0.5)
    await asyncio.sleep(0.01)
    assert [type(r) for r in writer.records] == [Span]
    writer.acknowledge()
    writer.slow = False
    await sent
    given = writer.records[1]
    assert isinstance(given, Reward)
    assert int(given.metadata["sequence"]) > writer.records[0].sequence
    await finish(tracer, trace)


async def test_rewards_in_spans_become_rewards_and_what_is_none_is_counted() -> None:
    writer = Memory()
    tracer, trace = begin("spans-with-rewards", writer)
    before = COUNTS.values().get(REWARDS_REFUSED, 0)
    library().start_span("agentlightning.reward", attributes={"reward": 0.75}).end()
    library().start_span("agentlightning.reward", attributes={"reward": "much"}).end()
    await finish(tracer, trace)
    assert [(r.value, r.primary) for r in writer.records if isinstance(r, Reward)] == [(0.75, True)]
    assert COUNTS.values()[REWARDS_REFUSED] == before + 1


async def test_what_ends_or_begins_after_the_attempt_is_late_and_what_is_nobodys_is_counted() -> None:
    writer = Memory()
    tracer, trace = begin("late", writer)
    before = COUNTS.values()
    left_open = library().start_span("left open")
    inside = contextvars.copy_context()
    await finish(tracer, trace)
    left_open.end()
    inside.run(lambda: library().start_span("begun afterwards").end())
    contextvars.Context().run(lambda: library().start_span("nobody's").end())
    after = COUNTS.values()
    assert set(writer.spans()) == {"rollout"}
    assert after[LATE] == before.get(LATE, 0) + 2
    assert after[UNATTRIBUTED] == before.get(UNATTRIBUTED, 0) + 1
    assert after[TRACED] == before.get(TRACED, 0) + 1


async def test_a_trace_of_its_own_and_a_thread_without_context_belong_to_the_attempt_where_that_is_known() -> None:
    writer = Memory()
    tracer, trace = begin("own-trace", writer)
    own = library().start_span("own trace", context=Context())
    with ThreadPoolExecutor(1) as pool:  # no context goes over
        linked = otel_trace.set_span_in_context(own)
        pool.submit(lambda: library().start_span("below", context=linked).end()).result()
    own.end()
    await finish(tracer, trace)
    spans = writer.spans()
    assert spans["own trace"].parent_id is None
    assert spans["own trace"].trace_id != tracer.trace_id
    assert "below" in spans


async def test_a_child_that_runs_one_attempt_knows_whose_every_span_is() -> None:
    counts = Counts()
    alone = OtelTracing(counts, alone=True)
    writer = Memory()
    tracer = AttemptTracer(Rollout(rollout_id="alone", attempt_id="alone-1"), writer)
    trace = alone.begin(tracer)
    contextvars.Context().run(lambda: library().start_span("bare thread").end())
    trace.end(None)
    await tracer.flush()
    alone.close(trace)
    assert set(writer.spans()) == {"rollout", "bare thread"}


async def test_a_judge_inside_a_reward_function_stands_below_the_reward_operation() -> None:
    writer = Memory()
    tracer, trace = begin("judge", writer)

    @reward(primary_key="quality")
    async def judge(answer: str) -> dict[str, float]:
        library().start_span("chat judge").end()
        return {"quality": 1.0, "length": float(len(answer))}

    assert await judge("abc") == {"quality": 1.0, "length": 3.0}
    await finish(tracer, trace)
    spans = writer.spans()
    assert spans["chat judge"].parent_id == spans["agentlightning.reward"].span_id
    given = [(r.name, r.primary, r.value) for r in writer.records if isinstance(r, Reward)]
    assert given == [("quality", True, 1.0), ("length", False, 3.0)]


async def test_what_a_fork_of_the_agent_traces_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Memory()
    tracer, trace = begin("forked", writer)
    with monkeypatch.context() as fork, ThreadPoolExecutor(1) as pool:
        fork.setattr("os.getpid", lambda: 1)
        inside = contextvars.copy_context()
        pool.submit(lambda: inside.run(lambda: library().start_span("in the fork").end())).result()
    await finish(tracer, trace)
    assert set(writer.spans()) == {"rollout"}
    assert "'in the fork' of attempt forked-1 is not recorded: this process is a fork" in caplog.text


async def test_a_processor_of_the_users_that_fails_leaves_nothing_behind() -> None:
    counts = Counts()
    tracing = OtelTracing(counts)
    tracing.install()

    def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError("the user's own")

    class Failing(SpanProcessor):
        on_start = failing

    provider: Any = otel_trace.get_tracer_provider()
    processors = provider._active_span_processor
    kept = processors._span_processors
    provider.add_span_processor(Failing())
    try:
        with pytest.raises(RuntimeError, match="the user's own"):
            tracing.begin(AttemptTracer(Rollout(rollout_id="failing", attempt_id="failing-1"), Memory()))
    finally:
        processors._span_processors = kept
    assert counts.values() == {LATE: 1}


async def test_a_failed_attempt_says_so_on_its_root() -> None:
    from headrace.schemas.records import ErrorInfo

    writer = Memory()
    tracer, trace = begin("failed", writer)
    trace.end(ErrorInfo(type="ValueError", message="no"))
    trace.end(None)  # once only
    await finish(tracer, trace)
    (root,) = writer.records
    assert (root.status.code, root.status.message) == ("ERROR", "ValueError: no")


async def test_odd_values_survive_and_a_span_that_cannot_be_written_fails_nobody() -> None:
    writer = Memory()
    tracer, trace = begin("odd", writer)
    span = library().start_span("odd \ud800", attributes={"nan": float("nan"), "bytes": b"\x00", "half": "\ud800"})
    span.add_event("event", {"k": (1, 2)}, timestamp=5)
    span.end()
    await finish(tracer, trace)
    record = next(iter(writer.spans().values()))
    attributes = json.loads(record.attributes)
    assert attributes["nan"] == {"doubleValue": "NaN"}
    assert json.loads(record.events) == [{"name": "event", "time": 5, "attributes": {"k": [1, 2]}}]
    record.name.encode()
    record.attributes.encode()


@pytest.mark.parametrize("sampled", [True, False])
def test_a_users_provider_is_joined_and_never_replaced(sampled: bool) -> None:
    code = textwrap.dedent(f"""
        import asyncio
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
        from tests_otel import Memory
        from headrace.streams.agent.rollout_facts import Rollout
        from headrace.streams.agent.tracer import AttemptTracer
        from headrace.streams.counts import Counts
        from headrace.streams.tracing.otel import OtelTracing

        own, exported = TracerProvider(sampler=ALWAYS_ON if {sampled} else ALWAYS_OFF), InMemorySpanExporter()
        own.add_span_processor(SimpleSpanProcessor(exported))
        trace.set_tracer_provider(own)

        async def main():
            tracing, writer = OtelTracing(Counts()), Memory()
            tracing.install()
            tracer = AttemptTracer(Rollout(rollout_id="r", attempt_id="r-1"), writer)
            begun = tracing.begin(tracer)
            trace.get_tracer("x").start_span("step").end()
            begun.end(None)
            await tracer.flush()
            tracing.close(begun)
            assert trace.get_tracer_provider() is own
            print(sorted(writer.spans()), sorted(s.name for s in exported.get_finished_spans()))

        asyncio.run(main())
    """)
    loader = f"import importlib.util as u, sys; s = u.spec_from_file_location('tests_otel', {__file__!r}); " + (
        "m = u.module_from_spec(s); sys.modules['tests_otel'] = m; s.loader.exec_module(m)\n"
    )
    # The module makes a provider-less tracing object on import, which installs nothing.
    answer = subprocess.run([sys.executable, "-c", loader + code], capture_output=True, text=True, timeout=60)
    expected = "['rollout', 'step'] ['rollout', 'step']\n" if sampled else "[] []\n"
    assert answer.stdout == expected, answer.stderr
