"""Streamed answers of the engine: piece by piece what an answer that is not streamed is as a whole."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from headrace.connectors.engine.batching import Batcher
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.load import load_backend
from headrace.connectors.engine.server import EngineServer
from headrace.connectors.serving import HttpServer, bind, endpoint

MESSAGES: list[Any] = [{"role": "user", "content": "Please pick the digit 5."}]
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "choices": {"n": 4, "temperature": 2.0},
    "parts of characters": {"temperature": 5.0, "n": 8, "max_tokens": 40, "ignore_eos": True},
    "stop strings": {"temperature": 5.0, "n": 8, "max_tokens": 40, "ignore_eos": True, "stop": ["e", "7", "ab", "1 "]},
    "likely tokens": {"top_logprobs": 3, "max_tokens": 3},
    "one token": {"max_tokens": 1},
}


@pytest.fixture
def http(engine: Any) -> httpx.Client:
    return httpx.Client(base_url=engine.url, timeout=60)


def ask(http: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def stream(http: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = http.post(path, json=body | {"stream": True})
    assert answer.headers["content-type"] == "text/event-stream"
    events = answer.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def joined(chunks: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """By index what the chunks of a chat completion say of a choice."""
    choices: dict[int, dict[str, Any]] = {}
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        known = choices.setdefault(choice["index"], {"content": "", "token_ids": [], "logprobs": [], "ended": 0})
        assert not known["ended"]
        known["content"] += choice["delta"].get("content", "")
        known["token_ids"] += choice.get("token_ids", [])
        known["logprobs"] += (choice["logprobs"] or {}).get("content", [])
        if choice["finish_reason"] is not None:
            known |= {"finish_reason": choice["finish_reason"], "stop_reason": choice["stop_reason"], "ended": 1}
    return choices


@pytest.mark.parametrize("name", SETTINGS)
def test_a_stream_is_the_answer_in_pieces(http: httpx.Client, name: str) -> None:
    body = {"messages": MESSAGES, "max_tokens": 12, "seed": 3, "logprobs": True, "return_token_ids": True}
    body |= SETTINGS[name]
    whole = ask(http, "/v1/chat/completions", body)
    chunks = stream(http, "/v1/chat/completions", body | {"stream_options": {"include_usage": True}})
    assert chunks[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (chunks[-1]["choices"], chunks[-1]["usage"]) == ([], whole["usage"])
    tokens = [chunk for chunk in chunks[:-1] if "token_ids" in chunk["choices"][0]]
    assert all(chunk["policy_version"] == {"min": 0, "max": 0} for chunk in tokens)
    choices = joined(chunks)
    assert len(choices) == len(whole["choices"])
    for choice in whole["choices"]:
        got = choices[choice["index"]]
        assert got["content"] == choice["message"]["content"]
        assert got["token_ids"] == choice["token_ids"]
        assert (got["finish_reason"], got["stop_reason"]) == (choice["finish_reason"], choice["stop_reason"])
        for mine, theirs in zip(got["logprobs"], choice["logprobs"]["content"], strict=True):
            assert (mine["token"], len(mine["top_logprobs"])) == (theirs["token"], len(theirs["top_logprobs"]))
            assert mine["logprob"] == pytest.approx(theirs["logprob"], abs=1e-5)


def test_no_part_of_a_character_and_no_stop_string_is_sent(http: httpx.Client) -> None:
    body = {"messages": MESSAGES, "seed": 3} | SETTINGS["stop strings"]
    for chunk in stream(http, "/v1/chat/completions", body):
        (choice,) = chunk["choices"]
        content = choice["delta"].get("content", "")
        # A part of a character may be sent once nothing can complete it: at the end, or before another character.
        assert choice["finish_reason"] is not None or not content.endswith("\ufffd")
        assert not any(stop in content for stop in body["stop"])
        assert "token_ids" not in choice
        assert choice["logprobs"] is None


def test_tokens_come_one_by_one(engine: Any) -> None:
    client = openai.OpenAI(base_url=f"{engine.url}/v1", api_key="none")
    extra = {"ignore_eos": True, "return_token_ids": True}
    came: list[float] = []
    for chunk in client.chat.completions.create(
        model="policy", messages=MESSAGES, max_tokens=300, stream=True, extra_body=extra
    ):
        if ids := getattr(chunk.choices[0], "token_ids", None):
            came += [time.monotonic()] * len(ids)
    assert len(came) == 300
    assert came[0] < came[150] < came[-1]
    client.close()


def test_text_completions(http: httpx.Client, model_dir: Path, engine: Any) -> None:
    text = "Please pick"
    ids = list(ChatTokenizer(model_dir).ids(text))
    client = openai.OpenAI(base_url=f"{engine.url}/v1", api_key="none")
    body = {"seed": 2, "max_tokens": 8, "logprobs": 2, "return_token_ids": True, "n": 2, "temperature": 2.0}
    answers = [ask(http, "/v1/completions", body | {"prompt": prompt}) for prompt in (text, ids, [text], [ids])]
    for answer in answers:
        assert answer["choices"] == answers[0]["choices"]
    first = answers[0]["choices"][0]
    assert first["prompt_token_ids"] == ids
    assert len(first["logprobs"]["token_logprobs"]) == len(first["token_ids"]) == len(first["logprobs"]["top_logprobs"])
    assert first["logprobs"]["text_offset"][0] == 0
    chunks = stream(http, "/v1/completions", body | {"prompt": text})
    for choice in answers[0]["choices"]:
        mine = [c for chunk in chunks for c in chunk["choices"] if c["index"] == choice["index"]]
        assert "".join(c["text"] for c in mine) == choice["text"]
        assert [token for c in mine for token in c["token_ids"]] == choice["token_ids"]
        logprobs = [value for c in mine for value in c["logprobs"]["token_logprobs"]]
        assert logprobs == pytest.approx(choice["logprobs"]["token_logprobs"], abs=1e-5)
        offsets = [value for c in mine for value in c["logprobs"]["text_offset"]]
        assert offsets == choice["logprobs"]["text_offset"]
        assert mine[0]["prompt_token_ids"] == ids
        assert mine[-1]["finish_reason"] == choice["finish_reason"]
    plain = client.completions.create(model="policy", prompt=text)
    assert plain.usage is not None
    assert plain.usage.completion_tokens <= 16
    *_, last = client.completions.create(model="policy", prompt=text, stream=True)
    assert last.choices[0].finish_reason in ("stop", "length")
    client.close()


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [10**6]}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": {}}, "prompt"),
        ({"echo": True}, "echo"),
        ({"logprobs": 50}, "logprobs"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
    ],
)
def test_texts_that_cannot_be_completed(http: httpx.Client, change: dict[str, Any], param: str) -> None:
    answer = http.post("/v1/completions", json={"prompt": "x"} | change)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_who_hangs_up_frees_the_slot(model_dir: Path) -> None:
    """With room for one sequence, the next request runs as soon as the one before is given up."""
    tokenizer, backend = ChatTokenizer(model_dir), load_backend(model_dir)
    batcher = Batcher(backend, tokenizer.size, max_batch=1, in_flight="wait", wait_seconds=0)
    server = EngineServer(backend, tokenizer, batcher, policy="policy", names=set(), seed=1)
    serving, listener = HttpServer(server.handle, 10_000), bind(0)
    await serving.start(listener)
    generating = asyncio.create_task(batcher.run())
    body = {"messages": MESSAGES, "ignore_eos": True}
    async with httpx.AsyncClient(base_url=endpoint(listener), timeout=60) as http:
        for streamed in (True, False):
            before = batcher.counters.cancelled
            async with httpx.AsyncClient(base_url=endpoint(listener), timeout=60) as leaving:
                asked = body | {"stream": streamed, "max_tokens": 900}
                asking = [asyncio.create_task(leaving.post("/v1/chat/completions", json=asked)) for _ in range(2)]
                while batcher.running < 2:  # noqa: ASYNC110 one runs, the other waits
                    await asyncio.sleep(0.001)
                for task in asking:
                    task.cancel()
            answer = await http.post("/v1/chat/completions", json=body | {"max_tokens": 1})
            assert answer.status_code == 200
            assert (batcher.counters.cancelled, batcher.running) == (before + 2, 0)
    assert batcher.counters.tokens < 900
    generating.cancel()
    await serving.stop()


def test_a_model_by_its_name(engine: Any) -> None:
    client = openai.OpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0)
    assert client.models.retrieve("policy").id == "policy"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")
    client.close()
