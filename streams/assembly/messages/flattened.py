"""Messages written as one attribute a field: Traceloop's and AgentOps' `gen_ai.prompt.N.*`, OpenInference's
`llm.input_messages.N.message.*`."""

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.streams.assembly.loose import as_list, as_mapping, indexed, read_text
from headrace.streams.assembly.messages.message import (
    Message,
    ToolCall,
    arguments_of,
    image_part,
    joined,
    role_of,
    text_of,
    text_part,
)
from headrace.streams.assembly.messages.openai import content_part, tool_calls

PART_KINDS = frozenset({"text", "image_url", "input_text", "output_text", "input_image", "image"})


def prompt_messages(attributes: Mapping[str, Any]) -> list[Message]:
    """`gen_ai.prompt.N.*`."""
    return [_traceloop(as_mapping(item), "user") for item in indexed(attributes, "gen_ai.prompt")]


def completion_messages(attributes: Mapping[str, Any]) -> list[Message]:
    """`gen_ai.completion.N.*`, one a choice. LiteLLM numbers the tool calls of its one choice instead."""
    items = [as_mapping(item) for item in indexed(attributes, "gen_ai.completion")]
    if items and all("function_call" in item and "role" not in item and "content" not in item for item in items):
        calls = [call for item in items for call in tool_calls([item["function_call"]])]
        return [Message(role="assistant", tool_calls=calls)]
    return [_traceloop(item, "assistant") for item in items]


def _traceloop(fields: Mapping[str, Any], default_role: str) -> Message:
    tool_call_id = fields.get("tool_call_id")
    calls = list(tool_calls(fields.get("tool_calls")))
    if not calls and "function_call" in fields:
        calls = list(tool_calls([fields["function_call"]]))
    return Message(
        role=role_of(fields.get("role"), default_role),
        content=_content(fields.get("content")),
        tool_calls=calls,
        tool_call_id=tool_call_id if isinstance(tool_call_id, str) else None,
    )


def _content(value: Any) -> str | list[dict[str, Any]] | None:
    """Text, or parts that were written as JSON text."""
    if isinstance(value, str):
        if not value.startswith("[{"):
            return value or None
        parts = as_list(read_text(value))
        if not parts or any(as_mapping(part).get("type") not in PART_KINDS for part in parts):
            return value
        return joined([found for part in parts for found in content_part(part)])
    if value is None:
        return None
    parts = [found for part in as_list(value) for found in content_part(part)]
    return joined(parts) if parts else text_of(value)


def openinference_input(attributes: Mapping[str, Any]) -> list[Message]:
    """`llm.input_messages.N.message.*`, or `llm.prompts.N.prompt.text` of a text completion."""
    found: list[Message] = []
    for item in indexed(attributes, "llm.input_messages"):
        fields = as_mapping(item)
        if "message" in fields:
            message = _openinference(as_mapping(fields["message"]), "user")
            results = list(_autogen_results(fields))
            found += results if results and message.empty else [message, *results]
    for item in indexed(attributes, "llm.prompts"):
        text = as_mapping(as_mapping(item).get("prompt")).get("text")
        found.append(Message(role="user", content=text_of(text)))
    return found


def openinference_output(attributes: Mapping[str, Any]) -> list[Message]:
    """`llm.output_messages.N.message.*`, or `llm.choices.N.completion.text` of a text completion."""
    items = indexed(attributes, "llm.output_messages")
    found = [_openinference(as_mapping(as_mapping(item).get("message")), "assistant") for item in items]
    for item in indexed(attributes, "llm.choices"):
        text = as_mapping(as_mapping(item).get("completion")).get("text")
        found.append(Message(role="assistant", content=text_of(text)))
    return found


def _openinference(fields: Mapping[str, Any], default_role: str) -> Message:
    parts: list[dict[str, Any]] = []
    for item in as_list(fields.get("contents")):
        content = as_mapping(as_mapping(item).get("message_content"))
        url = as_mapping(as_mapping(content.get("image")).get("image")).get("url")
        if isinstance(content.get("text"), str):
            parts.append(text_part(content["text"]))
        elif isinstance(url, str):
            parts.append(image_part(url))
    content = fields.get("content")
    calls = list(_openinference_calls(fields))
    tool_call_id = fields.get("tool_call_id")
    return Message(
        role=role_of(fields.get("role"), default_role),
        content=_content(content) if content else joined(parts),
        tool_calls=calls,
        tool_call_id=tool_call_id if isinstance(tool_call_id, str) else None,
    )


def _openinference_calls(fields: Mapping[str, Any]) -> Iterator[ToolCall]:
    for item in as_list(fields.get("tool_calls")):
        call = as_mapping(as_mapping(item).get("tool_call"))
        function = as_mapping(call.get("function"))
        name = function.get("name")
        if isinstance(name, str):
            call_id = call.get("id")
            yield ToolCall(call_id if isinstance(call_id, str) else None, name, arguments_of(function.get("arguments")))
    name = fields.get("function_call_name")
    if isinstance(name, str):
        yield ToolCall(None, name, arguments_of(fields.get("function_call_arguments_json")))


def _autogen_results(fields: Mapping[str, Any]) -> Iterator[Message]:
    """AutoGen's tool results, which stand beside the message."""
    for item in as_list(fields.get("function")):
        result = as_mapping(read_text(item) if isinstance(item, str) else item)
        if "call_id" in result:
            yield Message(role="tool", content=text_of(result.get("content")), tool_call_id=str(result["call_id"]))
