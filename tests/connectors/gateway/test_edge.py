"""The gateway's edge on real Kafka: keys, outside traffic, redaction, feedback."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import anthropic
import openai
import orjson
import pytest

from headrace.connectors.gateway.edge import base_url, check_host
from headrace.connectors.gateway.keys.store import create_key
from headrace.schemas.records import Reward, Span
from headrace.streams.codec import Codec
from headrace.streams.errors import InvalidValueError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.reading import read_to_end
from headrace.streams.view.batch import Batch
from headrace.streams.view.database import open_database
from headrace.streams.view.migrate import upgrade
from headrace.streams.view.rows import Place
from headrace.streams.view.writer import ViewWriter

pytestmark = pytest.mark.kafka

CHAT = "/v1/chat/completions"
SECRET = "my card is 4111 1111 1111 1111"


def shout(span: Span) -> Span:
    """A redaction hook that leaves the session's name out of it, and fails for some."""
    assert span.llm is not None
    if span.rollout_id == "broken":
        raise ValueError(span.llm.request)
    span.llm.choices[0].text = "[text]"
    return span


async def test_keys(start_gateway: Any, stub: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "keys.json"
    key, full = create_key(path, "all")
    _, caller = create_key(path, "caller", scopes=["call"])
    _, slow = create_key(path, "slow", requests_per_minute=1)
    with caplog.at_level(logging.DEBUG):
        gateway = await start_gateway((stub.url,), gateway_keys=str(path))

        def client(secret: str) -> openai.AsyncOpenAI:
            return openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key=secret, max_retries=0)

        ask: Any = {"model": "served", "messages": [{"role": "user", "content": SECRET}]}
        await client(full).chat.completions.create(**ask)
        await client(caller).chat.completions.create(**ask)
        await client(slow).chat.completions.create(**ask)
        with pytest.raises(openai.RateLimitError) as limited:
            await client(slow).chat.completions.create(**ask)
        assert limited.value.response.headers["retry-after"] in ("59", "60")
        with pytest.raises(openai.AuthenticationError, match="unknown or revoked") as refused:
            await client("hr_wrong_key").chat.completions.create(**ask)
        assert refused.value.code == "invalid_api_key"
        claude = anthropic.AsyncAnthropic(base_url=gateway.url, api_key=full, max_retries=0)
        await claude.messages.create(max_tokens=9, **ask)
        strange = anthropic.AsyncAnthropic(base_url=gateway.url, api_key="hr_wrong_key", max_retries=0)
        with pytest.raises(anthropic.AuthenticationError) as other_form:
            await strange.messages.create(max_tokens=9, **ask)
        assert other_form.value.body["error"]["type"] == "authentication_error"  # type: ignore[index]
        headers = {"authorization": f"Bearer {caller}"}
        async with gateway.session.post(gateway.url + "/v1/feedback", json={}, headers=headers) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (403, "insufficient_scope")
        async with gateway.session.get(gateway.url + "/v1/models") as response:
            assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
        async with gateway.session.get(gateway.url + "/health") as response:
            assert response.status == 200
    spans = await gateway.spans()
    assert len(spans) == 4
    assert orjson.loads(spans[0].attributes)["headrace.key"] == key.id
    withheld = [orjson.loads(span.attributes).get("headrace.withheld") for span in spans]
    assert withheld == [None, "opted_out", None, None]
    clients = ("openai", "anthropic", "httpx", "httpcore")
    said = "".join(record.getMessage() for record in caplog.records if not record.name.startswith(clients))
    assert not any(text in said for text in (SECRET, full, caller, slow, "hr_wrong_key"))


async def test_outside_traffic(start_gateway: Any, stub: Any, caplog: pytest.LogCaptureFixture) -> None:
    redact = f"{__name__}:shout"
    choices = {"gateway_external_key": "session", "gateway_external_sample": 0.5, "gateway_session_header": "X-Chat"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, __name__, __import__("types").SimpleNamespace(shout=shout))
        gateway = await start_gateway((stub.url,), gateway_redact=redact, **choices)
    recorded: dict[str, bool] = {}
    with caplog.at_level(logging.DEBUG):
        for n in range(12):
            for _ in range(2):
                status, _, answered = await gateway.chat(CHAT, {"x-chat": f"chat-{n}"}, model="served")
                assert status == 200
                recorded[f"chat-{n}"] = "x-headrace-rollout-id" in answered
        for train in ("no", "yes"):
            headers = {"x-headrace-train": train, "x-headrace-mode": "val", "x-session-id": "val"}
            await gateway.chat(CHAT, headers, model="served")
        messages = [{"role": "user", "content": SECRET}]
        headers = {"x-rollout-id": "broken", "x-headrace-mode": "val"}
        _, answer, _ = await gateway.chat(CHAT, headers, model="served", messages=messages)
    assert answer["choices"][0]["message"]["content"] == "answer 0"
    assert 0 < sum(recorded.values()) < 12
    spans = await gateway.spans()
    chats = [span for span in spans if span.rollout_id.startswith("chat-")]
    assert sorted(span.rollout_id for span in chats) == sorted(2 * [chat for chat, was in recorded.items() if was])
    assert all(span.session_id == span.rollout_id for span in chats)
    assert all(span.llm and span.llm.choices[0].text == "[text]" for span in chats)
    assert all(span.llm and not span.llm.prompt_token_ids and span.llm.request is None for span in spans)
    reasons = [orjson.loads(span.attributes)["headrace.withheld"] for span in spans if span not in chats]
    assert reasons == ["opted_out", "redacted", "redaction_failed"]
    assert SECRET not in caplog.text


async def test_feedback(start_gateway: Any, stub: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'view.db'}"
    engine = open_database(url)
    upgrade(engine)
    gateway = await start_gateway((stub.url,), view=url, gateway_feedback_wait=0.5)
    topic = gateway.settings.topic("rewards")
    places = [(topic, p) for p in range(gateway.settings.partitions)]
    starts = await asyncio.to_thread(end_offsets, make_admin(gateway.settings), places)

    async def give(body: Any, **headers: str) -> tuple[int, Any, str | None]:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        async with gateway.session.post(gateway.url + "/v1/feedback", data=data, headers=headers) as response:
            return response.status, await response.json(), response.headers.get("retry-after")

    _, answer, answered = await gateway.chat(CHAT, {"x-session-id": "s"}, model="served")
    rollout_id = answered["x-headrace-rollout-id"]
    by_response = {"response_id": answer["id"], "value": 0.5, "name": "tone"}
    status, body, retry_after = await give(by_response)
    assert (status, body["error"]["code"], retry_after) == (404, "unknown_target", "5")
    span = await gateway.span()
    batch = Batch()
    batch.add("spans", span, Place(0, 0, 1))
    writer = ViewWriter(engine)
    (start,) = writer.positions([("spans", 0)], {"spans": "A"}).values()
    waiting = asyncio.create_task(give(by_response))
    await asyncio.sleep(0)
    writer.write(batch, {("spans", 0): (start, 1)})
    status, body, _ = await waiting
    assert (status, [w["rollout_id"] for w in body["written"]]) == (200, [rollout_id])
    ok = {"rollout_id": rollout_id, "value": True}
    assert (await give(ok, **{"Idempotency-Key": "k"}))[0] == 200
    many = [
        {"session_id": "s", "value": 1, "end": True},
        {"rollout_id": "nobody", "value": 1},
        {"rollout_id": rollout_id, "value": "1"},
        {"trace_id": span.trace_id, "value": -1},
    ]
    status, body, _ = await give(many)
    results = [(r["status"], r.get("error", {}).get("code")) for r in body["results"]]
    assert (status, results) == (
        200,
        [(200, None), (404, "unknown_target"), (400, "non_numeric_reward"), (200, None)],
    )
    for bad, code in (
        (b'{"rollout_id": "x", "value": NaN}', "invalid_json"),
        ({"value": 1}, "invalid_feedback"),
        ([], "invalid_feedback"),
        (b"\xff", "invalid_json"),
        ({"rollout_id": rollout_id, "value": None}, "null_reward"),
    ):
        status, body, _ = await give(bad)
        assert (status, body["error"]["code"]) == (400, code)
    codec = Codec(gateway.settings)
    messages = await asyncio.to_thread(lambda: list(read_to_end(gateway.settings, starts, client_id="test")))
    rewards = sorted((codec.decode_as(Reward, m.value()) for m in messages), key=lambda reward: reward.at)
    assert {reward.rollout_id for reward in rewards} == {rollout_id}
    assert [(r.name, r.primary, r.value, r.span_id, r.source) for r in rewards] == [
        ("tone", False, 0.5, span.span_id, "feedback"),
        ("", True, 1.0, None, "feedback"),
        ("", True, 1.0, None, "feedback"),
        ("", True, -1.0, None, "feedback"),
    ]
    assert rewards[2].metadata == {"end": "true"}
    engine.dispose()


async def test_feedback_without_a_view(gateway: Any) -> None:
    await gateway.chat()
    async with gateway.session.post(gateway.url + "/v1/feedback", json={"session_id": "s", "value": 1}) as response:
        body = await response.json()
        assert (response.status, body["error"]["code"]) == (501, "no_view")
        assert "HEADRACE_VIEW" in body["error"]["message"]
    async with gateway.session.post(gateway.url + "/v1/feedback", json={"rollout_id": "r1", "value": 1}) as response:
        assert response.status == 200


def test_others_are_served_with_keys_only(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        check_host(host, None)
    for host in ("0.0.0.0", "::", "no such host"):
        with pytest.raises(InvalidValueError, match="--host"):
            check_host(host, None)
    check_host("0.0.0.0", tmp_path / "keys.json")


@pytest.mark.parametrize(
    "text", ["", "8000", "localhost:8000", "ftp://here", "http://", "http://[::1", "http://a:b", "http://a:0"]
)
def test_urls_that_are_none(text: str) -> None:
    with pytest.raises(InvalidValueError, match="--engine"):
        base_url("--engine", text)


def test_urls() -> None:
    assert base_url("--url", "https://gateway.example/agents/") == "https://gateway.example/agents"
    assert base_url("--engine", "http://[::1]:8000") == "http://[::1]:8000"
