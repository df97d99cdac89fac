"""The unmodified OpenAI client through the gateway to the builtin engine: ids are those of the engine itself."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import openai
import pytest

from headrace.schemas.packing import unpack_float32, unpack_int32

pytestmark = pytest.mark.kafka
MESSAGES: list[Any] = [{"role": "user", "content": "Please pick the digit 5."}]
FIELDS: dict[str, Any] = {"model": "policy", "seed": 4, "max_tokens": 10, "temperature": 2.0}
IDS = {"return_token_ids": True, "ignore_eos": True}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


class Both:
    """One client of the gateway, one of the engine behind it."""

    def __init__(self, gateway: Any, engine: Any) -> None:
        self.gateway = gateway
        url = gateway.rollout_url().removesuffix("/chat/completions")
        self.through = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        self.direct = openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0)


@pytest.fixture
async def both(start_gateway: Callable[..., Awaitable[Any]], engine: Any) -> AsyncIterator[Both]:
    clients = Both(await start_gateway(engine_urls=(engine.url,)), engine)
    yield clients
    await clients.through.close()
    await clients.direct.close()


def is_recorded(span: Any, answer: Any, prompt: list[int]) -> None:
    """The span has the ids and log-probabilities of an answer of the engine itself."""
    assert unpack_int32(span.llm.prompt_token_ids) == prompt
    assert len(span.llm.choices) == len(answer.choices)
    for mine, theirs in zip(span.llm.choices, answer.choices, strict=True):
        assert unpack_int32(mine.response_token_ids) == theirs.token_ids
        logprobs = getattr(theirs.logprobs, "token_logprobs", None)
        if logprobs is None:
            logprobs = [entry.logprob for entry in theirs.logprobs.content]
        assert unpack_float32(mine.logprobs) == pytest.approx(logprobs, abs=1e-5)
        assert mine.finish_reason == theirs.finish_reason
        assert mine.text == (theirs.text if hasattr(theirs, "text") else theirs.message.content)
    assert (span.llm.policy_version.min, span.llm.policy_version.max) == (0, 0)
    assert (span.llm.logprobs_mode, span.llm.policy) == ("processed", "policy")
    assert span.llm.usage.output_tokens == answer.usage.completion_tokens


async def test_chat_streamed_and_whole(both: Both) -> None:
    chat = both.direct.chat.completions
    wanted: Any = await chat.create(**FIELDS, messages=MESSAGES, n=3, logprobs=True, extra_body=IDS)
    plain = {"ignore_eos": True}
    whole = await both.through.chat.completions.create(**FIELDS, messages=MESSAGES, n=3, extra_body=plain)
    said = ["", "", ""]
    chunks: list[Any] = []
    async for chunk in await both.through.chat.completions.create(
        **FIELDS, messages=MESSAGES, n=3, stream=True, stream_options={"include_usage": True}, extra_body=plain
    ):
        chunks.append(chunk)
        for choice in chunk.choices:
            said[choice.index] += choice.delta.content or ""
            assert (choice.logprobs, "token_ids" in choice.model_extra) == (None, False)
    assert said == [c.message.content for c in whole.choices] == [c.message.content for c in wanted.choices]
    assert chunks[-1].usage == whole.usage
    assert len(chunks) > 6
    for span in await both.gateway.spans():
        is_recorded(span, wanted, wanted.prompt_token_ids)
        assert len(json.loads(span.llm.response)["choices"]) == 3


async def test_texts_streamed_and_whole(both: Both) -> None:
    fields: dict[str, Any] = FIELDS | {"prompt": "Please pick"}
    wanted: Any = await both.direct.completions.create(**fields, n=2, logprobs=1, extra_body=IDS)
    plain = {"ignore_eos": True}
    whole = await both.through.completions.create(**fields, n=2, extra_body=plain)
    ids = wanted.choices[0].prompt_token_ids
    await both.through.completions.create(**fields | {"prompt": ids}, n=2, extra_body=plain)
    said = ["", ""]
    async for chunk in await both.through.completions.create(**fields, n=2, stream=True, extra_body=plain):
        for choice in chunk.choices:
            said[choice.index] += choice.text
    assert said == [c.text for c in whole.choices] == [c.text for c in wanted.choices]
    spans = await both.gateway.spans()
    assert [span.name for span in spans] == ["text_completion policy"] * 3
    for span in spans:
        is_recorded(span, wanted, ids)


async def test_a_stream_that_was_left_is_incomplete_and_its_tokens_are_a_beginning(both: Both) -> None:
    fields: dict[str, Any] = FIELDS | {"messages": MESSAGES, "max_tokens": 900}
    wanted: Any = await both.direct.chat.completions.create(**fields, extra_body=IDS)
    stream = await both.through.chat.completions.create(**fields, stream=True, extra_body={"ignore_eos": True})
    for _ in range(5):
        await anext(stream)
    await stream.close()
    (span,) = await both.gateway.wait_for_spans(1)
    (choice,) = span.llm.choices
    ids = unpack_int32(choice.response_token_ids)
    assert choice.finish_reason is None
    assert 0 < len(ids) < 900
    assert ids == wanted.choices[0].token_ids[: len(ids)]
    assert unpack_int32(span.llm.prompt_token_ids) == wanted.prompt_token_ids
    assert len(unpack_float32(choice.logprobs)) == len(ids)


async def test_tools_are_passed_on(both: Both) -> None:
    through = both.through.chat.completions
    answer = await through.create(**FIELDS, messages=MESSAGES, tools=TOOLS, tool_choice="auto")
    assert answer.choices[0].finish_reason in ("stop", "length")
    with pytest.raises(openai.BadRequestError, match="tool_choice"):
        await through.create(**FIELDS, messages=MESSAGES, tools=TOOLS, tool_choice="required")
    spans = await both.gateway.spans()
    assert [json.loads(span.llm.request)["tools"] for span in spans] == [TOOLS, TOOLS]
    assert json.loads(spans[1].llm.sampling.constraints) == {"tool_choice": "required"}
