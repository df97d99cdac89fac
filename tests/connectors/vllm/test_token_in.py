"""Token-in continuation before the real vLLM: its `/tokenize`, and prompts of chat completions given as ids."""

import json
from datetime import timedelta
from typing import Any

import pytest

from headrace.connectors.gateway.answer import read_answer
from headrace.connectors.gateway.caller import identify
from headrace.connectors.gateway.engines import Engine
from headrace.connectors.gateway.operations import CHAT
from headrace.connectors.gateway.relay import Relay
from headrace.connectors.gateway.request import read_request
from headrace.connectors.gateway.spans import Observed
from headrace.connectors.gateway.token_in.continuing import TokenIn
from headrace.connectors.gateway.upstream import Upstream

pytestmark = [pytest.mark.alone, pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]
CALLER = identify("ro", "ro-1", {})
FIELDS: dict[str, Any] = {"temperature": 2.0, "max_tokens": 6}


class Chat:
    """What the gateway does with a call, without a broker."""

    def __init__(self, upstream: Upstream, url: str) -> None:
        self.upstream, self.token_in = upstream, TokenIn(upstream, enabled=True, max_bytes=1 << 20)
        self.engine = Engine(url, policy="policy", model="policy")

    async def turn(self, messages: list[Any], **fields: Any) -> Observed:
        call = Observed(caller=CALLER, body=b"", started_at=0, endpoint=self.engine.endpoint, policy="policy")
        request = call.request = read_request(json.dumps(FIELDS | {"messages": messages} | fields).encode(), "train")
        call.continuation = self.token_in.begin(CALLER, request)
        body = await self.token_in.body(call, self.engine)
        given = await self.upstream.complete(self.engine.endpoint, CHAT.upstream, body)
        assert given.status == 200, given.body
        if request.stream:
            relay = Relay(request)
            relay.feed(given.body)
            call.answer = relay.gathering.answer()
        else:
            call.answer = read_answer(given.body, request)
        self.token_in.end(call)
        return call


async def test_turns_are_continued_by_their_ids(vllm: Any) -> None:
    messages: list[dict[str, Any]] = []
    before = b""
    async with Upstream(timedelta(seconds=120), 1 << 24) as upstream:
        chat = Chat(upstream, vllm.url)
        for number in range(6):
            messages.append({"role": "user", "content": f"Please pick the digit {number}."})
            streamed = bool(number % 2)
            call = await chat.turn(messages, seed=number, stream=streamed, n=1 if streamed else 2)
            assert call.continuation is not None
            assert call.answer is not None
            assert call.continuation.result == ("continued" if number else "first")
            assert call.answer.prompt_token_ids.startswith(before)
            first = call.answer.choices[0]
            before = call.answer.prompt_token_ids + first.response_token_ids
            messages.append({"role": "assistant", "content": first.text})
        plain = await chat.turn([*messages[:-2], {"role": "assistant", "content": "no"}, messages[-2]])
        assert plain.continuation is not None
        assert plain.continuation.result == "unknown_history"
