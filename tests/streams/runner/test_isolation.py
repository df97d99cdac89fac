"""Agents that do to their process what they like: in children, and in a runner that has to be started again."""

import asyncio
import json
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiohttp import web

from headrace.streams.kafka.dead_letters import parse
from headrace.streams.runner.loading import load_agent
from headrace.streams.runner.options import Isolation

pytestmark = pytest.mark.kafka

SYNC = """
import ctypes, os, sys, threading, time
from headrace import emit_message, emit_reward, operation, rollout

@rollout
def agent(task, rollout):
    if task == "exit":
        os._exit(1)
    if task == "segfault":
        ctypes.string_at(0)
    if task == "hang":
        time.sleep(60)
    if task == "raise":
        raise ValueError("no such thing")
    if task == "leak":
        for _ in range(100):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    if task == "emit":
        with operation("step") as step:
            emit_message(f"{os.getpid()}")
        emit_reward(0.25, name="style", span_id=step.span_id)
        emit_reward(float("1"))
        return None
    return float(rollout.input == task)
"""
ASYNC = """
import asyncio, os, pathlib, time
from headrace import emit_message, rollout

@rollout
async def agent(task):
    if task == "wait":
        try:
            await asyncio.sleep(60)
        finally:
            pathlib.Path(os.environ["CLEANED"]).touch()
    if task == "block":
        time.sleep(60)
    await emit_message("here")
    return 1.0
"""


def of(pipeline: Any, tmp_path: Path, text: str, **options: Any) -> Any:
    """A runner of an agent in a file."""
    spec = f"{tmp_path / 'agent.py'}:agent"
    (tmp_path / "agent.py").write_text(text)
    return pipeline.runner(load_agent(spec), spec=spec, **options)


def isolated(pipeline: Any, tmp_path: Path, text: str, **options: Any) -> Any:
    return of(pipeline, tmp_path, text, isolation=Isolation.PROCESS, **{"concurrency": 3, **options})


async def test_what_an_agent_does_to_its_process_happens_to_nobody_else(pipeline, tmp_path) -> None:
    pipeline.settings = pipeline.settings.model_copy(update={"max_deliveries": 2})
    inputs = ["exit", "segfault", "hang", "raise", "leak", *range(12)]
    ids = [
        *pipeline.tasks(*inputs[:2]),
        *pipeline.tasks(inputs[2], first=2, config={"timeout_seconds": 1.5}),
        *pipeline.tasks(*inputs[3:], first=3),
    ]
    async with isolated(pipeline, tmp_path, SYNC) as runner:
        judges = await pipeline.closed(ids)
        children = psutil.Process().children()
        assert len(children) <= 3 + 2  # and one or two that are being put away
        assert runner.counters["given_up"] == 2
    ends = {str(task): judges[r].closing for task, r in zip(inputs, ids, strict=True)}
    assert {ends[str(n)].type for n in range(12)} == {"succeeded"}
    assert (ends["hang"].type, ends["raise"].type, ends["leak"].type) == ("timeout", "failed", "succeeded")
    assert ends["raise"].error.message == "no such thing"
    assert [ends[t].error.type for t in ("exit", "segfault")] == ["too_many_deliveries"] * 2
    assert len(pipeline.rewards()) == 13
    for rollout_id, how in (("r0", "exit code 1"), ("r1", "SIGSEGV")):
        events = pipeline.events(rollout_id)
        assert [e.child_deaths for e in events if e.type == "started"] == [0, 1]
        lost = [e for e in events if e.type == "lost"]
        assert [e.lost_reason for e in lost] == ["child_died"] * 2
        assert how in lost[0].error.message
    letters = [parse(m) for m in pipeline.raw(f"{pipeline.settings.topic('tasks')}.dlq")]
    assert {(x.key, x.reason) for x in letters} == {(b"r0", "too_many_deliveries"), (b"r1", "too_many_deliveries")}
    assert {pipeline.codec.decode(x.value).input for x in letters} == {'"exit"', '"segfault"'}


async def test_emitters_in_a_child_write_before_the_end(pipeline, tmp_path) -> None:
    ids = pipeline.tasks("emit")
    async with isolated(pipeline, tmp_path, SYNC):
        judges = await pipeline.closed(ids)
    assert judges["r0"].closing.type == "succeeded"
    spans = {s.name: s for s in pipeline.spans()}
    message = spans["agentlightning.message"]
    assert message.parent_id == spans["step"].span_id
    assert json.loads(message.attributes)["message"] != str(os.getpid())
    assert [(r.name, r.value, r.primary) for r in pipeline.rewards()] == [("style", 0.25, False), ("", 1.0, True)]
    assert pipeline.rewards()[0].span_id == spans["step"].span_id


async def test_a_coroutine_in_a_child_is_cancelled_and_one_that_blocks_is_killed(
    pipeline, tmp_path, monkeypatch
) -> None:
    cleaned = tmp_path / "cleaned"
    monkeypatch.setenv("CLEANED", str(cleaned))
    ids = pipeline.tasks("wait", "block", config={"timeout_seconds": 0.7}) + pipeline.tasks(1, first=2)
    async with isolated(pipeline, tmp_path, ASYNC):
        judges = await pipeline.closed(ids)
        await pipeline.until(cleaned.exists)
    assert [judges[r].closing.type for r in ids] == ["timeout", "timeout", "succeeded"]
    assert len(pipeline.spans()) == 1


async def test_an_agent_that_cannot_be_loaded_starts_nothing(pipeline, tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setenv("RIGHT", "1")
    text = "import os\nassert os.environ.get('RIGHT'), 'not here'\n" + SYNC
    pipeline.tasks(1)
    async with isolated(pipeline, tmp_path, text):
        monkeypatch.delenv("RIGHT")
        await pipeline.until(lambda: "cannot load" in caplog.text)
        assert "AssertionError: not here" in caplog.text
        assert pipeline.events("r0") == []
        monkeypatch.setenv("RIGHT", "1")
        judges = await pipeline.closed(["r0"])
    assert judges["r0"].closing.type == "succeeded"


async def test_a_blocked_loop_keeps_its_leases_and_is_told_of(pipeline, tmp_path, caplog) -> None:
    pipeline.settings = pipeline.settings.model_copy(update={"heartbeat": timedelta(seconds=0.5)})
    text = """
import asyncio, time
from headrace import rollout

@rollout
async def agent(task):
    if task == "block":
        await asyncio.sleep(0.3)
        time.sleep(3)
    else:
        await asyncio.sleep(1)
    return 1.0
"""
    ids = pipeline.tasks("block", 1)
    async with of(pipeline, tmp_path, text):
        await pipeline.closed(ids)
    assert sum(e.type == "heartbeat" for e in pipeline.events("r1")) >= 2
    assert "attempt r0-1 has blocked the event loop" in caplog.text
    assert "time.sleep(3)" in caplog.text
    states = [pipeline.codec.decode(m.value()) for m in pipeline.raw(pipeline.settings.topic("workers"))]
    assert max(s.counters["blocked_seconds"] for s in states if s.kind == "runner") >= 1  # it still says how it is


@pytest.mark.slow
async def test_a_task_that_kills_its_runner_takes_nobody_with_it(pipeline, tmp_path, commands) -> None:
    ids = pipeline.tasks("exit", *range(20))
    (tmp_path / "agent.py").write_text(
        "import time\n" + SYNC.replace("    if task", "    time.sleep(0.2)\n    if task", 1)
    )
    env = {"HEADRACE_MAX_DELIVERIES": "2"}
    commands("processor", "lifecycle", **env)
    arguments = ("runner", f"{tmp_path / 'agent.py'}:agent", "--concurrency", "10")
    first = commands(*arguments, **env)
    assert await asyncio.to_thread(first.wait, 60) == 1
    second = commands(*arguments, **env)
    judges = await pipeline.closed(ids)
    assert second.poll() is None
    assert [judges[r].closing.type for r in ids] == ["failed"] + ["succeeded"] * 20
    assert judges["r0"].closing.error.type == "too_many_deliveries"
    reasons = [a.end.lost_reason for a in judges["r0"].attempts.values() if a.end.type == "lost"]
    assert reasons == ["lease", "child_died"]
    assert max(a.delivery for r in ids[1:] for a in judges[r].attempts.values()) <= 2


@pytest.mark.slow
async def test_children_die_with_their_runner(pipeline, tmp_path, commands) -> None:
    (tmp_path / "agent.py").write_text(SYNC)
    pipeline.tasks("hang", "hang")
    process = commands("runner", f"{tmp_path / 'agent.py'}:agent", "--isolation", "process")
    await pipeline.until(lambda: all(pipeline.events(r) for r in ("r0", "r1")))
    children = psutil.Process(process.pid).children()
    assert len(children) == 2
    process.send_signal(signal.SIGKILL)
    await pipeline.until(lambda: not any(c.is_running() and c.status() != psutil.STATUS_ZOMBIE for c in children), 20)


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_the_client_of_the_rollout_works_in_a_child(pipeline, tmp_path, kind: str) -> None:
    paths: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        paths.append(request.path)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "0.5"}}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return web.json_response(body)

    server = web.ServerRunner(web.Server(answer))
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{server.addresses[0][1]}"
    pipeline.settings = pipeline.settings.model_copy(update={"gateway": url})
    wait = "await " if kind.startswith("async") else ""
    text = f"""
from headrace import rollout

@rollout
{kind} agent(task, llm):
    answer = {wait}llm.client().chat.completions.create(model=llm.model, messages=[{{"role": "user", "content": "?"}}])
    return float(answer.choices[0].message.content)
"""
    ids = pipeline.tasks(1)
    async with isolated(pipeline, tmp_path, text):
        await pipeline.closed(ids)
    await server.cleanup()
    assert paths == ["/rollout/r0/attempt/r0-1/v1/chat/completions"]
    assert [r.value for r in pipeline.rewards()] == [0.5]
