"""Conversations through the gateway to the builtin engine: no id of a turn changes in the next one's prompt."""

import itertools
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web

from headrace.schemas.packing import unpack_int32
from headrace.schemas.records import AttemptEvent, Span, TaskFacts
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble
from headrace.trainers.rows import make_rows
from tests.connectors.conftest import EngineProcess
from tests.connectors.gateway.conftest import completion, serve_stub

pytestmark = pytest.mark.kafka
# Strips what was thought, and the space around what was said, of earlier turns.
STRIPPING = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content.split('</think>')[-1] | trim }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SAMPLING: dict[str, Any] = {"model": "policy", "temperature": 5.0, "max_tokens": 3}
TURNS = 50


@pytest.fixture(scope="module")
def engine_url(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("models") / "stripping"
    shutil.copytree(model_dir, directory)
    (directory / "chat_template.jinja").write_text(STRIPPING)
    running = EngineProcess(directory, "--seed", "7")
    yield running.url
    assert running.stop() == 0


@pytest.fixture
async def gateway(start_gateway: Callable[..., Awaitable[Any]], engine_url: str) -> Any:
    return await start_gateway(engine_urls=(engine_url,), gateway_token_in=True)


def client_of(gateway: Any, rollout: str, **more: Any) -> openai.AsyncOpenAI:
    base = f"{gateway.url}/rollout/{rollout}/attempt/{rollout}-1/v1"
    return openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0, **more)


async def said(stream: Any) -> str:
    """What a stream says."""
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def talk(client: openai.AsyncOpenAI, turns: int) -> None:
    """Every other answer is streamed; some turns are cut at three tokens, and some end in a stop string or token."""
    chat: Any = client.chat.completions
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": str(turn % 10)})
        fields = SAMPLING | {"messages": messages, "seed": turn, "stop": ["e"] if turn % 5 == 4 else None}
        if turn % 2:
            content = await said(await chat.create(**fields, stream=True))
        else:
            content = (await chat.create(**fields)).choices[0].message.content
        messages.append({"role": "assistant", "content": content})


def rows_of(spans: list[Span]) -> tuple[int, dict[str, int], int]:
    """How many rows, why they begin, and how many responses they train."""
    rollout, attempt = spans[0].rollout_id, spans[0].attempt_id
    records = RolloutRecords(rollout)
    start = AttemptEvent(rollout_id=rollout, attempt_id=attempt, type="started", task=TaskFacts(), at=0)
    records.add_event(start, 0, 0)
    for offset, span in enumerate(spans):
        records.add_span(span, offset, 1)
    ended = AttemptEvent(rollout_id=rollout, attempt_id=attempt, type="succeeded", final=True, at=0)
    records.add_event(ended, 1, 2)
    made = make_rows(assemble(records, AssemblySettings(), assembled_at=0))
    return len(made.rows), dict(made.reasons), sum(len(row.turns) for row in made.rows)


def results(spans: list[Span]) -> list[str | None]:
    return [json.loads(span.attributes).get("headrace.token_in") for span in spans]


async def test_fifty_turns_are_one_row(gateway: Any) -> None:
    async with client_of(gateway, "exact") as client:
        await talk(client, TURNS)
    spans = await gateway.spans()
    assert results(spans) == ["first"] + ["continued"] * (TURNS - 1)
    assert {span.llm.choices[0].finish_reason for span in spans} == {"length", "stop"}
    for before, after in itertools.pairwise(spans):
        whole = before.llm.prompt_token_ids + before.llm.choices[0].response_token_ids
        assert after.llm.prompt_token_ids.startswith(whole)
        assert after.llm.prompt_token_ids != whole
    assert rows_of(spans) == (1, {"first": 1}, TURNS)


async def test_without_it_the_same_turns_drift(gateway: Any) -> None:
    async with client_of(gateway, "drifting", default_headers={"x-headrace-token-in": "no"}) as client:
        await talk(client, 10)
    spans = await gateway.spans()
    assert results(spans) == [None] * 10
    count, reasons, responses = rows_of(spans)
    assert count > 5
    assert reasons["retokenised"] > 4
    assert responses == 10


async def test_several_choices_each_continue(gateway: Any) -> None:
    asked = [{"role": "user", "content": "5"}]
    async with client_of(gateway, "tree") as client:
        chat: Any = client.chat.completions
        answer = await chat.create(**SAMPLING, messages=asked, n=3, seed=1)
        for choice in answer.choices:
            turn = {"role": "assistant", "content": choice.message.content}
            await chat.create(**SAMPLING, messages=[*asked, turn, *asked])
    first, *others = await gateway.spans()
    assert results(others) == ["continued"] * 3
    for choice, span in zip(first.llm.choices, others, strict=True):
        assert span.llm.prompt_token_ids.startswith(first.llm.prompt_token_ids + choice.response_token_ids)


async def test_other_apis(gateway: Any) -> None:
    base = f"{gateway.url}/rollout/apis/attempt/apis-1"
    fields: dict[str, Any] = {"temperature": 5.0, "seed": 3}
    async with anthropic.AsyncAnthropic(base_url=base, api_key="none", max_retries=0) as client:
        messages: list[Any] = [{"role": "user", "content": "5"}]
        message = await client.messages.create(model="policy", max_tokens=3, messages=messages, extra_body=fields)
        messages += [{"role": "assistant", "content": message.content}, *messages]
        await client.messages.create(model="policy", max_tokens=3, messages=messages, extra_body=fields)
    async with client_of(gateway, "apis") as client:
        responses: Any = client.responses
        given = await responses.create(model="policy", input="6", max_output_tokens=30, extra_body=fields)
        items = [{"role": "user", "content": "6"}, *given.output, {"role": "user", "content": "6"}]
        await responses.create(model="policy", input=items, max_output_tokens=3, extra_body=fields)
    spans = await gateway.spans()
    assert results(spans) == ["first", "continued"] * 2


async def test_why_a_conversation_is_not_continued_is_told_and_counted(gateway: Any) -> None:
    asked = [{"role": "user", "content": "5"}]
    async with client_of(gateway, "edited") as client:
        chat: Any = client.chat.completions
        await chat.create(**SAMPLING, messages=asked)
        edited = [*asked, {"role": "assistant", "content": "something else"}, *asked]
        answer = await chat.create(**SAMPLING, messages=edited, extra_body={"return_token_ids": True})
    spans = await gateway.spans()
    assert results(spans) == ["first", "unknown_history"]
    assert unpack_int32(spans[1].llm.prompt_token_ids) == answer.prompt_token_ids


async def test_an_engine_without_the_means(start_gateway: Callable[..., Awaitable[Any]], stub: Any) -> None:
    client = await start_gateway(engine_urls=(stub.url,), gateway_token_in=True)
    asked = [{"role": "user", "content": "5"}]
    for _ in range(2):
        status, answer, _ = await client.chat(messages=asked)
        assert status == 200
        asked += [answer["choices"][0]["message"], *asked[:1]]
    assert results(await client.spans()) == ["first", "engine"]
    assert "kv_transfer_params" not in stub.requests[1]


async def tokens(asked: dict[str, Any]) -> web.StreamResponse:
    """A letter is a token."""
    text = "".join(f"<{message['content']}>" for message in asked["messages"])
    return web.json_response({"tokens": [*map(ord, text)]})


async def too_long(asked: dict[str, Any]) -> web.StreamResponse:
    """Takes messages, and no ids."""
    if "kv_transfer_params" in asked:
        return web.json_response({"error": {"message": "the prompt is too long"}}, status=400)
    return web.json_response(completion(asked))


async def broken(asked: dict[str, Any]) -> web.StreamResponse:
    del asked
    raise ConnectionResetError


async def of_no_record(asked: dict[str, Any]) -> web.StreamResponse:
    del asked
    return web.json_response({"tokens": [2**31]})


async def busy(asked: dict[str, Any]) -> web.StreamResponse:
    del asked
    return web.Response(status=503)


async def test_a_call_never_fails_of_being_continued(start_gateway: Callable[..., Awaitable[Any]], stub: Any) -> None:
    stub.handler = too_long
    client = await start_gateway(engine_urls=(stub.url,), gateway_token_in=True)
    asked: list[dict[str, Any]] = [{"role": "user", "content": "5"}]
    for tokenizer in (None, busy, tokens, tokens, broken):
        stub.tokenizer = tokenizer
        status, answer, _ = await client.chat(messages=asked)
        assert status == 200
        asked += [answer["choices"][0]["message"], *asked[:1]]
    assert results(await client.spans()) == ["first", "engine", "refused", "refused", "engine"]
    async with serve_stub() as other:
        other.tokenizer = of_no_record
        client = await start_gateway(engine_urls=(other.url,), gateway_token_in=True)
        for messages in (asked[:1], [*asked[:1], {"role": "assistant", "content": "answer 0"}, *asked[:1]]):
            assert (await client.chat(messages=messages))[0] == 200
        assert results(await client.spans()) == ["first", "engine"]
