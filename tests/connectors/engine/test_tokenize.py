"""`/tokenize` and prompts given as ids, as vLLM has them."""

from typing import Any

import aiohttp
import pytest

MESSAGES = [{"role": "user", "content": "Please pick the digit 5."}]
ASKED: dict[str, Any] = {"messages": MESSAGES, "max_tokens": 4, "seed": 3, "return_token_ids": True}


async def post(engine: Any, path: str, body: Any) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.post(engine.url + path, json=body) as response:
        return response.status, await response.json()


async def test_a_conversation_has_the_ids_of_its_prompt(engine: Any) -> None:
    _, answer = await post(engine, "/v1/chat/completions", ASKED)
    status, told = await post(engine, "/tokenize", {"model": "policy", "messages": MESSAGES, "return_token_strs": True})
    assert status == 200
    assert told["tokens"] == answer["prompt_token_ids"]
    assert (told["count"], told["max_model_len"]) == (len(told["tokens"]), 1024)
    assert "".join(told["token_strs"]).endswith("<|im_start|>assistant\n")
    _, closed = await post(engine, "/tokenize", {"messages": MESSAGES, "add_generation_prompt": False})
    assert told["tokens"][: closed["count"]] == closed["tokens"]
    assert closed["count"] < told["count"]
    _, text = await post(engine, "/tokenize", {"prompt": "<|im_start|>assistant\n", "add_special_tokens": False})
    assert text["tokens"] == told["tokens"][closed["count"] :]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_of_ids_is_taken_as_it_is(engine: Any, stream: bool) -> None:
    _, answer = await post(engine, "/v1/chat/completions", ASKED)
    other = {**ASKED, "messages": [{"role": "user", "content": "?"}], "stream": stream}
    other["kv_transfer_params"] = {"prompt_token_ids": answer["prompt_token_ids"]}
    if not stream:
        _, same = await post(engine, "/v1/chat/completions", other)
        assert same["prompt_token_ids"] == answer["prompt_token_ids"]
        assert same["choices"][0]["token_ids"] == answer["choices"][0]["token_ids"]
        return
    async with aiohttp.ClientSession() as session, session.post(f"{engine.url}/v1/chat/completions", json=other) as got:
        text = await got.text()
    assert f'"prompt_token_ids":{answer["prompt_token_ids"]}'.replace(" ", "") in text


@pytest.mark.parametrize("ids", [[], [-1], [10**6], ["a"], [True], 5])
async def test_ids_that_are_none(engine: Any, ids: Any) -> None:
    status, answer = await post(
        engine, "/v1/chat/completions", {**ASKED, "kv_transfer_params": {"prompt_token_ids": ids}}
    )
    assert status == 400
    assert "prompt_token_ids" in answer["error"]["message"]


@pytest.mark.parametrize(
    "body", [{}, {"prompt": "a", "messages": MESSAGES}, {"messages": [{}]}, {"messages": MESSAGES, "model": "other"}]
)
async def test_what_cannot_be_tokenized(engine: Any, body: Any) -> None:
    status, answer = await post(engine, "/tokenize", body)
    assert status in (400, 404)
    assert answer["error"]["message"]
