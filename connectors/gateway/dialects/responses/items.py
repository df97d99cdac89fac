"""Input items of the Responses API as chat messages."""

from collections.abc import Sequence
from typing import Any

from headrace.connectors.gateway.dialects.fields import (
    Fields,
    content_of,
    invalid,
    joined_content,
    unsupported,
)

# Templates of open models know no developer role.
ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
TEXT_PARTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})


class Messages:
    """Chat messages that grow by items; those given are never changed."""

    def __init__(self, given: Sequence[dict[str, Any]] = ()) -> None:
        self.all = list(given)

    def add(self, item: Fields) -> None:
        """Takes the next item. What the model said in one turn becomes one message, as chat has it.

        Raises:
            CallError: 400 where it is none, or of a kind that no chat message can say.
        """
        kind = item.text("type")
        if kind is None:
            kind = "message" if "role" in item.values else "item_reference" if "id" in item.values else None
        match kind:
            case "message":
                self._add_message(item)
            case "function_call":
                self._add_call(item)
            case "function_call_output":
                output = _content(item, "output")
                call_id = item.needed_text("call_id")
                self.all.append({"role": "tool", "tool_call_id": call_id, "content": output})
            case "reasoning":
                pass  # chat templates render no reasoning of earlier turns
            case "item_reference":
                raise unsupported(item.where, f"{item.where} is a reference: items are not stored, send it whole")
            case None:
                raise invalid(item.path("type"), f"{item.path('type')} is required")
            case other:
                raise unsupported(item.where, f"{item.where} is {other!r}: this gateway has no such items")

    def _add_message(self, item: Fields) -> None:
        role = ROLES.get(item.needed_text("role"))
        if role is None:
            raise invalid(item.path("role"), f"{item.path('role')} must be one of {', '.join(ROLES)}")
        content = _content(item, "content")
        last = self._last_turn() if role == "assistant" else None
        if last is not None and last.get("tool_calls"):
            self.all[-1] = {**last, "content": joined_content(last["content"], content)}
        else:
            self.all.append({"role": role, "content": content})

    def _add_call(self, item: Fields) -> None:
        function = {"name": item.needed_text("name"), "arguments": item.text("arguments") or "{}"}
        call = {"id": item.needed_text("call_id"), "type": "function", "function": function}
        last = self._last_turn()
        if last is None:
            self.all.append({"role": "assistant", "content": None, "tool_calls": [call]})
        else:
            self.all[-1] = {**last, "tool_calls": [*last.get("tool_calls", ()), call]}

    def _last_turn(self) -> dict[str, Any] | None:
        last = self.all[-1] if self.all else None
        return last if last is not None and last["role"] == "assistant" else None


def _content(item: Fields, name: str) -> str | list[dict[str, Any]]:
    value = item.values.get(name)
    if value is None:
        raise invalid(item.path(name), f"{item.path(name)} is required")
    return value if isinstance(value, str) else content_of([_part(part) for part in item.listed(name)])


def _part(part: Fields) -> dict[str, Any]:
    kind = part.text("type")
    if kind in TEXT_PARTS:
        return {"type": "text", "text": part.text("text") or ""}
    if kind == "refusal":
        return {"type": "text", "text": part.text("refusal") or ""}
    if kind == "input_image":
        url = part.text("image_url")
        if url is None:
            raise unsupported(part.where, f"{part.where}: there is no file store; give the image as image_url")
        image = {"url": url}
        if detail := part.text("detail"):
            image["detail"] = detail
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        data = part.text("file_data")
        if data is None:
            raise unsupported(part.where, f"{part.where}: there is no file store; give the file as file_data")
        file = {"file_data": data}
        if filename := part.text("filename"):
            file["filename"] = filename
        return {"type": "file", "file": file}
    if kind == "input_audio":
        audio = part.fields("input_audio")
        return {"type": "input_audio", "input_audio": audio.values if audio else {}}
    raise invalid(part.path("type"), f"{part.path('type')}: there is no content of type {kind!r}")
