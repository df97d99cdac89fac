"""The chat template of a Hugging Face directory, rendered as transformers renders it, without importing that.

Sources: transformers' `apply_chat_template`; its `{% generation %}` tag marks what the model has to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from headrace.streams.errors import HeadraceError

Span = tuple[int, int]
"""Characters of a rendered text, as [start, end)."""
# Noncharacters of Unicode: no text of a conversation holds them.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"


class ChatTemplateError(HeadraceError):
    """The messages cannot be rendered, or the model has no chat template."""


class ChatTemplate:
    """Messages to text.

    Args:
        source: the Jinja template.
        special: texts of special tokens by name, such as `eos_token`.
    """

    def __init__(self, source: str, special: Mapping[str, str]) -> None:
        self.special = dict(special)
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _Generation]
        )
        environment.filters["tojson"] = _to_json
        names = cast("dict[str, Any]", environment.globals)
        names.update(raise_exception=_raise, strftime_now=_now)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise ChatTemplateError(f"the chat template is no Jinja: {error}") from error

    @classmethod
    def of(cls, directory: Path) -> ChatTemplate | None:
        """The template of a model; None where it has none.

        Raises:
            ChatTemplateError: it is no Jinja template.
        """
        settings = read_json(directory / "tokenizer_config.json")
        path = directory / "chat_template.jinja"
        source: Any = path.read_text() if path.exists() else settings.get("chat_template")
        if isinstance(source, list):
            named = cast("Iterable[dict[str, str]]", source)
            source = next((entry["template"] for entry in named if entry["name"] == "default"), None)
        return cls(source, special_tokens(settings)) if source else None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """The conversation as text.

        Args:
            tools: OpenAI's tool definitions.
            add_generation_prompt: opens the assistant's turn at the end.
            options: further variables of the template; they win over these.

        Raises:
            ChatTemplateError: the template refuses the messages.
        """
        return self.render_marked(messages, tools=tools, add_generation_prompt=add_generation_prompt, options=options)[
            0
        ]

    def render_marked(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[str, list[Span]]:
        """As `render`, with what stands between the template's generation tags; nothing where it has none."""
        given: dict[str, Any] = {
            **self.special,
            "add_generation_prompt": add_generation_prompt,
            "tools": list(tools) if tools else None,
            **(options or {}),
            "messages": list(messages),
        }
        try:
            text = self._template.render(**given)
        except (jinja2.TemplateError, TypeError) as error:
            raise ChatTemplateError(f"the chat template refuses these messages: {error}") from error
        return _unmarked(text)


def special_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens that a template may name, of a `tokenizer_config.json`."""
    return {name: content for name in ("bos_token", "eos_token", "pad_token") if (content := _text(settings.get(name)))}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file of a model directory; empty where it is not there."""
    return cast("dict[str, Any]", json.loads(path.read_text())) if path.exists() else {}


class _Generation(jinja2.ext.Extension):
    """`{% generation %}...{% endgeneration %}`: its content, marked."""

    TAG = "generation"
    tags = {TAG}

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements((f"name:end{self.TAG}",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    @staticmethod
    def _marked(caller: Any) -> str:
        return f"{_OPEN}{caller()}{_CLOSE}"


def _unmarked(text: str) -> tuple[str, list[Span]]:
    if _OPEN not in text:
        return text, []
    parts: list[str] = []
    spans: list[Span] = []
    length = 0
    for number, part in enumerate(text.split(_OPEN)):
        if number:
            marked, _, part = part.partition(_CLOSE)
            spans.append((length, length + len(marked)))
            parts.append(marked)
            length += len(marked)
        parts.append(part)
        length += len(part)
    return "".join(parts), spans


def _text(token: object) -> str | None:
    """A special token as saved: a string, or an object with its content."""
    if isinstance(token, dict):
        return cast("dict[str, str]", token).get("content")
    return token if isinstance(token, str) else None


def _raise(message: str) -> str:
    raise jinja2.TemplateError(message)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
