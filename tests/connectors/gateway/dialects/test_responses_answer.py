"""Chat completions as answers of the Responses API, whole and streamed; OpenAI's own types read both."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from headrace.connectors.gateway.dialects.base import error_body
from headrace.connectors.gateway.dialects.responses import ResponsesDialect
from headrace.connectors.gateway.dialects.responses.history import History
from headrace.connectors.gateway.dialects.responses.request import chat_request
from headrace.connectors.gateway.errors import CallError, engine_refusal

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
BODY: dict[str, Any] = {
    "model": "policy",
    "input": "weather?",
    "instructions": "be brief",
    "metadata": {"a": "b"},
    "temperature": 0.5,
    "max_output_tokens": 99,
    "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object"}}],
}


def dialect(max_bytes: int = 0) -> ResponsesDialect:
    return ResponsesDialect(History(max_bytes), clock=lambda: 7.0)


def call(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(finish_reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "policy",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}],
        "usage": USAGE,
    }


def chunks(*deltas: dict[str, Any], finish_reason: str | None = "stop") -> list[dict[str, Any]]:
    def chunk(**fields: Any) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "policy", **fields}

    found = [chunk(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])]
    found += [chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if finish_reason:
        found.append(chunk(choices=[{"index": 0, "delta": {}, "finish_reason": finish_reason}]))
    return [*found, chunk(choices=[], usage=USAGE)]


def streamed(given: list[dict[str, Any]], body: dict[str, Any] = BODY) -> list[dict[str, Any]]:
    stream = dialect().stream(body)
    raw = [event for chunk in given for event in stream.feed(chunk)] + stream.end()
    return [read(event) for event in raw]


def read(event: bytes) -> dict[str, Any]:
    name, data, *rest = event.decode().split("\n")
    assert rest == ["", ""]
    found = json.loads(data.removeprefix("data: "))
    assert name == f"event: {found['type']}"
    EVENT.validate_python(found)
    return found


def test_a_text() -> None:
    answer = dialect().answer(chat(content="rain"), BODY)
    found = Response.model_validate(answer)
    assert found.output_text == "rain"
    assert (found.id, found.status, found.created_at, found.completed_at) == ("resp_1", "completed", 5, 7)
    assert (found.metadata, found.temperature, found.max_output_tokens) == ({"a": "b"}, 0.5, 99)
    assert found.instructions == "be brief"
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.total_tokens) == (9, 4, 13)
    assert found.usage.input_tokens_details.cached_tokens == 5
    assert found.usage.output_tokens_details.reasoning_tokens == 2
    assert found.error is None
    assert found.incomplete_details is None


def test_calls_stand_after_the_text() -> None:
    calls = [call(0, "c1", "weather", '{"city": "Bern"}'), call(1, "c2", "weather", "{}")]
    answer = dialect().answer(chat("tool_calls", content="I look.", tool_calls=calls, reasoning="hm"), BODY)
    found = Response.model_validate(answer)
    assert [item.type for item in found.output] == ["reasoning", "message", "function_call", "function_call"]
    assert [item["call_id"] for item in answer["output"][2:]] == ["c1", "c2"]
    assert answer["output"][2]["arguments"] == '{"city": "Bern"}'
    assert found.status == "completed"


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter"), ("abort", None), (None, None)],
)
def test_an_answer_that_was_cut_is_incomplete(finish_reason: str | None, reason: str | None) -> None:
    answer = dialect().answer(chat(finish_reason, content="rai"), BODY)
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert answer["output"][0]["status"] == "incomplete"
    assert answer["completed_at"] is None
    Response.model_validate(answer)


def test_an_empty_answer_has_a_message() -> None:
    assert Response.model_validate(dialect().answer(chat(content=None), BODY)).output_text == ""


def test_a_refusal() -> None:
    answer = dialect().answer(chat(content=None, refusal="no"), BODY)
    assert answer["output"][0]["content"] == [{"type": "refusal", "refusal": "no"}]


def test_log_probabilities_where_they_were_asked_for() -> None:
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    answer = chat(content="a")
    answer["choices"][0]["logprobs"] = {"content": [entry]}
    assert dialect().answer(answer, BODY)["output"][0]["content"][0]["logprobs"] == [entry]


def test_the_events_of_a_text() -> None:
    events = streamed(chunks({"content": "ra"}, {"content": "in"}))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(10))
    assert events[0]["response"]["status"] == "in_progress"
    assert events[6]["text"] == "rain"
    assert events[-1]["response"] == dialect().answer(chat(content="rain"), BODY)


def test_the_events_of_calls() -> None:
    events = streamed(
        chunks(
            {"content": "I look."},
            {"tool_calls": [call(0, "c1", "weather", "")]},
            {"tool_calls": [call(0, None, None, '{"a"')]},
            {"tool_calls": [call(0, None, None, ": 1}"), call(1, "c2", "other", "{}")]},
            finish_reason="tool_calls",
        )
    )
    told = [(event["type"].removeprefix("response."), event.get("output_index")) for event in events[7:-1]]
    assert told == [
        ("output_item.done", 0),
        ("output_item.added", 1),
        ("function_call_arguments.delta", 1),
        ("function_call_arguments.delta", 1),
        ("function_call_arguments.done", 1),
        ("output_item.done", 1),
        ("output_item.added", 2),
        ("function_call_arguments.delta", 2),
        ("function_call_arguments.done", 2),
        ("output_item.done", 2),
    ]
    whole = chat(
        "tool_calls",
        content="I look.",
        tool_calls=[call(0, "c1", "weather", '{"a": 1}'), call(1, "c2", "other", "{}")],
    )
    assert events[-1]["response"] == dialect().answer(whole, BODY)


def test_calls_that_are_told_at_once_are_whole() -> None:
    events = streamed(
        chunks(
            {"tool_calls": [call(0, "c1", "f", "[1"), call(1, "c2", "g", "[2")]},
            {"tool_calls": [call(0, None, None, "]"), call(1, None, None, "]")]},
        )
    )
    assert [item["arguments"] for item in events[-1]["response"]["output"]] == ["[1]", "[2]"]


def test_a_cut_stream_is_incomplete() -> None:
    events = streamed(chunks({"content": "ra"}, finish_reason="length"))
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_stream_that_fails() -> None:
    stream = dialect().stream(BODY)
    first = [event for chunk in chunks({"content": "ra"})[:2] for event in stream.feed(chunk)]
    failed = read(stream.error(503, "the engine went away"))
    assert failed["sequence_number"] == len(first)
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_error", "message": "the engine went away"}
    assert failed["response"]["id"] == "resp_1"


def test_a_stream_that_fails_at_once_begins_first() -> None:
    raw = dialect().stream(BODY).error(429, "too many")
    events = [read(event + b"\n\n") for event in raw.split(b"\n\n") if event]
    assert [event["type"] for event in events] == ["response.created", "response.in_progress", "response.failed"]
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


def test_a_response_can_be_continued() -> None:
    responses = dialect(10_000)
    first = responses.answer(chat("tool_calls", content="I look.", tool_calls=[call(0, "c1", "f", "{}")]), BODY)
    assert first["store"]
    body = {
        "previous_response_id": first["id"],
        "input": [{"type": "function_call_output", "call_id": "c1", "output": "12"}],
    }
    asked = responses.read(body)["messages"]
    assert [message["role"] for message in asked] == ["user", "assistant", "tool"]
    second = responses.answer(chat(content="12") | {"id": "chatcmpl-2"}, body)
    assert second["previous_response_id"] == "resp_1"
    third = responses.read({"previous_response_id": "resp_2", "input": "and?", "instructions": "new"})["messages"]
    assert third == [
        {"role": "system", "content": "new"},
        *asked,
        {"role": "assistant", "content": "12"},
        {"role": "user", "content": "and?"},
    ]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (BODY | {"store": False}, chat(content="x")),
        (BODY, chat("length", content="x")),
        (BODY, chat(None, content="x")),
    ],
)
def test_what_is_not_to_be_stored_or_was_cut_cannot_be_continued(body: dict[str, Any], answer: dict[str, Any]) -> None:
    responses = dialect(10_000)
    responses.answer(answer, body)
    with pytest.raises(CallError) as refused:
        responses.read({"previous_response_id": "resp_1", "input": "and?"})
    assert (refused.value.status, refused.value.code) == (400, "previous_response_not_found")


def test_memory_is_bounded() -> None:
    responses = dialect(1000)
    for i in range(30):
        responses.answer(chat(content="x" * 100) | {"id": f"chatcmpl-{i}"}, BODY)
    responses.read({"previous_response_id": "resp_29", "input": "and?"})
    with pytest.raises(CallError):
        responses.read({"previous_response_id": "resp_0", "input": "and?"})


def test_without_memory_nothing_is_promised() -> None:
    assert not dialect().answer(chat(content="x"), BODY)["store"]
    with pytest.raises(CallError) as refused:
        dialect().read({"previous_response_id": "resp_1", "input": "and?"})
    assert refused.value.param == "previous_response_id"


def test_an_error_names_the_parameter_at_fault_as_this_api_has_it() -> None:
    with pytest.raises(CallError) as refused:
        dialect().read({"input": [{"type": "message", "role": "nobody", "content": "x"}]})
    assert json.loads(error_body(refused.value, dialect()))["error"]["param"] == "input[0].role"
    given = {"error": {"message": "too long", "param": "messages", "code": "context_length_exceeded"}}
    raw = json.dumps(given).encode()
    assert json.loads(error_body(engine_refusal(400, raw, None), dialect()))["error"]["param"] == "input"
    assert error_body(engine_refusal(400, raw, None), None) == raw
    raw = json.dumps({"error": {"message": "odd", "param": 3}}).encode()
    assert json.loads(error_body(engine_refusal(400, raw, None), dialect()))["error"]["param"] is None


texts = st.text(max_size=6)
calls_strategy = st.lists(st.tuples(st.text(min_size=1, max_size=4), st.text(min_size=1, max_size=8)), max_size=3)


@given(text=texts, calls=calls_strategy, cuts=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_nothing_said_is_lost(text: str, calls: list[tuple[str, str]], cuts: int) -> None:
    """The same words by an answer, by a stream, and back as the input of the next request."""
    tool_calls = [call(i, f"c{i}", name, arguments) for i, (name, arguments) in enumerate(calls)]
    whole = dialect().answer(chat(content=text, tool_calls=tool_calls), BODY)
    deltas: list[dict[str, Any]] = [{"content": text[i : i + cuts]} for i in range(0, len(text), cuts)]
    for made in tool_calls:
        name, arguments = made["function"]["name"], made["function"]["arguments"]
        deltas.append({"tool_calls": [call(made["index"], made["id"], name, arguments[:cuts])]})
        deltas.append({"tool_calls": [call(made["index"], None, None, arguments[cuts:])]})
    assert streamed(chunks(*deltas))[-1]["response"] == whole
    asked = chat_request({"input": [{"role": "user", "content": "q"}, *whole["output"]]})["messages"]
    assert len(asked) == 2
    assert (asked[1]["content"] or "") == text
    assert asked[1].get("tool_calls", []) == [{k: v for k, v in made.items() if k != "index"} for made in tool_calls]
