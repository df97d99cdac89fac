"""Content blocks of Anthropic's messages as chat messages."""

from typing import Any

from headrace.connectors.gateway.dialects.fields import Fields, content_of, invalid, unsupported

THINKING = ("thinking", "redacted_thinking")


def chat_messages(message: Fields) -> list[dict[str, Any]]:
    """A message of the conversation; tool results become messages of their own, before the rest of their message.

    Raises:
        CallError: 400 where it is none, or has blocks that no chat message can say.
    """
    role = message.needed_text("role")
    match role:
        case "user":
            return _user(message)
        case "assistant":
            return [_assistant(message)]
        case "system":
            return [{"role": "system", "content": text_blocks(message, "content")}]
        case _:
            raise invalid(message.path("role"), f"{message.path('role')} must be user or assistant, not {role!r}")


def text_blocks(fields: Fields, name: str) -> str | list[dict[str, Any]]:
    """A text, or blocks that are all text."""
    value = fields.values.get(name)
    if isinstance(value, str):
        return value
    parts: list[dict[str, Any]] = []
    for block in fields.listed(name):
        if block.text("type") != "text":
            raise unsupported(block.path("type"), f"{block.path('type')} must be text")
        parts.append(_text(block))
    return content_of(parts)


def _user(message: Fields) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for block in _blocks(message):
        if block.text("type") == "tool_result":
            content = [_part(inner) for inner in _blocks(block, optional=True)]
            call_id = block.needed_text("tool_use_id")
            results.append({"role": "tool", "tool_call_id": call_id, "content": content_of(content)})
        else:
            parts.append(_part(block))
    return results if results and not parts else [*results, {"role": "user", "content": content_of(parts)}]


def _assistant(message: Fields) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in _blocks(message):
        kind = block.text("type")
        if kind == "tool_use":
            calls.append(_call(block))
        elif kind not in THINKING:  # chat templates render no reasoning of earlier turns
            parts.append(_part(block))
    said: dict[str, Any] = {"role": "assistant", "content": content_of(parts) if parts or not calls else None}
    return said | {"tool_calls": calls} if calls else said


def _call(block: Fields) -> dict[str, Any]:
    given = block.fields("input")
    arguments = given.json() if given else "{}"
    function = {"name": block.needed_text("name"), "arguments": arguments}
    return {"id": block.needed_text("id"), "type": "function", "function": function}


def _blocks(fields: Fields, *, optional: bool = False) -> list[Fields]:
    """The content; a text is one block."""
    value, path = fields.values.get("content"), fields.path("content")
    if value is None and not optional:
        raise invalid(path, f"{path} is required")
    return [Fields({"type": "text", "text": value}, path)] if isinstance(value, str) else fields.listed("content")


def _part(block: Fields) -> dict[str, Any]:
    kind = block.text("type")
    match kind:
        case "text":
            return _text(block)
        case "image":
            return {"type": "image_url", "image_url": {"url": _url(block)}}
        case "document":
            return _document(block)
        case _:
            raise unsupported(block.path("type"), f"{block.path('type')} {kind!r} is not supported here")


def _text(block: Fields) -> dict[str, Any]:
    return {"type": "text", "text": block.text("text") or ""}


def _url(block: Fields) -> str:
    source = block.fields("source") or Fields({}, block.path("source"))
    match source.text("type"):
        case "url":
            return source.needed_text("url")
        case "base64":
            return f"data:{source.needed_text('media_type')};base64,{source.needed_text('data')}"
        case other:
            raise unsupported(
                source.path("type"), f"{source.path('type')} {other!r} is not supported: use base64 or url"
            )


def _document(block: Fields) -> dict[str, Any]:
    source = block.fields("source") or Fields({}, block.path("source"))
    kind = source.text("type")
    if kind == "text":
        return {"type": "text", "text": source.text("data") or ""}
    if kind == "base64":
        data = f"data:{source.needed_text('media_type')};base64,{source.needed_text('data')}"
        return {"type": "file", "file": {"file_data": data, "filename": block.text("title") or "document"}}
    raise unsupported(source.path("type"), f"{source.path('type')} {kind!r} is not supported: use text or base64")
