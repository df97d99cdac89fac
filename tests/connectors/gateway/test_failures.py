"""What goes wrong: the agent gets the right HTTP error, the span records it, nothing is answered without its span."""

import asyncio
import gzip
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from headrace.schemas.packing import unpack_float32, unpack_int32

pytestmark = pytest.mark.kafka
StartGateway = Callable[..., Awaitable[Any]]
NOBODY = "http://127.0.0.1:9"


DEEP = "[" * 500 + "]" * 500  # orjson reads it, and cannot write it
GARBAGE = [
    "<html>",
    "[]",
    "{}",
    '{"choices": []}',
    '{"choices": [{"index": 0}]}',
    '{"choices": [7]}',
    "",
    '{"choices": [' + DEEP + "]}",
]
UNFIT_IDS: list[Any] = [[7], ["x", 8], [2**40, 1], "78", [7.5, 8]]
BAD_REQUESTS = [
    (b"{", "invalid_json"),
    (b"\xff\xfe", "invalid_json"),
    (b"[]", "invalid_type"),
    (b'{"model": "policy"}', "invalid_type"),
    (b'{"messages": [], "temperature": "hot"}', "invalid_type"),
    (b'{"messages": [], "stream": 1}', "invalid_type"),
    (b'{"messages": [], "x": ' + DEEP.encode() + b"}", "invalid_json"),
]
BAD_PATHS: list[tuple[str, str, dict[str, str], int]] = [
    ("GET", "/v1/chat/completions", {}, 405),
    ("POST", "/v1/models", {}, 405),
    ("POST", "/v1/embeddings", {}, 404),
    ("POST", "/rollout/r1/v1/chat/completions", {}, 404),
    ("POST", "/rollout//attempt/a/v1/chat/completions", {}, 404),
    ("POST", "/rollout/r~2/attempt/a/v1/chat/completions", {}, 400),
    ("POST", "/rollout/r%0A/attempt/a/v1/chat/completions", {}, 400),
    ("POST", f"/rollout/{'r' * 600}/attempt/a/v1/chat/completions", {}, 400),
    ("POST", "/v1/chat/completions", {"x-headrace-mode": "practice"}, 400),
    ("POST", "/v1/chat/completions", {"x-session-id": "s" * 600}, 400),
]


async def test_garbage_is_a_bad_gateway(gateway: Any, stub: Any) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        return web.Response(text=GARBAGE[len(stub.requests) - 1], content_type="application/json")

    stub.handler = answer
    for body in GARBAGE:
        status, error, headers = await gateway.chat()
        assert (status, error["error"]["code"]) == (502, "engine_garbage"), body
        assert headers["x-headrace-rollout-id"] == "r1"
    spans = await gateway.spans()
    assert len(spans) == len(GARBAGE)
    for span in spans:
        assert span.status.code == "ERROR"
        assert (span.llm.http_status, span.llm.error.type, span.llm.choices) == (502, "engine_garbage", [])
        assert json.loads(span.llm.response)["error"]["code"] == "engine_garbage"


async def test_without_token_ids_the_agent_still_gets_its_answer(gateway: Any, stub: Any, make_completion: Any) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        return web.json_response(make_completion({**fields, "return_token_ids": False, "logprobs": False}))

    stub.handler = answer
    status, body, _ = await gateway.chat()
    assert (status, body["choices"][0]["message"]["content"]) == (200, "answer 0")
    call = (await gateway.span()).llm
    assert (call.prompt_token_ids, call.choices[0].response_token_ids, call.choices[0].logprobs) == (b"", b"", None)
    assert (call.error, call.choices[0].text) == (None, "answer 0")


async def test_ids_that_do_not_fit_are_recorded_as_they_came_or_left_out(
    gateway: Any, stub: Any, make_completion: Any
) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        body = make_completion(fields)
        body["choices"][0]["token_ids"] = UNFIT_IDS[len(stub.requests) - 1]
        return web.json_response(body)

    stub.handler = answer
    for _ in UNFIT_IDS:
        assert (await gateway.chat())[0] == 200
    choices = [span.llm.choices[0] for span in await gateway.spans()]
    assert [unpack_int32(choice.response_token_ids) for choice in choices] == [[7], [], [], [], []]
    assert {len(unpack_float32(choice.logprobs)) for choice in choices} == {2}


@pytest.mark.parametrize(
    ("status", "text", "passed"),
    [
        (400, '{"error": {"message": "too long", "type": "invalid_request_error", "code": "x"}}', 400),
        (500, '{"error": {"message": "broken", "type": "server_error"}}', 500),
        (404, "no such thing", 404),
        (500, "Internal Server Error", 502),
    ],
)
async def test_an_engines_own_error_is_passed_on(gateway: Any, stub: Any, status: int, text: str, passed: int) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        return web.Response(text=text, status=status)

    stub.handler = answer
    got, body, _ = await gateway.chat()
    assert got == passed
    assert body == json.loads(text) if text.startswith("{") else text in body["error"]["message"]
    call = (await gateway.span()).llm
    assert (call.http_status, call.error.type) == (passed, "engine_error")


@pytest.mark.parametrize("announced", [True, False])
async def test_no_engine_is_unavailable(start_gateway: StartGateway, announced: bool) -> None:
    gateway = await start_gateway(gateway_engine_wait=0.6)
    if announced:
        await gateway.announce(NOBODY)
    began = time.monotonic()
    status, body, headers = await gateway.chat()
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "engine_unavailable", "1")
    assert time.monotonic() - began >= 0.6
    assert (await gateway.span()).llm.error.type == "engine_unavailable"


async def test_an_engine_that_takes_too_long_is_a_gateway_timeout(start_gateway: StartGateway, stub: Any) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    stub.handler = answer
    gateway = await start_gateway(gateway_engine_timeout=0.3)
    await gateway.announce(stub.url)
    status, body, _ = await gateway.chat()
    assert (status, body["error"]["code"]) == (504, "engine_timeout")
    assert (await gateway.span()).llm.http_status == 504


@pytest.mark.parametrize(("losses", "status"), [(1, 200), (2, 503)])
async def test_a_lost_connection_is_tried_once_more(
    gateway: Any, stub: Any, make_completion: Any, losses: int, status: int
) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        if len(stub.requests) > losses:
            return web.json_response(make_completion(fields))
        raise asyncio.CancelledError  # closes the connection without an answer

    stub.handler = answer
    got, _, _ = await gateway.chat()
    assert (got, len(stub.requests)) == (status, 2)
    assert (await gateway.span()).llm.http_status == status


async def test_what_is_no_http_is_a_bad_gateway(start_gateway: StartGateway) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    gateway = await start_gateway()
    await gateway.announce(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    status, body, _ = await gateway.chat()
    server.close()
    assert (status, body["error"]["code"]) == (502, "engine_garbage")
    assert (await gateway.span()).llm.error.type == "engine_garbage"


async def test_the_span_of_a_client_that_went_away_is_written(gateway: Any, stub: Any, make_completion: Any) -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        reached.set()
        await go.wait()
        return web.json_response(make_completion(fields))

    stub.handler = answer
    calling = asyncio.create_task(gateway.chat())
    await reached.wait()
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    go.set()
    (span,) = await gateway.wait_for_spans(1)
    assert unpack_int32(span.llm.choices[0].response_token_ids) == [7, 8]


async def test_a_request_that_cannot_be_is_refused_and_recorded(gateway: Any) -> None:
    for data, code in BAD_REQUESTS:
        async with gateway.session.post(gateway.rollout_url(), data=data) as response:
            assert response.status == 400
            assert (await response.json())["error"]["code"] == code, data
    calls = [span.llm for span in await gateway.spans()]
    assert [(call.http_status, call.error.type) for call in calls] == [(400, code) for _, code in BAD_REQUESTS]
    for call in calls:
        json.loads(call.request)


async def test_paths_and_ids_that_cannot_be(gateway: Any) -> None:
    for method, path, headers, status in BAD_PATHS:
        async with gateway.session.request(method, gateway.url + path, headers=headers, data=b"{}") as response:
            assert response.status == status, path
            assert (await response.json())["error"]["message"]
    assert await gateway.spans() == []


async def test_a_request_that_is_too_large(start_gateway: StartGateway, stub: Any) -> None:
    gateway = await start_gateway(gateway_max_body_bytes=2048)
    await gateway.announce(stub.url)
    status, body, _ = await gateway.chat(messages=[{"role": "user", "content": "x" * 4000}])
    assert (status, body["error"]["code"]) == (413, "request_too_large")
    assert (await gateway.span()).llm.error.type == "request_too_large"
    assert stub.requests == []


@pytest.mark.parametrize("where", ["request", "ids"])
async def test_a_call_larger_than_a_record(
    start_gateway: StartGateway, stub: Any, make_completion: Any, where: str
) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        body = make_completion(fields)
        if where == "ids":
            body["choices"][0]["token_ids"] = list(range(5000))
        return web.json_response(body)

    stub.handler = answer
    gateway = await start_gateway(max_message_bytes=4096, claim_check="off")
    await gateway.announce(stub.url)
    content = "x" * (5000 if where == "request" else 1)
    status, body, _ = await gateway.chat(messages=[{"role": "user", "content": content}])
    assert (status, body["error"]["code"]) == (413, "record_too_large")
    call = (await gateway.span()).llm
    assert (call.request, call.response, call.error.type) == (None, None, "record_too_large")
    assert len(call.choices) == (1 if where == "request" else 0)


async def test_without_a_broker_no_call_is_answered_and_no_span_is_lost(
    start_gateway: StartGateway, stub: Any, kafka: Any
) -> None:
    if not kafka.pid:
        pytest.skip("the broker of HEADRACE_TEST_BOOTSTRAP is not ours to stop")
    gateway = await start_gateway(gateway_broker_wait=60)
    hasty = await start_gateway(engine_urls=(stub.url,), gateway_broker_wait=1)
    await gateway.announce(stub.url)
    assert (await gateway.chat())[0] == 200
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        status, body, headers = await hasty.chat()
        waiting = asyncio.create_task(gateway.chat())
        done, _ = await asyncio.wait({waiting}, timeout=1)
        assert not done
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "broker_unavailable", "1")
    assert (await waiting)[0] == 200
    assert len(await gateway.wait_for_spans(3)) == 3


async def test_a_body_that_cannot_be_unpacked_is_refused_and_recorded(gateway: Any) -> None:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    for coding, body, status in (
        ("gzip", b"no gzip", 400),
        ("br", b"x", 415),
        ("gzip", gzip.compress(bytes(20_000_000)) * 300, 413),  # 6 GB would take a minute
    ):
        headers["content-encoding"] = coding
        began = time.process_time()
        async with gateway.session.post(gateway.rollout_url(), data=body, headers=headers) as response:
            assert response.status == status
        assert time.process_time() - began < 5
    assert [span.llm.http_status for span in await gateway.spans()] == [400, 415, 413]


async def test_a_status_that_is_no_error_is_garbage(gateway: Any, stub: Any) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "elsewhere"}}, status=302)

    stub.handler = answer
    status, error, _ = await gateway.chat()
    assert (status, error["error"]["code"]) == (502, "engine_garbage")


async def test_an_engines_retry_after_that_is_no_header_is_left_out(start_gateway: StartGateway) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 429 Busy\r\nretry-after: \x01\x7f\r\ncontent-length: 2\r\n\r\nno")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        gateway = await start_gateway(gateway_engine_wait=0.3)
        await gateway.announce(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        status, _, headers = await gateway.chat()
        assert status == 429
        assert "retry-after" not in headers
        assert (await gateway.span()).llm.http_status == 429
