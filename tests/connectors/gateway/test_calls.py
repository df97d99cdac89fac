"""Calls through the gateway: what the engine is asked, what the client gets, what the span says."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import openai
import pytest
from aiohttp import web

from headrace.schemas.packing import unpack_float32, unpack_int32
from headrace.streams.tracecontext import attempt_trace_id

pytestmark = pytest.mark.kafka
PROMPT_IDS, RESPONSE_IDS, LOGPROBS = [1, 5, 9], [7, 8], [-0.25, -1.5]


async def test_the_span_has_what_was_sampled(gateway: Any, stub: Any) -> None:
    status, answer, headers = await gateway.chat(temperature=0.7, top_p=0.5, n=2, seed=3, max_tokens=4)
    assert status == 200
    assert headers["x-headrace-rollout-id"] == "r1"
    assert [c["message"]["content"] for c in answer["choices"]] == ["answer 0", "answer 1"]
    span = await gateway.span()
    assert (span.rollout_id, span.attempt_id, span.source, span.kind) == ("r1", "r1-1", "gateway", "CLIENT")
    assert span.trace_id == attempt_trace_id("r1", "r1-1")
    assert span.name == "chat policy"
    call = span.llm
    assert unpack_int32(call.prompt_token_ids) == PROMPT_IDS
    assert [c.index for c in call.choices] == [0, 1]
    for choice in call.choices:
        assert unpack_int32(choice.response_token_ids) == RESPONSE_IDS
        assert unpack_float32(choice.logprobs) == LOGPROBS
        assert choice.finish_reason == "stop"
    assert call.response_id == answer["id"]
    assert (call.policy, call.http_status, call.error) == ("policy", 200, None)
    assert (call.usage.input_tokens, call.usage.output_tokens) == (3, 2)
    assert json.loads(call.response) == answer
    assert json.loads(call.request)["top_p"] == 0.5
    attributes = json.loads(span.attributes)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.response.finish_reasons"] == ["stop", "stop"]
    assert attributes["gen_ai.request.max_tokens"] == 4
    assert span.start < span.end


async def test_training_traffic_is_sampled_from_the_whole_distribution(gateway: Any, stub: Any) -> None:
    await gateway.chat(temperature=0.7, top_p=0.5, top_k=3, presence_penalty=1, repetition_penalty=1.2, min_p=0.1)
    asked = stub.requests[0]
    assert (asked["temperature"], asked["top_p"], asked["top_k"], asked["min_p"]) == (0.7, 1.0, -1, 0.0)
    assert (asked["presence_penalty"], asked["frequency_penalty"], asked["repetition_penalty"]) == (0, 0, 1)
    sampling = (await gateway.span()).llm.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.repetition_penalty) == (0.7, 1, -1, 1)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/rollout/r1/attempt/a/v1/chat/completions", {"x-headrace-mode": "val"}),
        ("/v1/chat/completions", {"x-rollout-id": "r1"}),
    ],
)
async def test_other_traffic_keeps_its_sampling(gateway: Any, stub: Any, path: str, headers: dict[str, str]) -> None:
    await gateway.chat(path, headers, temperature=0.7, top_p=0.5, top_k=3)
    asked = stub.requests[0]
    assert (asked["top_p"], asked["top_k"]) == (0.5, 3)
    assert "repetition_penalty" not in asked
    sampling = (await gateway.span()).llm.sampling
    assert (sampling.top_p, sampling.top_k) == (0.5, 3)


async def test_constraints_are_recorded(gateway: Any) -> None:
    await gateway.chat(response_format={"type": "json_object"}, logit_bias={"5": 1.0})
    constraints = json.loads((await gateway.span()).llm.sampling.constraints)
    assert constraints == {"response_format": {"type": "json_object"}, "logit_bias": {"5": 1.0}}


async def test_the_client_gets_only_what_it_asked_for(gateway: Any) -> None:
    _, plain, _ = await gateway.chat()
    assert "prompt_token_ids" not in plain
    assert "token_ids" not in plain["choices"][0]
    assert plain["choices"][0]["logprobs"] is None
    _, full, _ = await gateway.chat(logprobs=True, return_token_ids=True)
    assert full["prompt_token_ids"] == PROMPT_IDS
    assert full["choices"][0]["token_ids"] == RESPONSE_IDS
    assert [entry["logprob"] for entry in full["choices"][0]["logprobs"]["content"]] == LOGPROBS


async def test_outside_calls_are_rollouts_of_their_own(gateway: Any) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    ids = []
    for headers in ({}, {}, {"traceparent": parent}, {"x-rollout-id": "mine", "x-attempt-id": "mine-1"}):
        _, _, answered = await gateway.chat("/v1/chat/completions", headers)
        ids.append(answered["x-headrace-rollout-id"])
    assert ids[0] != ids[1]
    assert ids[2:] == ["0af7651916cd43dd8448eb211c80319c", "mine"]
    spans = await gateway.spans()
    assert [span.rollout_id for span in spans] == ids
    assert [span.attempt_id for span in spans] == [None, None, None, "mine-1"]
    assert (spans[2].trace_id, spans[2].parent_id) == (ids[2], "b7ad6b7169203331")


async def test_the_unmodified_openai_client(gateway: Any, stub: Any) -> None:
    client = openai.AsyncOpenAI(base_url=gateway.url + "/rollout/r%2F1/attempt/a/v1", api_key="none")
    answer = await client.chat.completions.create(model="policy", messages=[{"role": "user", "content": "é"}])
    assert answer.choices[0].message.content == "answer 0"
    assert [model.id for model in (await client.models.list()).data] == ["policy"]
    span = await gateway.span()
    assert (span.rollout_id, span.llm.retry_count) == ("r/1", 0)
    assert json.loads(span.llm.request)["messages"][0]["content"] == "é"
    await client.close()


async def test_an_answer_asked_for_again_says_so(gateway: Any) -> None:
    await gateway.chat(headers={"x-stainless-retry-count": "2"})
    assert (await gateway.span()).llm.retry_count == 2


async def test_the_engines_own_version_wins(gateway: Any, stub: Any, make_completion: Any) -> None:
    async def answer(fields: dict[str, Any]) -> web.StreamResponse:
        extra = {"policy_version": {"min": 4, "max": 5}, "weights_id": "w5", "logprobs_mode": "processed"}
        return web.json_response(make_completion(fields, **extra))

    stub.handler = answer
    await gateway.chat()
    call = (await gateway.span()).llm
    assert (call.policy_version.min, call.policy_version.max) == (4, 5)
    assert (call.weights_id, call.logprobs_mode) == ("w5", "processed")


async def test_a_call_waits_for_an_engine_that_is_starting(
    start_gateway: Callable[..., Awaitable[Any]], stub: Any
) -> None:
    gateway = await start_gateway()
    calling = asyncio.create_task(gateway.chat())
    await asyncio.sleep(0.1)
    assert not calling.done()
    await gateway.announce(stub.url)
    assert (await calling)[0] == 200


async def test_an_engine_given_by_url_is_asked_what_it_serves(
    start_gateway: Callable[..., Awaitable[Any]], stub: Any
) -> None:
    gateway = await start_gateway(engine_urls=(stub.url,))
    assert (await gateway.chat(model="anything"))[0] == 200
    assert stub.requests[0]["model"] == "served"
