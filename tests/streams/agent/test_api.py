"""The public names, the decorator, resources, and the shared clients against a real HTTP server."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import (
    LLM,
    PromptTemplate,
    Resources,
    emit_exception,
    emit_message,
    emit_reward,
    operation,
    reward,
    rollout,
)
from headrace.streams.agent import emit
from headrace.streams.agent.clients import close_async_client
from headrace.streams.agent.errors import (
    AgentError,
    AttemptOverError,
    InvalidRewardError,
    NoRolloutError,
    ResourceError,
)
from headrace.streams.agent.numbers import reward_number
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import CURRENT, AttemptTracer
from headrace.streams.assembly import reward_forms
from headrace.streams.tracecontext import attempt_trace_id

ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "policy",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "3"}}],
}


@pytest.fixture
def server() -> Iterator[tuple[str, list[str], list[Any]]]:
    """An OpenAI-compatible server, and the paths and headers that it was asked with."""
    paths: list[str] = []
    headers: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            paths.append(self.path)
            headers.append(self.headers)
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps(ANSWER).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", paths, headers
    httpd.shutdown()
    thread.join()
    httpd.server_close()


class Slow:
    """A writer whose acknowledgements come when they are let go."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.futures: list[asyncio.Future[tuple[int, int]]] = []

    def send(self, record: Any) -> asyncio.Future[tuple[int, int]]:
        self.records.append(record)
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]

    def acknowledge(self) -> None:
        for future in self.futures:
            if not future.done():
                future.set_result((0, 0))


def facts() -> Rollout:
    return Rollout(rollout_id="r", attempt_id="r-1")


def test_importing_headrace_is_cheap_and_has_every_name() -> None:
    code = "import headrace, sys; print(any(m.startswith(('confluent_kafka', 'openai', 'numpy')) for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert all(getattr(headrace, name) is not None for name in headrace.__all__)


def test_the_decorator_asks_by_name() -> None:
    @rollout
    def agent(rollout: Any, task: Any, prompt_template: Any, *, more: int = 3) -> Any:
        return task, prompt_template.template, rollout.rollout_id, more

    assert not agent.is_async()
    assert not agent.uses_llm
    got = agent.call("t", Resources({"p": PromptTemplate("hi")}), facts())
    assert got == ("t", "hi", "r", 3)


def test_the_decorator_refuses_what_it_cannot_give() -> None:
    with pytest.raises(AgentError, match="'model' is none of task, llm"):
        rollout(lambda task, model: 1)
    with pytest.raises(AgentError, match="must ask for `task`"):
        rollout(lambda llm: 1)


def test_missing_resources_say_what_is_there() -> None:
    resources = Resources({"p": PromptTemplate("hi")}, "res-1")
    with pytest.raises(ResourceError, match="asks for a LLM, but there is none in publication res-1"):
        _ = resources.llm
    with pytest.raises(ResourceError, match=r"no resource 'q'; there are \['p'\]"):
        _ = resources["q"]


@pytest.mark.parametrize("value", [1, True, 0.5, np.float32(0.5), np.int64(2), np.float64(1.5)])
def test_numbers(value: Any) -> None:
    assert reward_number(value) == float(value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "null_reward"),
        (float("nan"), "non_finite_reward"),
        (10**400, "non_finite_reward"),
        (-float("inf"), "non_finite_reward"),
        ("0.5", "non_numeric_reward"),
        ([1.0], "non_numeric_reward"),
        (1j, "non_numeric_reward"),
    ],
)
def test_what_is_no_number_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(InvalidRewardError) as caught:
        reward_number(value)
    assert caught.value.reason == reason


def test_emitters_outside_a_rollout() -> None:
    with pytest.raises(NoRolloutError, match="no rollout runs here"):
        emit_reward(1.0)

    @operation
    def step(x: int) -> int:
        return x + 1

    @reward
    def judge(x: int) -> float:
        return x / 2

    assert (step(1), judge(1)) == (2, 0.5)


async def test_a_thread_waits_for_the_acknowledgement_and_the_loop_does_not() -> None:
    writer = Slow()
    tracer = AttemptTracer(facts(), writer)
    CURRENT.set(tracer)
    sent = emit_reward(1.0)
    assert tracer.pending
    thread = asyncio.create_task(asyncio.to_thread(emit_reward, 0.5))
    while len(writer.records) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert not thread.done()
    writer.acknowledge()
    await thread
    await sent
    assert [r.reward_id for r in writer.records] == ["r-1/1", "r-1/2"]


async def test_an_ended_attempt_says_nothing_more() -> None:
    writer = Slow()
    tracer = AttemptTracer(facts(), writer)
    CURRENT.set(tracer)
    tracer.close()
    with pytest.raises(AttemptOverError):
        emit_message("late")
    with pytest.raises(AttemptOverError):
        await asyncio.to_thread(emit_message, "late")
    assert writer.records == []


async def test_dimensions_need_their_primary() -> None:
    writer = Slow()
    CURRENT.set(AttemptTracer(facts(), writer))
    with pytest.raises(ValueError, match="primary_key=None: name one of"):
        emit_reward({"a": 1.0})
    with pytest.raises(InvalidRewardError, match="reward 'b'"):
        emit_reward({"a": 1.0, "b": float("nan")}, primary_key="a")
    assert writer.records == []


def test_the_assembler_reads_what_emitters_write() -> None:
    assert (emit.REWARD_SPAN, emit.SEQUENCE) == (reward_forms.REWARD_SPAN, reward_forms.SEQUENCE)


async def test_a_fork_of_the_agent_gets_an_error_instead_of_a_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Slow()
    tracer = AttemptTracer(facts(), writer)
    CURRENT.set(tracer)
    monkeypatch.setattr(tracer, "_process", -1)
    with pytest.raises(NoRolloutError, match="a fork of the agent's"):
        await asyncio.to_thread(emit_message, "forked")


async def test_each_entry_of_an_operation_is_a_step_of_its_own_and_names_its_place() -> None:
    writer = Slow()
    CURRENT.set(AttemptTracer(facts(), writer))
    step = operation("step", n=1)
    with step:
        emit_exception(ValueError("shown"))
    first = step.span_id
    with step:
        pass
    inner, one, two = writer.records
    assert inner.parent_id == one.span_id == first
    assert two.span_id == step.span_id != first
    assert [r.sequence for r in writer.records] == [1, 2, 3]
    about = json.loads(inner.attributes)
    assert (about["exception.type"], about["exception.escaped"]) == ("ValueError", True)


async def test_what_utf8_and_json_have_not_is_written_all_the_same() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    writer = Slow()
    CURRENT.set(AttemptTracer(facts(), writer))
    emit_message("half \ud800")
    emit_exception(Shy())
    assert json.loads(writer.records[0].attributes)["message"] == "half \ud800"
    writer.records[0].attributes.encode()
    assert "cannot be shown: RuntimeError" in writer.records[1].attributes


async def test_a_call_inside_a_step_names_it_to_the_gateway(server) -> None:
    base, _, headers = server
    writer = Slow()
    tracer = AttemptTracer(facts(), writer)
    CURRENT.set(tracer)
    client = LLM(f"{base}/v1", "policy").client()
    await client.chat.completions.create(model="policy", messages=[])
    with operation("step") as step:
        await client.chat.completions.create(model="policy", messages=[])
        own = {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
        await client.chat.completions.create(model="policy", messages=[], extra_headers=own)
    said = [h.get("traceparent") for h in headers]
    assert said == [None, f"00-{attempt_trace_id('r', 'r-1')}-{step.span_id}-01", own["traceparent"]]
    await close_async_client()


async def test_an_exception_in_an_operation_stands_on_its_span() -> None:
    writer = Slow()
    CURRENT.set(AttemptTracer(facts(), writer))

    @operation("search", engine="x")
    async def search(query: str) -> str:
        raise ValueError(query)

    with pytest.raises(ValueError):
        await search("q")
    (span,) = writer.records
    assert (span.name, span.status.code, span.status.message) == ("search", "ERROR", "ValueError: q")
    assert json.loads(span.events)[0]["attributes"]["exception.type"] == "ValueError"
    assert json.loads(span.attributes)["engine"] == "x"


async def test_async_agents_share_one_client_and_a_reward_goes_before_the_next_call(server) -> None:
    base, paths, _ = server
    writer = Slow()
    tracer = AttemptTracer(facts(), writer)
    CURRENT.set(tracer)
    first, second = (LLM(f"{base}/rollout/{r}/attempt/a/v1", "policy").client() for r in ("r1", "r2"))
    assert first._client is second._client
    emit_reward(1.0)
    call = asyncio.create_task(
        first.chat.completions.create(model="policy", messages=[{"role": "user", "content": "x"}])
    )
    await asyncio.sleep(0.2)
    assert paths == []
    writer.acknowledge()
    answer = await call
    assert answer.choices[0].message.content == "3"
    await second.chat.completions.create(model="policy", messages=[{"role": "user", "content": "x"}])
    assert paths == ["/rollout/r1/attempt/a/v1/chat/completions", "/rollout/r2/attempt/a/v1/chat/completions"]
    await close_async_client()


async def test_sync_agents_get_the_sync_client(server) -> None:
    base, paths, _ = server
    CURRENT.set(AttemptTracer(facts(), Slow()))

    def agent() -> str:
        client = LLM(f"{base}/v1", "policy").client()
        return client.chat.completions.create(model="policy", messages=[]).choices[0].message.content

    assert await asyncio.to_thread(agent) == "3"
    assert paths == ["/v1/chat/completions"]


def test_prompt_templates() -> None:
    assert PromptTemplate("hi {a}").format(a=1) == "hi 1"
    assert PromptTemplate("hi {{ a }}", "jinja").format(a=1) == "hi 1"
    with pytest.raises(ResourceError, match="needs 'a'"):
        PromptTemplate("hi {a}").format(b=1)
    with pytest.raises(ResourceError, match="cannot be filled in"):
        PromptTemplate("hi {a:d}").format(a="x")
    with pytest.raises(ResourceError, match="'a' is undefined"):
        PromptTemplate("hi {{ a }}", "jinja").format(b=1)
    with pytest.raises(ResourceError, match="none of f-string, jinja, poml"):
        PromptTemplate("x", "mustache").format()


@pytest.mark.slow
def test_poml_templates() -> None:
    pytest.importorskip("poml")
    assert "Hello Bob" in PromptTemplate("<poml><p>Hello {{name}}</p></poml>", "poml").format(name="Bob")
