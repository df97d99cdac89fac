"""The engine over HTTP, with the openai client as anyone has it."""

import asyncio
import math
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

MESSAGES: list[Any] = [{"role": "user", "content": "Please pick the digit 5."}]
IDS = {"return_token_ids": True}


@pytest.fixture
def client(engine: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0)


def _chat(client: openai.OpenAI, **more: Any) -> Any:
    extra = IDS | more.pop("extra_body", {})
    fields = {"model": "policy", "messages": MESSAGES, "logprobs": True, "max_tokens": 6, "seed": 1} | more
    return client.chat.completions.create(**fields, extra_body=extra)


def _logprobs(choice: Any) -> list[float]:
    return [entry.logprob for entry in choice.logprobs.content]


def test_logprobs_are_those_of_transformers(client: openai.OpenAI, judge: Any, model_dir: Path) -> None:
    for temperature in (1.0, 0.5, 2.0, 0):
        answer = _chat(client, n=8, temperature=temperature, max_tokens=12, extra_body={"ignore_eos": True})
        for choice in answer.choices:
            assert len(choice.token_ids) == 12
            assert choice.finish_reason == "length"
            wanted = judge(model_dir, answer.prompt_token_ids, choice.token_ids, temperature)
            assert _logprobs(choice) == pytest.approx(wanted, abs=1e-5)
    assert answer.policy_version == {"min": 0, "max": 0}
    assert answer.weights_id is None
    assert answer.logprobs_mode == "processed"
    assert answer.usage.prompt_tokens == len(answer.prompt_token_ids)
    assert answer.usage.completion_tokens == 8 * 12


def test_choices_of_one_request_differ_and_repeat(client: openai.OpenAI) -> None:
    first = [c.token_ids for c in _chat(client, n=16, seed=5, temperature=2.0).choices]
    assert [c.token_ids for c in _chat(client, n=16, seed=5, temperature=2.0).choices] == first
    assert [c.token_ids for c in _chat(client, n=4, seed=5, temperature=2.0).choices] == first[:4]
    assert [c.token_ids for c in _chat(client, n=16, seed=6, temperature=2.0).choices] != first
    assert len({tuple(ids) for ids in first}) > 4
    unseeded = {_chat(client, seed=openai.NOT_GIVEN, temperature=2.0).choices[0].message.content for _ in range(8)}
    assert len(unseeded) > 1


async def test_a_seed_gives_the_same_tokens_alone_and_in_a_mixed_batch(engine: Any) -> None:
    """Each request with its own n, temperature, truncation, length and prompt."""

    def fields(i: int) -> dict[str, Any]:
        settings = [{}, {"top_p": 0.5}, {"top_k": 3}, {"temperature": 0}, {"temperature": 1.7}, {"n": 3}, {"stop": "7"}]
        content = f"Please pick the digit {i % 10}." + " Now!" * (i % 4)
        base: dict[str, Any] = {
            "model": "policy",
            "seed": i,
            "max_tokens": 1 + i % 9,
            "logprobs": True,
            "ignore_eos": i % 3 == 0,
        }
        return base | IDS | settings[i % len(settings)] | {"messages": [{"role": "user", "content": content}]}

    async with httpx.AsyncClient(base_url=engine.url, timeout=60) as http:

        async def ask(i: int) -> tuple[list[Any], list[float]]:
            answer = await http.post("/v1/chat/completions", json=fields(i))
            assert answer.status_code == 200, answer.text
            choices = answer.json()["choices"]
            texts = [(c["token_ids"], c["message"]["content"], c["finish_reason"]) for c in choices]
            return texts, [e["logprob"] for c in choices for e in c["logprobs"]["content"]]

        alone = [await ask(i) for i in range(42)]
        together = await asyncio.gather(*(ask(i) for i in range(42)))
    for one, other in zip(alone, together, strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], abs=1e-5)


def test_a_long_request_does_not_hold_up_a_short_one(engine: Any) -> None:
    async def race() -> None:
        async with httpx.AsyncClient(base_url=engine.url, timeout=60) as http:
            body = {"messages": MESSAGES, "max_tokens": 900, "ignore_eos": True}
            long = asyncio.create_task(http.post("/v1/chat/completions", json=body))
            await asyncio.sleep(0.05)
            short = await http.post("/v1/chat/completions", json={"messages": MESSAGES, "max_tokens": 2})
            assert short.status_code == 200
            assert not long.done()
            assert (await long).json()["usage"]["completion_tokens"] == 900

    asyncio.run(race())


def test_stop_strings_cut_the_text_and_keep_the_tokens(client: openai.OpenAI) -> None:
    whole = _chat(client, max_tokens=8, temperature=1.5, extra_body={"ignore_eos": True}).choices[0]
    text = whole.message.content
    stop = text[1]
    cut = _chat(client, max_tokens=8, temperature=1.5, stop=["never", stop], extra_body={"ignore_eos": True}).choices[0]
    assert cut.message.content == text[: text.index(stop)]
    assert cut.finish_reason == "stop"
    assert cut.stop_reason == stop
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    by_id = _chat(
        client, max_tokens=8, temperature=1.5, extra_body={"ignore_eos": True, "stop_token_ids": [whole.token_ids[2]]}
    ).choices[0]
    assert by_id.finish_reason == "stop"
    assert by_id.token_ids == whole.token_ids[: whole.token_ids.index(whole.token_ids[2]) + 1]


def test_top_logprobs_are_of_the_sampled_distribution(client: openai.OpenAI) -> None:
    entry = _chat(client, top_logprobs=5, temperature=0).choices[0].logprobs.content[0]
    assert len(entry.top_logprobs) == 5
    assert entry.top_logprobs[0].token == entry.token
    assert bytes(entry.bytes).decode() == entry.token
    assert entry.top_logprobs[0].logprob == pytest.approx(entry.logprob)
    nucleus = _chat(client, top_logprobs=20, extra_body={"top_k": 2}).choices[0].logprobs.content[0]
    kept = [t.logprob for t in nucleus.top_logprobs if t.logprob > -9999]
    assert sum(math.exp(logprob) for logprob in kept) == pytest.approx(1, abs=1e-5)
    assert len(kept) == 2


def test_plain_answers_carry_no_extensions(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="policy", messages=MESSAGES, max_completion_tokens=3)
    assert answer.choices[0].logprobs is None
    assert "prompt_token_ids" not in (answer.model_extra or {})
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert next(model.id for model in client.models.list()) == "policy"


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"temperature": -1}, 400, "temperature"),
        ({"temperature": 1e-5}, 400, "temperature"),
        ({"temperature": "warm"}, 400, None),
        ({"top_p": 0}, 400, "top_p"),
        ({"top_p": 1.5}, 400, "top_p"),
        ({"n": 0}, 400, "n"),
        ({"n": 1000}, 400, "n"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 5000}, 400, "messages"),
        ({"messages": [{"role": "user", "content": "long " * 2000}]}, 400, "messages"),
        ({"messages": []}, 400, "messages"),
        ({"messages": "hello"}, 400, None),
        ({"messages": [{"content": "no role"}]}, 400, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, 400, "messages"),
        ({"top_logprobs": 50, "logprobs": True}, 400, "top_logprobs"),
        ({"top_logprobs": 2}, 400, "top_logprobs"),
        ({"stop": ""}, 400, "stop"),
        ({"stream_options": {}}, 400, "stream_options"),
        ({"tools": [{"type": "function"}]}, 400, "tools"),
        ({"presence_penalty": 0.5}, 400, "presence_penalty"),
        ({"model": "gpt-4"}, 404, "model"),
    ],
)
def test_bad_requests_are_answered_in_openai_s_form(
    engine: Any, change: dict[str, Any], status: int, param: str
) -> None:
    answer = httpx.post(f"{engine.url}/v1/chat/completions", json={"messages": MESSAGES, "model": "policy"} | change)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["message"]


def test_neutral_and_unknown_parameters_are_taken(engine: Any) -> None:
    body = {"messages": MESSAGES, "stream": False, "presence_penalty": 0, "tools": None, "user": "x", "metadata": {}}
    body["messages"] = [{"role": "user", "content": [{"type": "text", "text": "Please pick the digit 5."}]}]
    answer = httpx.post(f"{engine.url}/v1/chat/completions", json=body)
    assert answer.status_code == 200


def test_what_is_no_json_and_what_is_no_route(engine: Any) -> None:
    assert httpx.post(f"{engine.url}/v1/chat/completions", content=b"{").json()["error"]["code"] == "invalid_json"
    assert httpx.post(f"{engine.url}/v1/chat/completions", content=b"\xff").status_code == 400
    assert httpx.post(f"{engine.url}/v1/chat/completions", content=b"[1]").status_code == 400
    assert httpx.get(f"{engine.url}/v1/nothing").status_code == 404
    assert httpx.get(f"{engine.url}/v1/chat/completions").status_code == 405
    assert httpx.get(f"{engine.url}/health").status_code == 200
