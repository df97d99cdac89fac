"""A chat message in one form, whatever convention told it."""

import json
from typing import Any

import msgspec

from headrace.streams.assembly.loose import as_list, as_mapping

ROLES = {"developer": "system", "human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model calls; `arguments` is JSON text as the model wrote it."""

    id: str | None
    name: str
    arguments: str = "{}"


class Message(msgspec.Struct, kw_only=True):
    """One message; `content` is text, OpenAI content parts where not all is text, or None."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None

    @property
    def empty(self) -> bool:
        return not self.content and not self.tool_calls


def role_of(value: Any, default: str = "user") -> str:
    """A role by OpenAI's names."""
    if not isinstance(value, str) or not value:
        return default
    word = value.rpartition(".")[2].lower()
    return ROLES.get(word, word)


def text_of(value: Any) -> str | None:
    """A tool's result, or any content that has to be text."""
    if value is None or isinstance(value, str):
        return value
    parts = as_list(value)
    if parts and all(as_mapping(part).get("type") in TEXT_PARTS for part in parts):
        return "".join(str(as_mapping(part).get("text", "")) for part in parts)
    return json.dumps(value, ensure_ascii=False)


def arguments_of(value: Any) -> str:
    """A tool call's arguments as JSON text; absent ones are an empty object."""
    if value is None or value == "":
        return "{}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def joined(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]] | None:
    """Parts as content: one text if all are text, else the parts; None if there are none."""
    if not parts:
        return None
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts) or None
    return parts


def text_part(text: Any) -> dict[str, Any]:
    return {"type": "text", "text": text if isinstance(text, str) else text_of(text) or ""}


def image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def data_url(data: str, media_type: Any) -> str:
    """Base64 data as a URL; what is a URL already stays."""
    if data.startswith(("data:", "http://", "https://")):
        return data
    return f"data:{media_type if isinstance(media_type, str) and media_type else 'image/png'};base64,{data}"


def openai_message(message: Message) -> dict[str, Any]:
    """The message as OpenAI's chat API takes it."""
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found
