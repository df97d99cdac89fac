"""Requests to Anthropic's Messages API as chat completions: each field, each kind of block, and what is refused."""

from typing import Any

import pytest

from headrace.connectors.gateway.dialects.anthropic.request import chat_request, ignored
from headrace.connectors.gateway.errors import CallError

HI: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def messages(*given: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return chat_request({**HI, "messages": list(given), **more})["messages"]


def blocks(*given: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(given)}


def test_text() -> None:
    assert chat_request(HI) == {
        "model": "m",
        "max_completion_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.parametrize(
    ("system", "content"),
    [
        ("be brief", "be brief"),
        ([{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}], "be brief"),
        (
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        ),
    ],
)
def test_system(system: Any, content: Any) -> None:
    assert chat_request({**HI, "system": system})["messages"][0] == {"role": "system", "content": content}


def test_tools_are_called_and_answer() -> None:
    assert messages(
        {"role": "user", "content": "weather?"},
        blocks(
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern"}},
            {"type": "tool_use", "id": "t2", "name": "weather", "input": {}},
            role="assistant",
        ),
        blocks(
            {"type": "text", "text": "here"},
            {"type": "tool_result", "tool_use_id": "t1", "content": "12"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "no"}], "is_error": True},
        ),
        blocks({"type": "tool_result", "tool_use_id": "t2"}),
    ) == [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}},
                {"id": "t2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "12"},
        {"role": "tool", "tool_call_id": "t2", "content": "no"},
        {"role": "user", "content": "here"},
        {"role": "tool", "tool_call_id": "t2", "content": ""},
    ]


def test_images_and_documents_go_over() -> None:
    (message,) = messages(
        blocks(
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
            },
        )
    )
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "words"},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
    ]


@pytest.mark.parametrize(
    ("given", "chat"),
    [
        ({"temperature": 0.5, "top_p": 0.9, "top_k": 4}, {"temperature": 0.5, "top_p": 0.9, "top_k": 4}),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
        ({"stop_sequences": ["a", "b"]}, {"stop": ["a", "b"]}),
        ({"metadata": {"user_id": "u"}}, {"user": "u"}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {}),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
                }
            },
        ),
    ],
)
def test_each_field(given: dict[str, Any], chat: dict[str, Any]) -> None:
    assert chat_request(HI | given) == chat_request(HI) | chat


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "f"}, {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
    ],
)
def test_tools(choice: dict[str, Any], chosen: dict[str, Any]) -> None:
    tools = [{"name": "f", "description": "d", "input_schema": SCHEMA}]
    function = {"name": "f", "description": "d", "parameters": SCHEMA}
    expected = chat_request(HI) | {"tools": [{"type": "function", "function": function}]} | chosen
    assert chat_request({**HI, "tools": tools, "tool_choice": choice}) == expected


def test_an_answer_that_was_begun_goes_on() -> None:
    begun = chat_request({**HI, "messages": [*HI["messages"], {"role": "assistant", "content": "{"}]})
    assert (begun["continue_final_message"], begun["add_generation_prompt"]) == (True, False)
    assert "continue_final_message" not in chat_request(HI)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [blocks({"type": "search_result"})]}, "messages[0].content[0].type"),
        ({"messages": [blocks({"type": "image", "source": {"type": "file"}})]}, "messages[0].content[0].source.type"),
        ({"messages": [blocks({"type": "tool_result", "content": "x"})]}, "messages[0].content[0].tool_use_id"),
        (
            {"messages": [blocks({"type": "tool_use", "id": "t", "name": "f", "input": "x"}, role="assistant")]},
            "messages[0].content[0].input",
        ),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"stop_sequences": "x"}, "stop_sequences"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
    ],
)
def test_what_cannot_be_says_which_parameter(change: dict[str, Any], param: str) -> None:
    with pytest.raises(CallError) as refused:
        chat_request(HI | change)
    assert (refused.value.status, refused.value.param) == (400, param)


def test_what_has_no_effect_is_named() -> None:
    said = blocks({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}, role="assistant")
    failed = blocks({"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": True})
    body = {
        **HI,
        "messages": [said, failed],
        "thinking": {"type": "adaptive"},
        "service_tier": "auto",
        "output_config": {"format": {"type": "json_schema"}},
    }
    assert ignored(body) == ["messages.is_error", "messages.thinking", "service_tier", "thinking"]
