"""Streams on their way through the gateway: what the client gets, and what is gathered for the record."""

import json
from typing import Any

import pytest

from headrace.connectors.gateway.answer import packed_ids, read_answer
from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.operations import CHAT, TEXT, Operation
from headrace.connectors.gateway.relay import DONE_EVENT, Relay
from headrace.connectors.gateway.request import read_request
from headrace.schemas.packing import unpack_float32, unpack_int32
from headrace.schemas.records import Usage, VersionRange

MESSAGES = [{"role": "user", "content": "x"}]
Fields = dict[str, Any]


def relay_of(operation: Operation = CHAT, **asked: Any) -> Relay:
    body = {"prompt": "x", "stream": True} if operation is TEXT else {"messages": MESSAGES, "stream": True}
    return Relay(read_request(json.dumps(body | asked).encode(), None, operation))


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: Fields | None = None, ids: list[int] | None = None, index: int = 0, **more: Any) -> Fields:
    """One chunk with one choice, in vLLM's shape; `top` goes beside the choices."""
    top = more.pop("top", {})
    choice = {"index": index, "delta": delta or {}, "logprobs": None, "finish_reason": None, "token_ids": ids} | more
    if ids:
        content = [{"token": "t", "logprob": -i / 2, "bytes": [], "top_logprobs": []} for i in ids]
        choice["logprobs"] = {"content": content}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]} | top


def seen(sent: bytes) -> list[Any]:
    events = [part.removeprefix(b"data: ") for part in sent.split(b"\n\n")[:-1]]
    return [json.loads(data) if data != b"[DONE]" else "[DONE]" for data in events]


def run(relay: Relay, *chunks: Fields) -> tuple[list[Any], list[Any]]:
    """What the client gets before the end, and at the end."""
    before = b"".join(relay.feed(event(value)) for value in chunks) + relay.feed(DONE_EVENT)
    return seen(before), seen(relay.last())


FIRST = chunk({"role": "assistant", "content": ""}, top={"prompt_token_ids": [5, 6, 7]})


def test_a_stream_is_gathered_whole_and_passed_on_without_what_was_not_asked_for() -> None:
    relay = relay_of()
    versions = [{"policy_version": {"min": v, "max": v}, "weights_id": f"w{v}"} for v in (3, 4)]
    chunks = [
        FIRST,
        chunk({"content": "zażółć "}, [1, 2], top=versions[0]),
        chunk({}, [3], top=versions[1]),  # half a character: no word, and so nothing for the client
        chunk({"content": "🙂"}, [4], finish_reason="stop", stop_reason=None),
    ]
    before, after = run(relay, *chunks)
    assert [c["choices"][0]["delta"].get("content") for c in before] == ["", "zażółć "]
    assert [c if c == "[DONE]" else c["choices"][0]["delta"] for c in after] == [{"content": "🙂"}, "[DONE]"]
    for shown in [*before, after[0]]:
        assert "prompt_token_ids" not in shown
        assert "token_ids" not in shown["choices"][0]
        assert shown["choices"][0]["logprobs"] is None
    answer = relay.gathering.answer()
    (choice,) = answer.choices
    assert unpack_int32(answer.prompt_token_ids) == [5, 6, 7]
    assert unpack_int32(choice.response_token_ids) == [1, 2, 3, 4]
    assert choice.logprobs is not None
    assert unpack_float32(choice.logprobs) == [-0.5, -1, -1.5, -2]
    assert (choice.text, choice.finish_reason, choice.tool_calls) == ("zażółć 🙂", "stop", "[]")
    assert (answer.response_id, answer.weights_id) == ("c1", "w4")
    assert answer.policy_version == VersionRange(min=3, max=4)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 4)
    whole = json.loads(answer.body)
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "zażółć 🙂"}
    assert "token_ids" not in whole["choices"][0]


def test_what_was_asked_for_is_passed_on_as_it_came() -> None:
    relay = relay_of(logprobs=True, return_token_ids=True, stream_options={"include_usage": True})
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    counts: Fields = {"id": "c1", "choices": [], "usage": usage}
    chunks = [FIRST, chunk({"content": "a"}, [1, 2]), chunk({}, [], finish_reason="length"), counts]
    before, after = run(relay, *chunks)
    assert before == chunks[:2]
    assert after == [*chunks[2:], "[DONE]"]
    answer = relay.gathering.answer()
    whole = json.loads(answer.body)
    assert whole["prompt_token_ids"] == [5, 6, 7]
    assert whole["choices"][0]["token_ids"] == [1, 2]
    assert [entry["logprob"] for entry in whole["choices"][0]["logprobs"]["content"]] == [-0.5, -1]
    assert whole["usage"] == usage


def test_tool_calls_come_in_pieces() -> None:
    relay = relay_of(tools=[{"type": "function", "function": {"name": "f"}}])

    def call(index: int, **more: Any) -> Fields:
        return chunk({"tool_calls": [{"index": index, **more}]}, [index])

    chunks = [
        FIRST,
        call(0, id="a", type="function", function={"name": "f", "arguments": ""}),
        call(0, function={"arguments": '{"x":'}),
        call(1, id="b", type="function", function={"name": "g", "arguments": "{}"}),
        call(0, function={"arguments": " 1}"}),
        chunk({}, finish_reason="tool_calls"),
    ]
    before, _ = run(relay, *chunks)
    assert len(before) == 5
    (choice,) = relay.gathering.answer().choices
    expected = [("a", "f", '{"x": 1}'), ("b", "g", "{}")]
    for calls in (
        json.loads(choice.tool_calls),
        json.loads(relay.gathering.answer().body)["choices"][0]["message"]["tool_calls"],
    ):
        assert [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls] == expected
        assert all("index" not in c and c["type"] == "function" for c in calls)
    assert (choice.finish_reason, choice.text) == ("tool_calls", "")


def test_the_end_is_held_back_until_every_choice_has_ended() -> None:
    relay = relay_of(n=2)
    chunks = [
        chunk({"content": "a"}, [1], 0, finish_reason="stop"),
        chunk({"content": "b"}, [2], 1),
        chunk({"content": "c"}, [3], 1, finish_reason="length"),
    ]
    before, after = run(relay, *chunks)
    assert [c["choices"][0]["delta"]["content"] for c in before] == ["a", "b"]
    assert len(after) == 2
    choices = relay.gathering.answer().choices
    assert [(c.index, c.text, c.finish_reason) for c in choices] == [(0, "a", "stop"), (1, "bc", "length")]
    assert unpack_int32(choices[1].response_token_ids) == [2, 3]


def test_texts_are_gathered_in_their_own_form() -> None:
    relay = relay_of(TEXT, logprobs=0)
    for i, reason in enumerate((None, "stop")):
        logprobs = {"tokens": ["t"], "token_logprobs": [-0.5 - i], "top_logprobs": [{}], "text_offset": [i]}
        choice = {"index": 0, "text": "ab"[i], "logprobs": logprobs, "finish_reason": reason, "token_ids": [i]}
        choice |= {"prompt_token_ids": [5, 6]} if not i else {}
        relay.feed(event({"id": "c1", "object": "text_completion", "choices": [choice]}))
    answer = relay.gathering.answer()
    assert unpack_int32(answer.prompt_token_ids) == [5, 6]
    assert (answer.choices[0].text, answer.choices[0].logprobs) == ("ab", b"\0\0\0\xbf\0\0\xc0\xbf")
    assert json.loads(answer.body)["choices"] == [
        {
            "index": 0,
            "text": "ab",
            "logprobs": {
                "tokens": ["t", "t"],
                "token_logprobs": [-0.5, -1.5],
                "top_logprobs": [{}, {}],
                "text_offset": [0, 1],
            },
            "finish_reason": "stop",
        }
    ]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (2, 2)


def test_other_parts_of_a_message_are_kept() -> None:
    relay = relay_of()
    run(relay, chunk({"reasoning_content": "h"}), chunk({"reasoning_content": "m"}), chunk({"content": "a"}))
    message = json.loads(relay.gathering.answer().body)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "a", "reasoning_content": "hm"}


def test_without_token_ids_nothing_is_made_up() -> None:
    relay = relay_of()
    run(relay, chunk({"content": "a"}), chunk({}, finish_reason="stop"))
    answer = relay.gathering.answer()
    assert (answer.prompt_token_ids, answer.choices[0].response_token_ids, answer.choices[0].logprobs) == (
        b"",
        b"",
        None,
    )
    assert answer.usage is None


def test_a_cut_stream_has_no_finish_reason() -> None:
    relay = relay_of()
    relay.feed(event(FIRST) + event(chunk({"content": "a"}, [1])) + b'data: {"choices"')
    assert not relay.whole
    (choice,) = relay.gathering.answer().choices
    assert (choice.text, choice.finish_reason, unpack_int32(choice.response_token_ids)) == ("a", None, [1])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"data: {\n\n", "engine_garbage"),
        (b"data: []\n\n", "engine_garbage"),
        (b'data: {"choices": 7}\n\n', "engine_garbage"),
        (event(chunk({"x": 1})).replace(b"1}", b"[" * 500 + b"]" * 500 + b"}"), "engine_garbage"),
        (b'data: {"error": {"message": "out of memory", "code": 500}}\n\n', "engine_error"),
        (b'data: {"error": "x"}\n\n', "engine_error"),
    ],
)
def test_what_is_no_chunk_is_an_error(data: bytes, code: str) -> None:
    relay = relay_of()
    assert len(seen(relay.feed(event(FIRST) + data))) == 1
    assert relay.failed is not None
    assert relay.failed.code == code
    (shown,) = seen(relay.error(relay.failed))
    assert shown["error"]["code"] == code


ODD: list[Fields] = [
    {"choices": [7, None, {}]},
    {"choices": [{"index": "x", "delta": "text", "token_ids": "78", "logprobs": [1]}]},
    {"choices": [{"delta": {"content": 7, "tool_calls": [3, {"function": 4}, {"index": "a"}]}}]},
    {"choices": [{"delta": {"content": "a"}, "token_ids": [2**40], "logprobs": {"content": ["x"]}}]},
    {"choices": [], "usage": "many", "policy_version": [1], "prompt_token_ids": "abc"},
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_chunks_lose_nothing_but_themselves(odd: Fields) -> None:
    relay = relay_of()
    run(relay, FIRST, odd, chunk({"content": "b"}, finish_reason="stop"))
    answer = relay.gathering.answer()
    assert answer.choices[0].finish_reason == "stop"
    json.loads(answer.body)


class _Shouting:
    """A dialect that shouts."""

    path = "/v1/shout"

    def read(self, body: Fields) -> Fields:
        return {"messages": [{"role": "user", "content": body["say"]}], "stream": body.get("stream")}

    def answer(self, chat: Fields, body: Fields) -> Fields:
        return {"id": "shout-" + chat["id"], "shout": chat["choices"][0]["message"]["content"].upper()}

    def stream(self, body: Fields) -> "_Shouting":
        return self

    def feed(self, chunk: Fields) -> list[bytes]:
        content = chunk["choices"][0]["delta"].get("content")
        return [content.upper().encode() + b"\n\n"] if content else []

    def end(self) -> list[bytes]:
        return [b"end\n\n"]

    def error(self, status: int, code: str, message: str = "") -> bytes:
        return f"{status} {code}{message}".encode()


def test_a_dialect_is_one_more_entry_of_the_table() -> None:
    shouting: Any = _Shouting()
    operation = Operation(shouting.path, CHAT.upstream, "chat", shouting)
    relay = Relay(read_request(b'{"say": "x", "stream": true}', None, operation))
    before = relay.feed(event(FIRST) + event(chunk({"content": "a"}, [1])))
    before += relay.feed(event(chunk({"content": "b"}, [2], finish_reason="stop")) + DONE_EVENT)
    assert (before, relay.last()) == (b"A\n\n", b"B\n\nend\n\n")
    answer = relay.gathering.answer()
    assert (answer.response_id, json.loads(answer.body)["shout"]) == ("shout-c1", "AB")
    assert unpack_int32(answer.choices[0].response_token_ids) == [1, 2]


def test_a_stream_cut_at_every_byte_gives_the_same() -> None:
    whole = b"".join(
        event(value)
        for value in (FIRST, chunk({"content": "é🙂"}, [1]), chunk({"content": "x"}, [2], finish_reason="stop"))
    ).replace(b"\n", b"\r\n")
    wanted = None
    for cut in range(len(whole)):
        relay = relay_of()
        got = relay.feed(whole[:cut]) + relay.feed(whole[cut:]) + relay.feed(DONE_EVENT) + relay.last()
        wanted = wanted or got
        assert got == wanted
        assert relay.gathering.answer().choices[0].text == "é🙂x"


@pytest.mark.parametrize("function", ["text", 7, None, {"name": "f", "arguments": {"a": 1}}])
def test_a_tool_call_that_begins_oddly_goes_on(function: Any) -> None:
    relay = relay_of()
    first = chunk({"tool_calls": [{"index": 0, "id": "t", "function": function}]}, [1])
    run(relay, FIRST, first, chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, [2]))
    (call,) = json.loads(relay.gathering.answer().choices[0].tool_calls)
    assert call["function"]["arguments"] == ('{"a":1}{}' if isinstance(function, dict) else "{}")


def test_counts_that_no_record_holds_count_as_absent() -> None:
    relay = relay_of()
    bad = {"usage": {"prompt_tokens": 1 << 63, "completion_tokens": True}, "policy_version": {"min": 1 << 63, "max": 3}}
    run(relay, FIRST, chunk({"content": "a"}, [1], finish_reason="stop", top=bad))
    answer = relay.gathering.answer()
    assert answer.usage == Usage(input_tokens=0, output_tokens=0)
    assert answer.policy_version is None


def test_tool_calls_nested_too_deeply_are_garbage() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    message = {"role": "assistant", "content": None, "tool_calls": deep}
    raw = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    with pytest.raises(CallError, match="cannot be recorded"):
        read_answer(raw, read_request(json.dumps({"messages": MESSAGES}).encode(), None))


@pytest.mark.parametrize("ids", [[-7], [1, -1], ["5"], [1.5], [1 << 31], [None], {"a": 1}])
def test_what_are_no_ids_are_none(ids: Any) -> None:
    assert packed_ids(ids) is None
    relay = relay_of()
    run(relay, FIRST, chunk({"content": "a"}, [1]), chunk({"content": "b"}, finish_reason="stop", token_ids=ids))
    assert relay.gathering.answer().choices[0].response_token_ids == b""


def test_a_top_k_that_no_record_holds_is_the_clients_fault() -> None:
    with pytest.raises(CallError, match="top_k") as caught:
        read_request(json.dumps({"messages": MESSAGES, "top_k": 1e300}).encode(), None)
    assert caught.value.status == 400
