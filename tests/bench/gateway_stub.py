"""What the gateway's benchmarks share: a stub engine, processes that are started and measured."""

import asyncio
import functools
import json
import subprocess
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import uvloop

from headrace.streams.kafka.admin import create_topics
from headrace.streams.settings import Settings, load_settings

COMMAND = str(Path(sys.executable).parent / "headrace")
CHAT = "/v1/chat/completions"
TOKENS = 16
# `stub_tokens` tokens, `stub_step` an event, after a prompt of `stub_prompt` ids; the last held for `stub_hold` s.
BODY: dict[str, Any] = {
    "model": "policy",
    "messages": [{"role": "user", "content": "Please pick the digit 7."}],
    "temperature": 1.0,
}
IDS = {"logprobs": True, "return_token_ids": True}
ENTRY = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
PROMPT = 30


def chunk(ids: list[int], **more: Any) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": {"content": "a" * len(ids)}, "finish_reason": None, "token_ids": ids}
    choice |= {"logprobs": {"content": [ENTRY] * len(ids)}} | more.pop("choice", {})
    value = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "policy", "choices": [choice]}
    return b"data: " + json.dumps(value | more).encode() + b"\n\n"


@functools.cache
def whole(count: int) -> bytes:
    """An answer that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "a" * count}, "finish_reason": "stop"}
    choice |= {"logprobs": {"content": [ENTRY] * count}, "token_ids": list(range(count))}
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "policy", "choices": [choice]}
    usage = {"prompt_tokens": PROMPT, "completion_tokens": count, "total_tokens": PROMPT + count}
    stamp = {"policy_version": {"min": 1, "max": 1}, "prompt_token_ids": list(range(PROMPT))}
    return json.dumps(answer | {"usage": usage} | stamp).encode()


@functools.cache
def events(count: int, step: int, prompt: int) -> tuple[bytes, ...]:
    """All of a stream."""
    first = chunk([0], prompt_token_ids=list(range(prompt)))
    middle = [chunk(list(range(i, i + step))) for i in range(1, count - 1, step)]
    return first, *middle, chunk([count], choice={"finish_reason": "stop"})


def serve_stub() -> None:
    """Answers at once, in vLLM's shape; prints its URL."""
    from aiohttp import web

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if request.path != CHAT:
            return web.Response(body=json.dumps({"data": [{"id": "policy"}], "policy": "policy"}).encode())
        fields = json.loads(body)
        get = fields.get
        count = get("stub_tokens", TOKENS)
        if not get("stream"):
            return web.Response(body=whole(count), content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        *most, last = events(count, get("stub_step", 1), get("stub_prompt", PROMPT))
        for event in most:
            await response.write(event)
        await asyncio.sleep(get("stub_hold", 0))
        await response.write(last)
        await response.write_eof(b"data: [DONE]\n\n")
        return response

    async def main() -> None:
        runner = web.ServerRunner(web.Server(handle, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
        await site.start()
        print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
        await asyncio.Event().wait()

    uvloop.run(main())


@contextmanager
def started(*command: str) -> Generator[tuple[psutil.Process, dict[str, Any]]]:
    """A process and its ready line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield psutil.Process(process.pid), json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def stub_engine() -> Generator[str]:
    """The URL of a stub in a process of its own."""
    with started(sys.executable, __file__) as (_, ready):
        yield ready["url"]


def cpu_ms(process: psutil.Process) -> float:
    """User and system time so far."""
    times = process.cpu_times()
    return 1e3 * (times.user + times.system)


def percentile(values: list[float], share: float) -> float:
    """Of values in any order."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def prepared() -> Settings:
    """Topics of their own."""
    settings = load_settings(prefix=f"bench{uuid.uuid4().hex[:6]}")
    create_topics(settings)
    return settings


def rollout_url(gateway: str) -> str:
    """Where a rollout of its own asks."""
    rollout = uuid.uuid4().hex
    return f"{gateway}/rollout/{rollout}/attempt/{rollout}-1{CHAT}"


if __name__ == "__main__":
    serve_stub()
