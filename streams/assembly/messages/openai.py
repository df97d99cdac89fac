"""Messages of OpenAI's own requests and responses (chat and Responses API) and of Anthropic's, as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.streams.assembly.loose import as_list, as_mapping, read_text
from headrace.streams.assembly.messages.message import (
    TEXT_PARTS,
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


def chat_messages(value: Any) -> list[Message]:
    """Messages of a chat request. Anthropic's tool results become messages of their own."""
    found: list[Message] = []
    for item in as_list(read_text(value) if isinstance(value, str) else value):
        fields = as_mapping(item)
        if fields:
            found += _chat_message(fields)
    return found


def _chat_message(fields: Mapping[str, Any]) -> Iterator[Message]:
    role = role_of(fields.get("role"))
    parts: list[dict[str, Any]] = []
    calls = list(tool_calls(fields.get("tool_calls")))
    content = fields.get("content", fields.get("parts"))
    if isinstance(content, str):
        content = blocks_of(content)
    if isinstance(content, str):
        parts.append(text_part(content))
    for item in as_list(content):
        part = as_mapping(item)
        if block := plain_block(part):
            part = item = block
        match part.get("type"):
            case "tool_use":
                calls.append(ToolCall(_id(part.get("id")), str(part.get("name", "")), arguments_of(part.get("input"))))
            case "tool_result":
                result = text_of(part.get("content"))
                yield Message(role="tool", content=result, tool_call_id=_id(part.get("tool_use_id")))
            case _:
                parts += content_part(item)
    if function := as_mapping(fields.get("function_call")):
        calls.append(ToolCall(None, str(function.get("name", "")), arguments_of(function.get("arguments"))))
    tool_call_id = _id(fields.get("tool_call_id"))
    if parts or calls or tool_call_id or not isinstance(content, list):
        yield Message(role=role, content=joined(parts), tool_calls=calls, tool_call_id=tool_call_id)


def blocks_of(text: str) -> Any:
    """Content that Bedrock's libraries write as JSON text of blocks; other text stays text."""
    if not text.startswith("[{"):
        return text
    blocks = as_list(read_text(text))
    return blocks if blocks and all(plain_block(as_mapping(block)) for block in blocks) else text


def plain_block(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """A block of Bedrock or Gemini, which tell their kind by their key, in Anthropic's form; None for any other."""
    if "type" in block:
        return None
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    for key in ("toolUse", "function_call", "functionCall"):
        if call := as_mapping(block.get(key)):
            arguments = call.get("input", call.get("args"))
            return {
                "type": "tool_use",
                "id": call.get("toolUseId", call.get("id")),
                "name": call.get("name"),
                "input": arguments,
            }
    for key in ("toolResult", "function_response", "functionResponse"):
        if result := as_mapping(block.get(key)):
            content = result.get("content", result.get("response"))
            texts = [as_mapping(part).get("text") for part in as_list(content)]
            if texts and all(isinstance(text, str) for text in texts):
                content = "".join(str(text) for text in texts)
            return {"type": "tool_result", "tool_use_id": result.get("toolUseId", result.get("id")), "content": content}
    return None


def content_part(item: Any) -> list[dict[str, Any]]:
    """A part of a message's content as OpenAI's chat API has it; reasoning and unknown parts are left out."""
    if isinstance(item, str):
        return [text_part(item)]
    part = as_mapping(item)
    kind = part.get("type")
    if kind in TEXT_PARTS:
        return [text_part(part.get("text", part.get("content")))]
    if kind in ("image_url", "input_image"):
        image = part.get("image_url")
        url = as_mapping(image).get("url") if isinstance(image, dict) else image
        return [image_part(url)] if isinstance(url, str) else []
    if kind == "image":
        source = as_mapping(part.get("source"))
        url = source.get("url") or source.get("data") or part.get("image")
        media_type = source.get("media_type") or part.get("mediaType") or part.get("mimeType")
        return [image_part(data_url(url, media_type))] if isinstance(url, str) else []
    return []


def tool_calls(value: Any) -> Iterator[ToolCall]:
    """Tool calls as chat messages hold them; some libraries leave out the `function` around the name."""
    for item in as_list(read_text(value) if isinstance(value, str) else value):
        fields = as_mapping(item)
        function = as_mapping(fields.get("function")) or fields
        name = function.get("name")
        if isinstance(name, str) and name:
            arguments = function.get("arguments", function.get("args"))
            yield ToolCall(_id(fields.get("id")), name, arguments_of(arguments))


def chat_choices(choices: Sequence[Mapping[str, Any]]) -> list[Message]:
    """One message a choice of a chat completion, or a text completion."""
    found: list[Message] = []
    for choice in choices:
        fields = as_mapping(choice.get("message"))
        if fields:
            found += _chat_message({"role": "assistant", **fields})
        elif isinstance(choice.get("text"), str):
            found.append(Message(role="assistant", content=choice["text"]))
    return found


def request_messages(request: Any) -> list[Message]:
    """Messages of a request: chat (`messages`), Responses (`input`, `instructions`) or text completion (`prompt`)."""
    fields = as_mapping(request)
    if not fields:
        return items_messages(as_list(request))
    found: list[Message] = []
    instructions = fields.get("instructions", fields.get("system"))
    if instructions:
        found.append(Message(role="system", content=text_of(instructions)))
    if "messages" in fields:
        value = fields["messages"]
        messages = chat_messages(value)
        if isinstance(value, str) and not messages:  # Haystack's generators take a text as the user's message
            messages = [Message(role="user", content=value)]
        return found + messages
    for key in ("input", "prompt"):
        if isinstance(value := fields.get(key), str):
            return [*found, Message(role="user", content=value)]
    return found + items_messages(as_list(fields.get("input")))


def response_messages(response: Mapping[str, Any]) -> list[Message]:
    """Messages of a response: chat or text completion, Responses API, or Anthropic's."""
    if "choices" in response:
        return chat_choices([as_mapping(choice) for choice in as_list(response["choices"])])
    if "output" in response:
        return one_assistant(items_messages(as_list(response["output"])))
    if response.get("role") == "assistant":
        return list(_chat_message(response))
    if message := as_mapping(response.get("message")):
        return list(_chat_message({"role": "assistant", **message}))
    return []


def listed_answer(items: Sequence[Any]) -> list[Message]:
    """Messages of an answer that is a list: of items, or of whole responses (OpenAI Agents, of a stream)."""
    responses = [as_mapping(item) for item in items]
    if all("object" in response and "output" in response for response in responses):
        return [message for response in responses for message in response_messages(response)]
    return items_messages(items)


def items_messages(items: Sequence[Any]) -> list[Message]:
    """Items of the Responses API, plain chat messages, or bare tool calls as chat messages hold them (CrewAI); what the
    model said in one turn is one message."""
    found: list[Message] = []
    for item in items:
        fields = as_mapping(item)
        match fields.get("type"):
            case "function_call":
                call = ToolCall(
                    _id(fields.get("call_id")), str(fields.get("name", "")), arguments_of(fields.get("arguments"))
                )
                _add_calls(found, [call])
            case "function" if "function" in fields:
                _add_calls(found, tool_calls([fields]))
            case "function_call_output":
                result = text_of(fields.get("output"))
                found.append(Message(role="tool", content=result, tool_call_id=_id(fields.get("call_id"))))
            case "reasoning":
                continue
            case _:
                if "role" in fields:
                    found += _chat_message(fields)
    return found


def _add_calls(found: list[Message], calls: Iterable[ToolCall]) -> None:
    if not found or found[-1].role != "assistant":
        found.append(Message(role="assistant"))
    found[-1].tool_calls = [*found[-1].tool_calls, *calls]


def one_assistant(messages: Sequence[Message]) -> list[Message]:
    """A model's answer that comes in several items, as the one message of its only choice."""
    if not messages:
        return []
    texts = [message.content for message in messages if isinstance(message.content, str)]
    calls = [call for message in messages for call in message.tool_calls]
    return [Message(role="assistant", content="".join(texts) or None, tool_calls=calls)]


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
