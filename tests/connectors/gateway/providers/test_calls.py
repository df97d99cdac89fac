"""LiteLLM against a server that speaks OpenAI's API: answers, streams, and errors by their status."""

import json
from typing import Any

import pytest
from aiohttp import web

from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.providers.calls import LiteLlm
from headrace.connectors.gateway.providers.settings import Provider, Target

ASKED: dict[str, Any] = {
    "model": "judge",
    "messages": [{"role": "user", "content": "hi"}],
    "temperature": 0.5,
    "api_base": "http://127.0.0.1:9/elsewhere",
}


@pytest.fixture(scope="module")
def calls() -> LiteLlm:
    pytest.importorskip("litellm")
    return LiteLlm(timeout=5)


@pytest.fixture
def target(stub: Any, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setenv("JUDGE_KEY", "key-of-the-judge")
    model = "openai/judge-1"
    return Target(Provider(model=model, api_base=stub.url + "/v1", api_key_env="JUDGE_KEY", retries=0), model)


def changed(target: Target, **changes: Any) -> Target:
    return Target(target.provider.model_copy(update=changes), target.model)


async def test_an_answer(calls: LiteLlm, stub: Any, target: Target) -> None:
    answer = await calls.complete(target, ASKED)
    assert answer["choices"][0]["message"]["content"] == "answer 0"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 2
    (asked,) = stub.requests
    assert (asked["model"], asked["temperature"], asked["messages"]) == ("judge-1", 0.5, ASKED["messages"])
    assert "return_token_ids" not in asked


async def test_a_stream(calls: LiteLlm, stub: Any, target: Target) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    deltas = [{"role": "assistant", "content": "a"}, {"content": "b"}, {"tool_calls": [call]}]

    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        assert fields["stream_options"] == {"include_usage": True}
        base = {"id": "chatcmpl-1", "created": 1, "model": "judge-1", "object": "chat.completion.chunk"}
        chunks = [base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append(base | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        chunks.append(base | {"choices": [], "usage": usage})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return web.Response(text="".join([*lines, "data: [DONE]\n\n"]), content_type="text/event-stream")

    stub.handler = answer
    chunks = [chunk async for chunk in calls.stream(target, ASKED)]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == "ab"
    (made,) = [made for choice in choices for made in choice["delta"].get("tool_calls") or []]
    assert made["function"]["name"] == "f"
    assert [choice["finish_reason"] for choice in choices if choice.get("finish_reason")] == ["tool_calls"]
    assert chunks[-1]["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_errors(calls: LiteLlm, stub: Any, target: Target, status: int) -> None:
    async def refuse(fields: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "no, key-of-the-judge", "type": "x"}}, status=status)

    stub.handler = refuse
    with pytest.raises(CallError) as refused:
        await calls.complete(target, ASKED)
    assert (refused.value.status, refused.value.code) == (status, "provider_error")
    assert "key-of-the-judge" not in str(refused.value)
    assert "no, ***" in str(refused.value)


async def test_it_tries_again(calls: LiteLlm, stub: Any, target: Target, make_completion: Any) -> None:
    async def busy_once(fields: dict[str, Any]) -> web.StreamResponse:
        if len(stub.requests) == 1:
            return web.json_response({"error": {"message": "busy"}}, status=429, headers={"retry-after-ms": "1"})
        return web.json_response(make_completion(fields))

    stub.handler = busy_once
    assert (await calls.complete(changed(target, retries=1), ASKED))["choices"]
    assert len(stub.requests) == 2


async def test_nobody_there(calls: LiteLlm, target: Target) -> None:
    with pytest.raises(CallError) as refused:
        await calls.complete(changed(target, api_base="http://127.0.0.1:9/v1"), ASKED)
    assert refused.value.status in (500, 502, 503)
