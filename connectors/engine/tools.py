"""Tools in chat completions: calls that a model writes as Hermes does,
`<tool_call>{"name": …, "arguments": …}</tool_call>` (NousResearch's function calling, which
Qwen's templates teach too; vLLM's `hermes` parser reads the same)."""

from __future__ import annotations

import uuid
from typing import Any, cast

import orjson

START, END = "<tool_call>", "</tool_call>"
ToolCall = dict[str, Any]


class ToolReader:
    """Splits a text into content and tool calls while it comes.

    Attributes:
        calls: how many there were.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._text = ""
        self._after_call = False

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        """Takes text; the content and the calls that are certain now."""
        # Line breaks after a call are no content.
        text = text.lstrip() if self._after_call and not self._text else text
        self._after_call = self._after_call and not text
        self._text += text
        content: list[str] = []
        calls: list[ToolCall] = []
        while True:
            start = self._text.find(START)
            if start < 0:
                keep = held_suffix(self._text, [START])
                content.append(self._text[: len(self._text) - keep])
                self._text = self._text[len(self._text) - keep :]
                break
            content.append(self._text[:start])
            self._text = self._text[start:]
            end = self._text.find(END)
            if end < 0:
                break
            block, self._text = self._text[: end + len(END)], self._text[end + len(END) :].lstrip()
            self._after_call = not self._text
            self._read(block, content, calls)
        return "".join(content), calls

    def end(self) -> tuple[str, list[ToolCall]]:
        """What is left at the end; a call whose end is missing counts if it is whole otherwise."""
        block, self._text = self._text, ""
        content: list[str] = []
        calls: list[ToolCall] = []
        if block.startswith(START):
            self._read(block, content, calls)
        else:
            content.append(block)
        return "".join(content), calls

    def _read(self, block: str, content: list[str], calls: list[ToolCall]) -> None:
        call = _parse(block.removeprefix(START).removesuffix(END), self.calls)
        if call is None:
            content.append(block)
        else:
            calls.append(call)
            self.calls += 1


def _parse(text: str, index: int) -> ToolCall | None:
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    name, arguments = fields.get("name"), fields.get("arguments")
    if not isinstance(name, str):
        return None
    try:
        written = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    except TypeError:  # it reads 1,024 levels and writes 254
        return None
    function = {"name": name, "arguments": written}
    return {"index": index, "id": f"chatcmpl-tool-{uuid.uuid4().hex}", "type": "function", "function": function}


def held_suffix(text: str, marks: list[str]) -> int:
    """How many characters at the end of a text may be the beginning of one of the marks."""
    longest = max(map(len, marks), default=1) - 1
    for size in range(min(longest, len(text)), 0, -1):
        suffix = text[-size:]
        if any(mark.startswith(suffix) for mark in marks):
            return size
    return 0


def tool_fault(tools: list[dict[str, Any]]) -> str | None:
    """What is wrong with the tools of a request, if anything."""
    for i, tool in enumerate(tools):
        function: Any = tool.get("function")
        if not isinstance(function, dict) or not isinstance(cast("dict[str, Any]", function).get("name"), str):
            return f"tools[{i}] has no function with a name"
    return None


def with_parsed_arguments(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose tool calls have their arguments as objects, as templates expect them (and vLLM gives them)."""
    calls: Any = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return message
    return {**message, "tool_calls": [_with_parsed(call) for call in cast("list[Any]", calls)]}


def _with_parsed(call: Any) -> Any:
    function: Any = cast("dict[str, Any]", call).get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return cast("Any", call)
    fields = cast("dict[str, Any]", function)
    arguments: Any = fields.get("arguments")
    if arguments is None or isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError:
            return cast("dict[str, Any]", call)
    whole: dict[str, Any] = {**cast("dict[str, Any]", call), "function": {**fields, "arguments": arguments}}
    return whole
