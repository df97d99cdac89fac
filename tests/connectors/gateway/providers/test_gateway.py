"""A provider's model behind the gateway: every dialect, recorded and not trained."""

import json
from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web

from headrace.streams.assembly.recognise import read_call
from headrace.streams.assembly.values import LoggedSpan, Node

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]  # the first call imports LiteLLM
HI: Any = [{"role": "user", "content": "hi"}]
BASE = {"id": "chatcmpl-1", "created": 1, "model": "judge-1", "object": "chat.completion.chunk"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


@pytest.fixture
async def gateway(start_gateway: Any, stub: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A gateway without engines whose provider is the stub."""
    pytest.importorskip("litellm")
    monkeypatch.setenv("JUDGE_KEY", "key-of-the-judge")
    judge = {"model": "openai/judge-1", "api_base": stub.url + "/v1", "api_key_env": "JUDGE_KEY", "retries": 0}

    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        message = {"role": "assistant", "content": "good"}
        if not fields.get("stream"):
            whole = BASE | {"object": "chat.completion", "usage": USAGE}
            return web.json_response(whole | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        deltas: list[Any] = [(message, None), ({}, "stop")]
        chunks = [BASE | {"choices": [{"index": 0, "delta": d, "finish_reason": reason}]} for d, reason in deltas]
        chunks.append(BASE | {"choices": [], "usage": USAGE})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return web.Response(text="".join([*lines, "data: [DONE]\n\n"]), content_type="text/event-stream")

    stub.handler = answer
    return await start_gateway(gateway_providers={"judge": judge, "other-*": judge}, gateway_engine_wait=0.2)


async def test_every_dialect_whole_and_streamed(gateway: Any, stub: Any) -> None:
    base = gateway.url + "/rollout/r1/attempt/a"
    async with openai.AsyncOpenAI(base_url=base + "/v1", api_key="none", max_retries=0) as client:
        chat = client.chat.completions
        whole = await chat.create(model="judge", messages=HI, top_p=0.5)
        assert whole.choices[0].message.content == "good"
        chunks = [chunk async for chunk in await chat.create(model="judge", messages=HI, stream=True)]
        assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "good"
        assert all(chunk.choices for chunk in chunks)
        response = await client.responses.create(model="other-one", input="hi")
        assert response.output_text == "good"
        assert [model.id for model in (await client.models.list()).data] == ["judge"]
    async with anthropic.AsyncAnthropic(base_url=base, api_key="none", max_retries=0) as client:
        async with client.messages.stream(model="judge", max_tokens=9, messages=HI) as stream:
            message = await stream.get_final_message()
        assert (message.content[0].text, message.usage.output_tokens) == ("good", 2)
    assert (stub.requests[0]["model"], stub.requests[0]["top_p"]) == ("judge-1", 0.5)
    assert not {"top_k", "return_token_ids", "logprobs", "repetition_penalty"} & stub.requests[0].keys()
    spans = await gateway.spans()
    assert len(spans) == 4
    assert spans[0].llm.sampling.top_p == 0.5
    for span in spans:
        llm = span.llm
        assert (llm.model, llm.policy, llm.http_status, llm.error) == ("openai/judge-1", None, 200, None)
        assert llm.usage.output_tokens == 2
        attributes = json.loads(span.attributes)
        assert (attributes["gen_ai.provider.name"], attributes["headrace.mode"]) == ("openai", "train")
        call = read_call(Node(LoggedSpan(span, 0, 0), 0))
        assert call is not None
        assert call.choices[0].tokens is None
        assert "key-of-the-judge" not in str(span)


async def test_errors_and_what_a_provider_does_not_do(gateway: Any, stub: Any) -> None:
    async def refuse(fields: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "busy", "type": "x"}}, status=429)

    stub.handler = refuse
    status, body, _ = await gateway.chat(model="judge")
    assert (status, body["error"]["code"]) == (429, "provider_error")
    status, body, _ = await gateway.chat(model="judge", stream=True)
    assert (status, body["error"]["code"]) == (429, "provider_error")
    status, body, _ = await gateway.chat("/v1/completions", model="judge", prompt="hi")
    assert (status, body["error"]["code"]) == (404, "not_supported")
    status, body, _ = await gateway.chat(model="policy")
    assert (status, body["error"]["code"]) == (503, "engine_unavailable")
