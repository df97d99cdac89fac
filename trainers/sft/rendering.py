"""Conversations to prompts and responses in token ids, by what each answer adds to the rendered text. Pure.

The prompt of an answer is what the template gives with the assistant's turn opened, tokenised on its own, as it is when
a model is asked; its response is what the text has more with the answer in it. Answers whose prompt begins with all of
an earlier prompt and response make one row (`rows.make_rows`); where a template rewrites earlier turns, each makes its
own.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.streams.chat_template import ChatTemplate, ChatTemplateError

Encode = Callable[[str], list[int]]
"""Text to token ids; special tokens are recognised, and none are added."""
Message = Mapping[str, Any]

REFUSED = "template_refuses"
NOT_A_PREFIX = "template_not_prefix"
EMPTY = "empty_response"
NO_ANSWER = "no_answer"


class RenderError(ValueError):
    """An answer of which no example can be made.

    Attributes:
        reason: one word, as drops carry it.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model.

    Attributes:
        prompt: token ids.
        response: token ids, up to what ends the turn.
        marked: the template marks what is generated, and says otherwise than the prefix does; the mark is taken.
    """

    prompt: list[int]
    response: list[int]
    marked: bool = False


class Renderer:
    """Makes answers by one model's template and tokenizer.

    Args:
        ends: texts of the tokens that end a turn.
    """

    def __init__(self, template: ChatTemplate, encode: Encode, ends: Sequence[str]) -> None:
        self._template = template
        self._encode = encode
        self._ends = tuple(end for end in ends if end)

    def answers(self, messages: Sequence[Message], tools: Sequence[Message] | None = None) -> list[Answer]:
        """Every assistant message of a conversation as an answer to what stands before it.

        Raises:
            RenderError: see `answer`; or there is no assistant message.
        """
        places = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
        if not places:
            raise RenderError(NO_ANSWER, "the conversation has no assistant message")
        return [self.answer(messages[: place + 1], tools) for place in places]

    def answer(self, messages: Sequence[Message], tools: Sequence[Message] | None = None) -> Answer:
        """The last message as an answer to those before it.

        Raises:
            RenderError: it is not the assistant's (`no_answer`); the template refuses the messages
                (`template_refuses`), does not begin the whole text as it begins the prompt (`template_not_prefix`), or
                adds nothing (`empty_response`).
        """
        if not messages or messages[-1].get("role") != "assistant":
            raise RenderError(NO_ANSWER, "the last message is not the assistant's")
        told = [plain(message) for message in messages]
        try:
            prompt = self._template.render(told[:-1], tools=tools, add_generation_prompt=True)
            whole, spans = self._template.render_marked(told, tools=tools)
        except ChatTemplateError as error:
            raise RenderError(REFUSED, str(error)) from error
        added = self._ended(whole[len(prompt) :]) if whole.startswith(prompt) else None
        marked = False
        if spans:
            start, end = spans[-1]
            marked = added is None or (start, end) != (len(prompt), len(prompt) + len(added))
            prompt, added = whole[:start], whole[start:end]
        if added is None:
            raise RenderError(NOT_A_PREFIX, "with the answer in it the text does not begin as the prompt does")
        response = self._encode(added)
        if not response:
            raise RenderError(EMPTY)
        return Answer(self._encode(prompt), response, marked)

    def _ended(self, text: str) -> str:
        """What is generated ends with the token that ends the turn; line breaks behind it are the template's."""
        stripped = text.rstrip()
        return stripped if self._ends and stripped.endswith(self._ends) else text


def plain(message: Message) -> dict[str, Any]:
    """A message as templates expect it: content is text, arguments of tool calls are values instead of JSON text."""
    made = {**message, "content": _content(message.get("content"))}
    calls = message.get("tool_calls")
    if calls:
        made["tool_calls"] = [_call(call) for call in calls]
    return made


def _content(content: Any) -> Any:
    if content is None:
        return ""
    if isinstance(content, list):
        parts = cast(list[dict[str, Any]], content)
        if all(part.get("type") == "text" for part in parts):
            return "".join(str(part.get("text", "")) for part in parts)
    return cast(Any, content)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict):
            function["arguments"] = parsed
    return {**call, "function": function}
