"""Messages of the GenAI conventions: messages of parts on the span, and the events of earlier versions."""

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.streams.assembly.loose import as_list, as_mapping, read_text
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
from headrace.streams.assembly.messages.openai import chat_choices, chat_messages, content_part

INPUT, OUTPUT, INSTRUCTIONS = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"
PROMPT, COMPLETION = "gen_ai.prompt", "gen_ai.completion"
MESSAGE_KEYS = frozenset({"role", "content", "parts"})
MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE_EVENT = "gen_ai.choice"


def decoded(value: Any) -> Any:
    """A value that libraries write as JSON text or as a structure."""
    return read_text(value) if isinstance(value, str) else value


def input_messages(attributes: Mapping[str, Any]) -> list[Message]:
    """`gen_ai.input.messages` with the system instructions before them."""
    found = part_messages(decoded(attributes.get(INPUT)), "user")
    instructions = attributes.get(INSTRUCTIONS)
    if instructions:
        system = _instructions(instructions)
        if system is not None and not any(m.role == "system" and m.content == system.content for m in found):
            found.insert(0, system)
    return found


def output_messages(attributes: Mapping[str, Any]) -> list[Message]:
    """`gen_ai.output.messages`, one a choice."""
    return part_messages(decoded(attributes.get(OUTPUT)), "assistant")


def single_prompt(attributes: Mapping[str, Any]) -> list[Message]:
    """`gen_ai.prompt`, deprecated: the request's messages as JSON text, or the text of the prompt."""
    return _single(attributes.get(PROMPT), "user")


def single_completion(attributes: Mapping[str, Any]) -> list[Message]:
    """`gen_ai.completion`, deprecated: one message a choice as JSON text, or the text of the answer."""
    return _single(attributes.get(COMPLETION), "assistant")


def _single(value: Any, role: str) -> list[Message]:
    if not value:
        return []
    read = decoded(value)
    fields = as_mapping(read)
    if "messages" in fields:
        return chat_messages(fields["messages"])
    if "choices" in fields:
        return chat_choices([as_mapping(choice) for choice in as_list(fields["choices"])])
    items = [fields] if fields else as_list(read)
    if items and all("message" in as_mapping(item) for item in items):
        items = [as_mapping(item)["message"] for item in items]
    found = part_messages(items, role) if all(not MESSAGE_KEYS.isdisjoint(as_mapping(item)) for item in items) else []
    if found:
        return found
    return [Message(role=role, content=value)] if isinstance(value, str) else []


def part_messages(value: Any, default_role: str) -> list[Message]:
    """Messages of parts; tool results become messages of their own."""
    found: list[Message] = []
    for item in as_list(value):
        fields = as_mapping(item)
        if "parts" in fields:
            found += _message(fields, default_role)
        elif fields:
            found += chat_messages([{"role": default_role, **fields}])
    return found


def _message(fields: Mapping[str, Any], default_role: str) -> Iterator[Message]:
    parts: list[dict[str, Any]] = []
    calls: list[ToolCall] = []
    results = 0
    for item in as_list(fields.get("parts")):
        part = as_mapping(item)
        match part.get("type"):
            case "tool_call":
                calls.append(
                    ToolCall(_id(part.get("id")), str(part.get("name", "")), arguments_of(part.get("arguments")))
                )
            case "tool_call_response":
                results += 1
                result = part.get("response", part.get("result"))
                yield Message(role="tool", content=text_of(result), tool_call_id=_id(part.get("id")))
            case "text":
                parts.append(text_part(part.get("content", part.get("text"))))
            case "blob" | "uri":
                data = part.get("content", part.get("data", part.get("uri")))
                if isinstance(data, str):
                    parts.append(image_part(data_url(data, part.get("mime_type", part.get("media_type")))))
            case _:
                parts += content_part(item)
    if parts or calls or not results:
        yield Message(role=role_of(fields.get("role"), default_role), content=joined(parts), tool_calls=calls)


def _instructions(value: Any) -> Message | None:
    read = decoded(value)
    if isinstance(value, str) and not isinstance(read, list | dict):
        return Message(role="system", content=value)
    parts = as_list(read) or [read]
    texts = [
        part if isinstance(part, str) else as_mapping(part).get("content", as_mapping(part).get("text"))
        for part in parts
    ]
    text = "".join(text for text in texts if isinstance(text, str))
    return Message(role="system", content=text) if text else None


def event_messages(events: Any) -> tuple[list[Message], list[Message]]:
    """Input and output messages that stand in span events, or in an attribute that lists such events."""
    sent: list[Message] = []
    answered: list[Message] = []
    for item in as_list(decoded(events)):
        event = as_mapping(item)
        attributes = as_mapping(event.get("attributes")) or event
        name = event.get("name") or event.get("event.name")
        body = as_mapping(decoded(attributes.get("gen_ai.event.content"))) or attributes
        if INPUT in attributes or OUTPUT in attributes:
            sent += input_messages(attributes)
            answered += output_messages(attributes)
        elif PROMPT in attributes or COMPLETION in attributes:  # gen_ai.content.prompt and gen_ai.content.completion
            sent += single_prompt(attributes)
            answered += single_completion(attributes)
        elif isinstance(name, str) and name in MESSAGE_EVENTS:
            fields = {**body, "role": body.get("role") or MESSAGE_EVENTS[name], "content": body.get("content")}
            if MESSAGE_EVENTS[name] == "tool":
                fields["tool_call_id"] = body.get("id")
            sent += chat_messages([fields])
        elif name == CHOICE_EVENT:
            told = decoded(body.get("message"))
            message = as_mapping(told) or (body if told is None else {"content": told})
            answered += chat_messages([{**message, "role": "assistant"}])
    return sent, answered


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
