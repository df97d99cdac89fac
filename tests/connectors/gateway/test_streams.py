"""Streamed calls: passed on as they come, recorded whole, and what happens when either side goes away."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web

from headrace.schemas.packing import unpack_float32, unpack_int32
from headrace.schemas.records import Span
from headrace.streams.assembly.recognise import read_call
from headrace.streams.assembly.records import LoggedSpan
from headrace.streams.assembly.values import Call, Node
from tests.waiting import eventually

pytestmark = pytest.mark.kafka
StartGateway = Callable[..., Awaitable[Any]]
MESSAGES: list[Any] = [{"role": "user", "content": "x"}]
PROMPT = {"prompt_token_ids": [1, 5, 9]}


def call_of(span: Span) -> Call | None:
    """As assembly reads it."""
    return read_call(Node(LoggedSpan(span, 0, 0), 0))


async def events(response: Any) -> list[str]:
    """The data of all events that are still to come."""
    body = (await response.content.read()).decode()
    return [part.removeprefix("data: ") for part in body.split("\n\n") if part]


async def next_event(response: Any) -> Any:
    line = (await response.content.readuntil(b"\n\n")).decode()
    return json.loads(line.removeprefix("data: "))


async def test_each_event_goes_out_as_it_comes_and_the_last_with_its_span(gateway: Any, stub: Any) -> None:
    go_on = asyncio.Event()

    async def stream(out: Any, fields: dict[str, Any]) -> None:
        assert (fields["logprobs"], fields["return_token_ids"], fields["stream"]) == (True, True, True)
        await out.chunk("a", [1], **PROMPT, policy_version={"min": 2, "max": 2})
        await go_on.wait()
        go_on.clear()
        await out.chunk("b", [2], policy_version={"min": 3, "max": 3})
        await out.chunk("c", [3], "stop")
        await go_on.wait()
        await out.done()

    stub.streamer = stream
    async with gateway.streaming(temperature=0.5) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert response.headers["x-headrace-rollout-id"] == "r1"
        first = await next_event(response)
        assert first["choices"][0]["delta"] == {"content": "a"}
        assert "token_ids" not in first["choices"][0]
        go_on.set()
        assert (await next_event(response))["choices"][0]["delta"] == {"content": "b"}
        with pytest.raises(TimeoutError):  # the end is held back
            async with asyncio.timeout(0.1):
                await response.content.readuntil(b"\n\n")
        assert await gateway.spans() == []
        go_on.set()
        last = await next_event(response)
        assert len(await gateway.spans()) == 1
        assert last["choices"][0]["finish_reason"] == "stop"
        assert await events(response) == ["[DONE]"]
    span = await gateway.span()
    call = span.llm
    assert unpack_int32(call.prompt_token_ids) == [1, 5, 9]
    (choice,) = call.choices
    assert unpack_int32(choice.response_token_ids) == [1, 2, 3]
    assert unpack_float32(choice.logprobs) == [-0.5, -1, -1.5]
    assert (choice.text, choice.finish_reason) == ("abc", "stop")
    assert (call.policy_version.min, call.policy_version.max, call.response_id) == (2, 3, "c1")
    assert (call.http_status, call.error, call.usage.output_tokens) == (200, None, 3)
    assert json.loads(call.response)["choices"][0]["message"]["content"] == "abc"
    attributes = json.loads(span.attributes)
    assert attributes["gen_ai.request.stream"] is True
    assert 0 < attributes["gen_ai.response.time_to_first_chunk"] < (span.end - span.start) / 1e9


async def test_who_hangs_up_ends_the_engines_work_and_leaves_an_incomplete_span(gateway: Any, stub: Any) -> None:
    waits = asyncio.Event()

    async def stream(out: Any, fields: dict[str, Any]) -> None:
        if fields["seed"] == 1:  # before its first token
            waits.set()
            await asyncio.sleep(0.2)
        await out.chunk("a", [1], **PROMPT)
        while True:
            await asyncio.sleep(0.01)
            await out.chunk("b", [2])

    stub.streamer = stream
    async with gateway.streaming(seed=0) as response:
        await next_event(response)
        response.close()
    (span,) = await gateway.wait_for_spans(1)
    waiting = asyncio.create_task(gateway.session.post(gateway.rollout_url(), json=stub.requests[0] | {"seed": 1}))
    await waits.wait()
    waiting.cancel()
    await gateway.wait_for_spans(2)
    await eventually(lambda: stub.hung_up == 2)
    assert (span.status.code, span.llm.error, span.llm.http_status) == ("UNSET", None, 200)
    (choice,) = span.llm.choices
    assert choice.finish_reason is None
    assert choice.text.startswith("a")
    assert unpack_int32(choice.response_token_ids)[0] == 1
    assert json.loads(span.attributes)["headrace.hung_up"] is True
    found = call_of(span)
    assert found is not None
    assert (found.incomplete, found.failed, found.has_tokens) == (True, False, True)


async def test_an_engine_that_dies_in_the_middle_is_an_error_event(gateway: Any, stub: Any) -> None:
    async def stream(out: Any, fields: dict[str, Any]) -> None:
        await out.chunk("a", [1], **PROMPT)
        raise asyncio.CancelledError  # closes the connection

    stub.streamer = stream
    client = openai.AsyncOpenAI(base_url=gateway.rollout_url().removesuffix("/chat/completions"), api_key="none")
    answer = await client.chat.completions.create(model="policy", messages=MESSAGES, stream=True)
    assert (await anext(answer)).choices[0].delta.content == "a"
    with pytest.raises(openai.APIError, match="went away"):
        await anext(answer)
    assert len(stub.requests) == 1
    span = await gateway.span()
    assert (span.status.code, span.llm.error.type, span.llm.http_status) == ("ERROR", "engine_lost", 200)
    assert unpack_int32(span.llm.choices[0].response_token_ids) == [1]
    found = call_of(span)
    assert found is not None
    assert found.failed
    await client.close()


async def test_errors_of_the_engine(gateway: Any, stub: Any) -> None:
    async def refuse(fields: dict[str, Any]) -> web.StreamResponse:
        error = {"error": {"message": "too long", "type": "invalid_request_error", "code": "x"}}
        return web.json_response(error, status=400)

    async def lost_once(out: Any, fields: dict[str, Any]) -> None:
        if len(stub.requests) == before + 1:
            raise asyncio.CancelledError  # closes the connection
        await out.chunk("a", [1], "stop")
        await out.done()

    async def fail(out: Any, fields: dict[str, Any]) -> None:
        await out.chunk("a", [1], **PROMPT)
        await out.event({"error": {"message": "out of memory", "code": 500}})
        await out.done()

    stub.handler = refuse
    async with gateway.streaming() as response:  # before the stream they are plain answers
        assert (response.status, (await response.json())["error"]["message"]) == (400, "too long")
    stub.handler = None  # answers without a stream
    async with gateway.streaming() as response:
        assert (response.status, (await response.json())["error"]["code"]) == (502, "engine_garbage")
    async with gateway.streaming(stream="yes") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "invalid_type")
    before, stub.streamer = len(stub.requests), lost_once
    async with gateway.streaming() as response:  # it may be tried again
        assert len(await events(response)) == 2
    stub.streamer = fail
    async with gateway.streaming() as response:
        got = await events(response)
    assert len(got) == 2
    assert "out of memory" in json.loads(got[1])["error"]["message"]
    errors = [span.llm.error and span.llm.error.type for span in await gateway.spans()]
    assert errors == ["engine_error", "engine_garbage", "invalid_type", None, "engine_error"]


async def test_an_engine_that_is_too_slow(start_gateway: StartGateway, stub: Any) -> None:
    async def stream(out: Any, fields: dict[str, Any]) -> None:
        await out.chunk("a", [1], **PROMPT)
        await asyncio.sleep(60)

    stub.streamer = stream
    gateway = await start_gateway(gateway_engine_timeout=0.3)
    await gateway.announce(stub.url)
    async with gateway.streaming() as response:
        got = await events(response)
    assert json.loads(got[-1])["error"]["code"] == "engine_timeout"
    assert (await gateway.span()).llm.error.type == "engine_timeout"


async def test_without_a_broker_the_last_event_is_an_error(start_gateway: StartGateway, stub: Any, kafka: Any) -> None:
    if not kafka.pid:
        pytest.skip("the broker of HEADRACE_TEST_BOOTSTRAP is not ours to stop")

    async def stream(out: Any, fields: dict[str, Any]) -> None:
        await out.chunk("a", [1], **PROMPT)
        await out.chunk("b", [2], "stop")
        await out.done()

    stub.streamer = stream
    gateway = await start_gateway(gateway_broker_wait=2)
    await gateway.announce(stub.url)
    async with gateway.streaming() as response:  # connects to the broker
        assert len(await events(response)) == 3
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        async with gateway.streaming() as response:
            got = await events(response)
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    assert json.loads(got[0])["choices"][0]["delta"] == {"content": "a"}
    assert [json.loads(data)["error"]["code"] for data in got[1:]] == ["broker_unavailable"]
    assert len(await gateway.wait_for_spans(2)) == 2


async def test_a_busy_engine_is_asked_again_when_it_says(gateway: Any, stub: Any, make_completion: Any) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        if len(stub.requests) == 3:
            return web.json_response(make_completion(fields))
        seconds = "0.1" if len(stub.requests) < 3 else "100"  # longer than a call waits
        return web.json_response({"error": {"message": "busy"}}, status=429, headers={"retry-after": seconds})

    stub.handler = answer
    assert (await gateway.chat())[0] == 200
    assert len(stub.requests) == 3
    async with asyncio.timeout(50):
        status, body, headers = await gateway.chat()
    assert (status, body["error"]["message"]) == (429, "busy")
    assert {name.lower(): value for name, value in headers.items()}["retry-after"] == "100"
    assert len(stub.requests) == 4
    assert [span.llm.http_status for span in await gateway.spans()] == [200, 429]


async def test_models_and_what_is_not_served(gateway: Any) -> None:
    client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0)
    assert (await client.models.retrieve("policy")).id == "policy"
    with pytest.raises(openai.NotFoundError, match="no engine serves 'gpt-4'"):
        await client.models.retrieve("gpt-4")
    with pytest.raises(openai.NotFoundError, match="embeddings"):
        await client.embeddings.create(model="policy", input="x")
    await client.close()

    async def ask(**fields: Any) -> tuple[int, str]:
        async with gateway.session.post(f"{gateway.url}/v1/completions", json=fields) as response:
            return response.status, (await response.json())["error"]["param"]

    assert await ask() == (400, "prompt")
    assert await ask(prompt=["a", "b"]) == (400, "prompt")
    assert await ask(prompt="a", echo=True) == (400, "echo")
    assert {span.name for span in await gateway.spans()} == {"text_completion unknown"}


async def test_a_client_that_does_not_read_holds_up_its_engine(gateway: Any, stub: Any) -> None:
    written = 0

    async def stream(out: Any, fields: dict[str, Any]) -> None:
        nonlocal written
        for _ in range(2000):
            await out.chunk("x" * 10_000, [1])
            written += 1
        await out.chunk("", [2], "stop")
        await out.done()

    stub.streamer = stream
    connector = aiohttp.TCPConnector()
    async with (
        aiohttp.ClientSession(connector=connector, read_bufsize=2**14) as session,
        session.post(gateway.rollout_url(), json={"messages": MESSAGES, "stream": True}) as response,
    ):
        before = -1
        while written != before:  # until it stands still
            before = written
            await asyncio.sleep(0.1)
        assert written < 2000
        size = 0
        async for data in response.content.iter_any():
            size += len(data)
        assert size > 2000 * 10_000
    assert len(unpack_int32((await gateway.span()).llm.choices[0].response_token_ids)) == 2001
