"""Both APIs, streamed, through the gateway to the builtin engine: the recorded ids are those of the engine itself."""

from typing import Any

import anthropic
import openai
import pytest

from headrace.schemas.packing import unpack_float32, unpack_int32

pytestmark = pytest.mark.kafka
TEXT = "Please pick the digit 5."
MESSAGES: Any = [{"role": "user", "content": TEXT}]
SAMPLING: dict[str, Any] = {"seed": 4, "temperature": 2.0, "ignore_eos": True}


async def test_the_tokens_of_the_engine(start_gateway: Any, engine: Any) -> None:
    gateway = await start_gateway(engine_urls=(engine.url,))
    base = gateway.url + "/rollout/r1/attempt/r1-1"
    async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0) as direct:
        wanted: Any = await direct.chat.completions.create(
            model="policy",
            messages=MESSAGES,
            max_tokens=10,
            logprobs=True,
            extra_body={**SAMPLING, "return_token_ids": True},
        )
    text = wanted.choices[0].message.content
    async with openai.AsyncOpenAI(base_url=base + "/v1", api_key="none", max_retries=0) as client:
        async with client.responses.stream(
            model="policy", input=TEXT, extra_body={**SAMPLING, "max_output_tokens": 10}
        ) as stream:
            kinds = [event.type async for event in stream]
        response = await client.responses.create(
            model="policy", input=TEXT, extra_body={**SAMPLING, "max_output_tokens": 10}
        )
    assert kinds[-1] == "response.incomplete"
    assert kinds.count("response.output_text.delta") > 1
    assert response.output_text == text
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    async with (
        anthropic.AsyncAnthropic(base_url=base, api_key="none", max_retries=0) as client,
        client.messages.stream(model="policy", max_tokens=10, messages=MESSAGES, extra_body=SAMPLING) as stream,
    ):
        message = await stream.get_final_message()
    assert (message.content[0].text, message.stop_reason) == (text, "max_tokens")
    assert message.usage.output_tokens == response.usage.output_tokens == 10
    spans = await gateway.spans()
    assert len(spans) == 3
    for span in spans:
        (choice,) = span.llm.choices
        assert unpack_int32(span.llm.prompt_token_ids) == wanted.prompt_token_ids
        assert unpack_int32(choice.response_token_ids) == wanted.choices[0].token_ids
        logprobs = [entry.logprob for entry in wanted.choices[0].logprobs.content]
        assert unpack_float32(choice.logprobs) == pytest.approx(logprobs, abs=1e-5)
        assert (choice.text, choice.finish_reason) == (text, "length")
