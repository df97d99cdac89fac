"""Chat completions as answers of Anthropic's Messages API, whole and streamed; Anthropic's own types read both."""

import json
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from headrace.connectors.gateway.dialects.anthropic import MessagesDialect
from headrace.connectors.gateway.dialects.anthropic.request import chat_request

DIALECT = MessagesDialect()
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
BODY: dict[str, Any] = {"model": "policy", "max_tokens": 9, "stop_sequences": ["END"]}


def call(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(finish_reason: str | None = "stop", stop: Any = None, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "stop_reason": stop}
    return {"id": "chatcmpl-1", "created": 5, "model": "policy", "choices": [choice], "usage": USAGE}


def chunks(*deltas: dict[str, Any], finish_reason: str | None = "stop") -> list[dict[str, Any]]:
    def chunk(**fields: Any) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "created": 5, "model": "policy", **fields}

    found = [chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if finish_reason:
        found.append(chunk(choices=[{"index": 0, "delta": {}, "finish_reason": finish_reason}]))
    return [*found, chunk(choices=[], usage=USAGE)]


def streamed(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    stream = DIALECT.stream(BODY)
    return [read(event) for event in [e for chunk in given for e in stream.feed(chunk)] + stream.end()]


def read(event: bytes) -> dict[str, Any]:
    name, data, *rest = event.decode().split("\n")
    assert rest == ["", ""]
    found = json.loads(data.removeprefix("data: "))
    assert name == f"event: {found['type']}"
    if found["type"] not in ("ping", "error"):
        EVENT.validate_python(found)
    return found


def accumulated(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a client puts together."""
    message: dict[str, Any] = {}
    texts: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                delta = event["delta"]
                key = delta["type"].removesuffix("_delta")
                texts[event["index"]] = (
                    texts.get(event["index"], "") + delta["partial_json" if key == "input_json" else key]
                )
            case "message_delta":
                message |= event["delta"] | {"usage": event["usage"]}
            case _:
                pass
    for index, text in texts.items():
        block = message["content"][index]
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
        else:
            block[block["type"]] = text
    return message


def test_a_text() -> None:
    found = Message.model_validate(DIALECT.answer(chat(content="rain"), BODY))
    assert (found.id, found.role, found.model, found.stop_reason) == ("msg_1", "assistant", "policy", "end_turn")
    assert found.content[0].type == "text"
    assert found.content[0].text == "rain"
    usage = found.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (4, 5, 4)


def test_tools() -> None:
    calls = [call(0, "t1", "weather", '{"city": "Bern"}'), call(1, None, "weather", "")]
    answer = DIALECT.answer(chat("tool_calls", content="I look.", tool_calls=calls, reasoning="hm"), BODY)
    Message.model_validate(answer)
    assert answer["stop_reason"] == "tool_use"
    assert answer["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "I look.", "citations": None},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern"}},
        {"type": "tool_use", "id": "toolu_1_1", "name": "weather", "input": {}},
    ]


@pytest.mark.parametrize("arguments", ["{", "[1]", "3"])
def test_arguments_that_are_no_object_are_kept_as_text(arguments: str) -> None:
    answer = DIALECT.answer(chat("tool_calls", tool_calls=[call(0, "t", "f", arguments)]), BODY)
    assert answer["content"][0]["input"] == {"raw_arguments": arguments}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (chat("stop", content="x"), ("end_turn", None)),
        (chat("stop", "END", content="x"), ("stop_sequence", "END")),
        (chat("stop", 151645, content="x"), ("end_turn", None)),
        (chat("stop", "other", content="x"), ("end_turn", None)),
        (chat("length", content="x"), ("max_tokens", None)),
        (chat("content_filter", content="x"), ("refusal", None)),
        (chat("stop", tool_calls=[call(0, "t", "f", "{}")]), ("tool_use", None)),
        (chat("length", tool_calls=[call(0, "t", "f", "{}")]), ("max_tokens", None)),
        (chat("abort", content="x"), (None, None)),
        (chat(None, content="x"), (None, None)),
    ],
)
def test_stop_reasons(given: dict[str, Any], expected: tuple[str | None, str | None]) -> None:
    answer = DIALECT.answer(given, BODY)
    assert (answer["stop_reason"], answer["stop_sequence"]) == expected


def test_the_events_of_text_and_calls() -> None:
    events = streamed(
        chunks(
            {"role": "assistant", "content": ""},
            {"content": "I "},
            {"content": "look."},
            {"tool_calls": [call(0, "t1", "weather", "")]},
            {"tool_calls": [call(0, None, None, '{"a"')]},
            {"tool_calls": [call(0, None, None, ": 1}"), call(1, "t2", "other", "{}")]},
            finish_reason="tool_calls",
        )
    )
    assert [(event["type"], event.get("index")) for event in events] == [
        ("message_start", None),
        ("ping", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    calls = [call(0, "t1", "weather", '{"a": 1}'), call(1, "t2", "other", "{}")]
    assert accumulated(events) == DIALECT.answer(chat("tool_calls", content="I look.", tool_calls=calls), BODY)


def test_a_stream_that_fails() -> None:
    error = read(DIALECT.stream(BODY).error(503, "the engine went away"))
    assert error == {"type": "error", "error": {"type": "overloaded_error", "message": "the engine went away"}}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ],
)
def test_errors(status: int, kind: str) -> None:
    body = json.loads(DIALECT.error(status, "code", "why"))
    assert body == {"type": "error", "error": {"type": kind, "message": "why"}}


calls_strategy = st.lists(
    st.tuples(st.text(min_size=1, max_size=4), st.dictionaries(st.text(max_size=3), st.integers(-(2**63), 2**63 - 1)))
)


@given(text=st.text(max_size=6), calls=calls_strategy, cuts=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_nothing_said_is_lost(text: str, calls: list[tuple[str, dict[str, int]]], cuts: int) -> None:
    """The same words by an answer, by a stream, and back as a message of the next request."""
    tool_calls = [call(i, f"t{i}", name, json.dumps(given)) for i, (name, given) in enumerate(calls)]
    whole = DIALECT.answer(chat(content=text, tool_calls=tool_calls), BODY)
    deltas: list[dict[str, Any]] = [{"content": text[i : i + cuts]} for i in range(0, len(text), cuts)]
    for made in tool_calls:
        name, arguments = made["function"]["name"], made["function"]["arguments"]
        deltas.append({"tool_calls": [call(made["index"], made["id"], name, arguments[:cuts])]})
        deltas.append({"tool_calls": [call(made["index"], None, None, arguments[cuts:])]})
    assert accumulated(streamed(chunks(*deltas))) == whole
    said = {"role": "assistant", "content": whole["content"]}
    asked = chat_request({**BODY, "messages": [said, {"role": "user", "content": "go on"}]})["messages"]
    assert (asked[0]["content"] or "") == text
    made = [
        (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in asked[0].get("tool_calls", [])
    ]
    assert made == [(f"t{i}", name, given) for i, (name, given) in enumerate(calls)]
