"""Messages of the Vercel AI SDK's telemetry: `ai.prompt.*` and `ai.response.*`."""

from collections.abc import Mapping
from typing import Any

from headrace.streams.assembly.loose import as_list, as_mapping
from headrace.streams.assembly.messages.genai import decoded
from headrace.streams.assembly.messages.message import (
    Message,
    ToolCall,
    arguments_of,
    data_url,
    image_part,
    joined,
    role_of,
    text_of,
    text_part,
)
from headrace.streams.assembly.messages.openai import content_part


def prompt(attributes: Mapping[str, Any]) -> list[Message]:
    """`ai.prompt.messages`."""
    found: list[Message] = []
    for item in as_list(decoded(attributes.get("ai.prompt.messages"))):
        fields = as_mapping(item)
        role, content = role_of(fields.get("role")), fields.get("content")
        if isinstance(content, str):
            found.append(Message(role=role, content=content or None))
            continue
        parts: list[dict[str, Any]] = []
        calls: list[ToolCall] = []
        results: list[Message] = []
        for piece in as_list(content):
            part = as_mapping(piece)
            match part.get("type"):
                case "tool-call":
                    calls.append(_call(part))
                case "tool-result":
                    results.append(_result(part))
                case "file":
                    if isinstance(data := part.get("data"), str):
                        parts.append(image_part(data_url(data, part.get("mediaType", part.get("mimeType")))))
                case "text":
                    parts.append(text_part(part.get("text")))
                case _:
                    parts += content_part(piece)
        if parts or calls or not results:
            found.append(Message(role=role, content=joined(parts), tool_calls=calls))
        found += results
    return found


def response(attributes: Mapping[str, Any]) -> list[Message]:
    """`ai.response.text` and `ai.response.toolCalls`."""
    text = attributes.get("ai.response.text", attributes.get("ai.response.object"))
    calls = [_call(as_mapping(item)) for item in as_list(decoded(attributes.get("ai.response.toolCalls")))]
    if not isinstance(text, str) and not calls:
        return []
    return [Message(role="assistant", content=text if isinstance(text, str) and text else None, tool_calls=calls)]


def _call(part: Mapping[str, Any]) -> ToolCall:
    call_id = part.get("toolCallId")
    arguments = part.get("input", part.get("args"))
    return ToolCall(
        call_id if isinstance(call_id, str) else None, str(part.get("toolName", "")), arguments_of(arguments)
    )


def _result(part: Mapping[str, Any]) -> Message:
    output = part.get("output", part.get("result"))
    wrapped = as_mapping(output)
    if wrapped.get("type") in ("text", "json", "error-text", "error-json") and "value" in wrapped:
        output = wrapped["value"]
    call_id = part.get("toolCallId")
    return Message(role="tool", content=text_of(output), tool_call_id=call_id if isinstance(call_id, str) else None)
