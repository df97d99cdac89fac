"""Requests to the Responses API as chat completions: each field, each kind of item, and what is refused."""

from typing import Any

import pytest

from headrace.connectors.gateway.dialects.responses.request import chat_request, ignored
from headrace.connectors.gateway.errors import CallError

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}


def messages(*items: Any, **more: Any) -> list[dict[str, Any]]:
    return chat_request({"model": "m", "input": list(items), **more})["messages"]


def test_text_is_a_users_message() -> None:
    assert chat_request({"model": "m", "input": "hi", "instructions": "be brief"}) == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
    }


def test_what_the_model_did_in_one_turn_is_one_message() -> None:
    assert messages(
        {"role": "developer", "content": "rules"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "12"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "20"}]},
        {"role": "assistant", "content": "12 and 20"},
    ) == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}},
                {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
        {"role": "tool", "tool_call_id": "c2", "content": "20"},
        {"role": "assistant", "content": "12 and 20"},
    ]


def test_a_text_after_a_call_belongs_to_its_turn() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    said = [{"role": "assistant", "content": text} for text in ("a", "b")]
    (message,) = messages(said[0], call, said[1])
    assert (message["content"], len(message["tool_calls"])) == ("ab", 1)
    (message,) = messages(call, said[1])
    assert message["content"] == "b"


def test_images_files_and_sounds_go_over() -> None:
    (message,) = messages(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            ],
        }
    )
    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]


@pytest.mark.parametrize(
    ("given", "chat"),
    [
        ({"max_output_tokens": 7}, {"max_completion_tokens": 7}),
        ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
        ({"temperature": 0}, {"temperature": 0}),
        ({"temperature": None, "top_p": None, "max_output_tokens": None}, {}),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
        ({"stream": False}, {"stream": False}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"user": "u", "seed": 3, "stop": ["x"]}, {"user": "u", "seed": 3, "stop": ["x"]}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "text"}}}, {}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "w", "schema": WEATHER, "strict": True}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "w", "schema": WEATHER, "strict": True},
                }
            },
        ),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True, "top_logprobs": 0}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"metadata": {"a": "b"}, "store": True, "truncation": "auto"}, {}),
    ],
)
def test_each_field(given: dict[str, Any], chat: dict[str, Any]) -> None:
    found = chat_request({"input": "hi", **given})
    assert found == {"messages": [{"role": "user", "content": "hi"}], **chat}


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "d", "parameters": WEATHER, "strict": True}


def chat_tool(name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": WEATHER, "strict": True},
    }


@pytest.mark.parametrize(
    ("choice", "tools", "chosen"),
    [
        (None, ["f", "g"], None),
        ("auto", ["f", "g"], "auto"),
        ("required", ["f", "g"], "required"),
        ("none", ["f", "g"], "none"),
        ({"type": "function", "name": "g"}, ["f", "g"], {"type": "function", "function": {"name": "g"}}),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]},
            ["g"],
            "required",
        ),
    ],
)
def test_tools(choice: Any, tools: list[str], chosen: Any) -> None:
    found = chat_request({"input": "hi", "tools": [tool("f"), tool("g")], "tool_choice": choice})
    assert found["tools"] == [chat_tool(name) for name in tools]
    assert found.get("tool_choice") == chosen


def test_a_choice_without_tools_is_left_out_where_it_means_nothing() -> None:
    assert "tool_choice" not in chat_request({"input": "hi", "tool_choice": "auto", "tools": []})


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "smell"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
        ({"input": "x", "tool_choice": "sometimes"}, "tool_choice"),
        ({"input": "x", "tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"input": "x", "text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
        ({"input": "x", "max_output_tokens": "many"}, "max_output_tokens"),
        ({"input": "x", "stream": "yes"}, "stream"),
        ({"input": "x", "background": True}, "background"),
        ({"input": "x", "conversation": "c"}, "conversation"),
        ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
        ({"input": "x", "n": 2}, "n"),
    ],
)
def test_what_cannot_be_says_which_parameter(body: dict[str, Any], param: str) -> None:
    with pytest.raises(CallError) as refused:
        chat_request(body)
    assert (refused.value.status, refused.value.param) == (400, param)


def test_what_has_no_effect_is_named() -> None:
    body = {
        "input": [{"role": "user", "content": "x"}, {"type": "reasoning", "summary": []}],
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "truncation": "auto",
        "service_tier": None,
    }
    assert ignored(body) == ["include.reasoning.encrypted_content", "input.reasoning", "truncation"]
