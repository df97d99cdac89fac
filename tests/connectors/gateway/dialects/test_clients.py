"""The unmodified clients of both APIs through a real gateway: what they get, and what the span says."""

import json
from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web

from headrace.schemas.packing import unpack_float32, unpack_int32
from headrace.streams.assembly.messages.read import conversation_json
from headrace.streams.assembly.recognise import read_call
from headrace.streams.assembly.values import LoggedSpan, Node

pytestmark = pytest.mark.kafka
PROMPT_IDS, RESPONSE_IDS, LOGPROBS = [1, 5, 9], [7, 8], [-0.25, -1.5]
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION: Any = {"type": "function", "name": "weather", "description": "d", "parameters": WEATHER, "strict": True}
TOOL: Any = {"name": "weather", "description": "d", "input_schema": WEATHER}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}


def sse(*chunks: dict[str, Any]) -> web.Response:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return web.Response(body="".join([*lines, "data: [DONE]\n\n"]).encode(), content_type="text/event-stream")


def chunked(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of a stream, as vLLM shapes them: two with one token each, then the usage."""
    base = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = answer["choices"][0]
    message = choice["message"]
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls") or [])]
    text = message.get("content") or ""
    deltas = [
        {"role": "assistant", "content": text[:3]},
        {"content": text[3:]} | ({"tool_calls": calls} if calls else {}),
    ]
    entries = choice["logprobs"]["content"]
    found = [
        base
        | {
            "choices": [
                {
                    "index": 0,
                    "delta": delta,
                    "logprobs": {"content": [entries[i]]},
                    "token_ids": [RESPONSE_IDS[i]],
                    "finish_reason": choice["finish_reason"] if i else None,
                }
            ]
        }
        for i, delta in enumerate(deltas)
    ]
    found[0]["prompt_token_ids"] = PROMPT_IDS
    return [*found, base | {"choices": [], "usage": answer["usage"]}]


@pytest.fixture
def say(stub: Any, make_completion: Any) -> Any:
    """Sets what the engine says, in an answer or in a stream, as it is asked."""

    def set_answer(message: dict[str, Any], finish_reason: str = "stop") -> None:
        async def answer(fields: dict[str, Any]) -> web.StreamResponse:
            whole = make_completion(fields)
            whole["choices"][0] |= {"message": {"role": "assistant", **message}, "finish_reason": finish_reason}
            return sse(*chunked(whole)) if fields.get("stream") else web.json_response(whole)

        stub.handler = answer

    return set_answer


@pytest.fixture
async def responses(gateway: Any) -> Any:
    async with openai.AsyncOpenAI(
        base_url=gateway.url + "/rollout/r1/attempt/a/v1", api_key="none", max_retries=0
    ) as client:
        yield client.responses


@pytest.fixture
async def messages(gateway: Any) -> Any:
    base_url = gateway.url + "/rollout/r1/attempt/a"
    async with anthropic.AsyncAnthropic(base_url=base_url, api_key="none", max_retries=0) as client:
        yield client.messages


def check_tokens(span: Any) -> None:
    (choice,) = span.llm.choices
    assert unpack_int32(span.llm.prompt_token_ids) == PROMPT_IDS
    assert unpack_int32(choice.response_token_ids) == RESPONSE_IDS
    assert unpack_float32(choice.logprobs) == LOGPROBS


def conversation(span: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What assembly makes of a span: the messages that were sent, and the answer."""
    node = Node(LoggedSpan(span, 0, 0), 0)
    call = read_call(node)
    assert call is not None
    (entry,) = json.loads(conversation_json([call], [node]))
    return entry["messages"][:-1], entry["messages"][-1]


async def test_responses(gateway: Any, stub: Any, say: Any, responses: Any) -> None:
    say({"content": "I look.", "tool_calls": [CALL]}, "tool_calls")
    body = {"model": "policy", "instructions": "be brief", "tools": [FUNCTION], "truncation": "auto"}
    first = await responses.create(input="weather?", **body)
    assert first.output_text == "I look."
    call = first.output[1]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "weather", {"city": "Bern"})
    say({"content": "12 degrees"})
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "12"}
    second = await responses.create(input=[output], previous_response_id=first.id, **body)
    assert (second.output_text, second.status, second.usage.output_tokens) == ("12 degrees", "completed", 2)
    spans = await gateway.spans()
    for span, response in zip(spans, (first, second), strict=True):
        check_tokens(span)
        assert span.llm.response_id == response.id
        attributes = json.loads(span.attributes)
        assert attributes["headrace.dialect"] == "responses"
        assert attributes["headrace.dialect.ignored"] == ["truncation"]
        assert json.loads(span.llm.response)["id"] == response.id
    assert json.loads(spans[0].llm.request)["input"] == "weather?"
    asked, answered = conversation(spans[1])
    assert asked == stub.requests[1]["messages"]
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "tool"]
    assert answered["content"] == "12 degrees"


async def test_responses_streamed(gateway: Any, say: Any, responses: Any) -> None:
    say({"content": "I look.", "tool_calls": [CALL]}, "tool_calls")
    async with responses.stream(model="policy", input="weather?", tools=[FUNCTION]) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds.count("response.output_text.delta") == 2
    assert final.output_text == "I look."
    assert final.output[1].parsed_arguments == {"city": "Bern"}
    assert final.usage.total_tokens == 5
    span = await gateway.span()
    check_tokens(span)
    assert span.llm.response_id == final.id
    assert json.loads(span.llm.response)["id"] == final.id
    asked, answered = conversation(span)
    assert asked == [{"role": "user", "content": "weather?"}]
    assert (answered["content"], answered["tool_calls"]) == ("I look.", [CALL])


async def test_messages(gateway: Any, stub: Any, say: Any, messages: Any) -> None:
    say({"content": "I look.", "tool_calls": [CALL]}, "tool_calls")
    asked: list[Any] = [{"role": "user", "content": "weather?"}]
    first = await messages.create(model="policy", max_tokens=9, system="be brief", tools=[TOOL], messages=asked)
    assert (first.stop_reason, first.usage.output_tokens) == ("tool_use", 2)
    assert first.content[0].text == "I look."
    assert (first.content[1].id, first.content[1].input) == ("c1", {"city": "Bern"})
    result: Any = {"type": "tool_result", "tool_use_id": "c1", "content": "12"}
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    say({"content": "12 degrees"}, "length")
    second = await messages.create(
        model="policy", max_tokens=9, tools=[TOOL], messages=asked, thinking={"type": "disabled"}
    )
    assert (second.content[0].text, second.stop_reason) == ("12 degrees", "max_tokens")
    assert [message["role"] for message in stub.requests[1]["messages"]] == ["user", "assistant", "tool"]
    spans = await gateway.spans()
    for span, message in zip(spans, (first, second), strict=True):
        check_tokens(span)
        assert span.llm.response_id == message.id
        assert json.loads(span.attributes)["headrace.dialect"] == "anthropic"
    assert json.loads(spans[1].attributes)["headrace.dialect.ignored"] == ["thinking"]
    asked, answered = conversation(spans[1])
    assert asked == stub.requests[1]["messages"]
    assert answered["content"] == "12 degrees"


async def test_messages_streamed(gateway: Any, say: Any, messages: Any) -> None:
    say({"content": "I look.", "tool_calls": [CALL]}, "tool_calls")
    asked: Any = [{"role": "user", "content": "weather?"}]
    async with messages.stream(model="policy", max_tokens=9, tools=[TOOL], messages=asked) as stream:
        text = [piece async for piece in stream.text_stream]
        final = await stream.get_final_message()
    assert text == ["I l", "ook."]
    assert (final.stop_reason, final.content[1].input) == ("tool_use", {"city": "Bern"})
    assert (final.usage.input_tokens, final.usage.output_tokens) == (3, 2)
    span = await gateway.span()
    check_tokens(span)
    assert span.llm.response_id == final.id


async def test_errors_have_the_form_of_their_api(gateway: Any, stub: Any, messages: Any, responses: Any) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        await messages.create(model="policy", max_tokens=0, messages=[{"role": "user", "content": "x"}])
    assert refused.value.body["error"]["type"] == "invalid_request_error"
    with pytest.raises(openai.BadRequestError) as unsupported:
        await responses.create(model="policy", input="x", tools=[{"type": "web_search"}])
    assert unsupported.value.code == "unsupported_parameter"
    assert "web_search" in str(unsupported.value)

    async def overloaded(fields: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "busy", "type": "server_error"}}, status=429)

    stub.handler = overloaded
    with pytest.raises(anthropic.RateLimitError) as busy:
        await messages.create(model="policy", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    assert busy.value.body["error"] == {"type": "rate_limit_error", "message": "busy"}
    with pytest.raises(anthropic.NotFoundError) as missing:
        await messages.count_tokens(model="policy", messages=[{"role": "user", "content": "x"}])
    assert missing.value.body["error"]["type"] == "not_found_error"
    for path in ("/v1/messages", "/v1/responses"):
        async with gateway.session.post(gateway.url + path, data=b"\xff{") as answer:
            body = await answer.json()
            assert answer.status == 400
            assert body["error"]["message"]
            assert (body.get("type") == "error") == (path == "/v1/messages")
    codes = [span.llm.http_status for span in await gateway.spans()]
    assert codes == [400, 400, 429, 400, 400]
