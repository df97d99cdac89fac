"""`--tracer otel --instrument openai` for real: the SDK's copy of a call and the gateway's make one triplet."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32

pytestmark = pytest.mark.kafka
AGENT = """
import openai
from headrace import Hook, emit_message, emit_reward, operation, reward, rollout

class Watcher(Hook):
    async def on_trace_end(self, *, rollout, **facts):
        emit_message("hook", {"rollout": rollout.rollout_id})

    async def on_rollout_start(self, **facts):
        raise RuntimeError("a broken hook")

@reward
def judge(llm, answer):
    client = llm.client()
    client.chat.completions.create(model=llm.model, messages=[{"role": "user", "content": f"judge {answer}"}])
    return 0.75

@rollout
def agent(task, llm):
    client = openai.OpenAI(base_url=llm.base_url, api_key="none")  # not ours
    with operation("plan", **{"agent.name": "planner"}):
        answer = client.chat.completions.create(model=llm.model, messages=[{"role": "user", "content": task}])
    judge(llm, answer.choices[0].message.content)
"""


@pytest.fixture
def engine() -> Iterator[str]:
    """An engine that answers with token ids."""
    count = iter(range(1000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "three"},
                "token_ids": [7, 8],
                "logprobs": {"content": [{"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}] * 2},
            }
            body = json.dumps(
                {
                    "id": f"chatcmpl-{next(count)}",
                    "object": "chat.completion",
                    "created": 1,
                    "model": asked["model"],
                    "choices": [choice],
                    "prompt_token_ids": [1, 2, 3],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
                }
            )
            self.answer(body)

        def do_GET(self) -> None:  # /v1/models
            self.answer(json.dumps({"object": "list", "data": [{"id": "served", "object": "model"}]}))

        def answer(self, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_copies_merge_parents_hold_and_a_judge_is_not_trained(
    pipeline: Any, commands: Any, engine: str, tmp_path: Path, wait_for: Callable[[Callable[[], Any]], Any]
) -> None:
    file = tmp_path / "traced_agent.py"
    file.write_text(AGENT)
    commands("gateway", "--engine", engine)
    commands("processor", "assembler")
    runner = ("runner", f"{file}:agent", "--tracer", "otel", "--instrument", "openai", "--hook", f"{file}:Watcher")
    commands(*runner, "--isolation", "process")
    (rollout_id,) = pipeline.tasks("hello")
    (trajectory,) = wait_for(lambda: pipeline.records("triplets"))
    spans = [s for s in pipeline.spans() if s.rollout_id == rollout_id]
    ours = {s.name: s for s in spans if s.source == "runner" and s.name != "ChatCompletion"}
    assert set(ours) == {"rollout", "plan", "agentlightning.reward", "agentlightning.message"}
    sdk = [s for s in spans if s.name == "ChatCompletion"]
    gateway = [s for s in spans if s.source == "gateway"]
    assert (len(sdk), len(gateway)) == (2, 2)
    assert len({s.trace_id for s in spans}) == 1
    root = ours["rollout"]
    assert [s.parent_id for s in sdk] == [ours["plan"].span_id, ours["agentlightning.reward"].span_id]
    assert ours["plan"].parent_id == ours["agentlightning.message"].parent_id == root.span_id
    assert json.loads(ours["agentlightning.message"].attributes)["rollout"] == rollout_id

    (triplet,) = trajectory.triplets
    assert triplet.prompt_token_ids == pack_int32([1, 2, 3])
    assert (triplet.agent_name, triplet.reward, trajectory.final_reward) == ("planner", 0.75, 0.75)
    assert trajectory.diagnostics.dropped == {"duplicate_call": 1, "inside_reward": 2}  # both copies of each
    workers = [w for w in pipeline.raw(pipeline.settings.topic("workers")) if w.value()]
    assert workers
