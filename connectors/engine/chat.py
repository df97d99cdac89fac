"""Tokenizer and chat template of a Hugging Face directory, without importing transformers."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import jinja2
import jinja2.ext
import jinja2.sandbox
import orjson
from tokenizers import Tokenizer

from headrace.streams.errors import HeadraceError

_REMEMBERED = 4096


class ChatTemplateError(HeadraceError):
    """The messages cannot be rendered, or the model has no chat template."""


class ChatTokenizer:
    """Messages to token ids and back.

    Attributes:
        size: number of ids; none beyond is ever sampled.
        stop_ids: ids that end a turn.
    """

    def __init__(self, directory: Path) -> None:
        settings = _read(directory / "tokenizer_config.json")
        self._tokenizer = _load(directory)
        self.size = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        self._special = {
            name: content for name in ("bos_token", "eos_token", "pad_token") if (content := _text(settings.get(name)))
        }
        self.stop_ids = frozenset(
            [
                *_ids(_read(directory / "generation_config.json").get("eos_token_id")),
                *_ids(_read(directory / "config.json").get("eos_token_id")),
                *_ids(self._tokenizer.token_to_id(self._special.get("eos_token", ""))),
            ]
        )
        self._template = _template(directory, settings)
        self._prompts: OrderedDict[bytes, tuple[int, ...]] = OrderedDict()
        self._pieces: dict[int, str] = {}

    def prompt(self, messages: list[dict[str, Any]], options: dict[str, Any]) -> tuple[int, ...]:
        """Ids of the rendered conversation with the assistant's turn opened.

        Raises:
            ChatTemplateError: the template refuses the messages, or there is none.
        """
        key = orjson.dumps([messages, options])
        if (found := self._prompts.get(key)) is not None:
            self._prompts.move_to_end(key)
            return found
        if self._template is None:
            raise ChatTemplateError("the model has no chat template: add chat_template.jinja to its directory")
        try:
            text = self._template.render(
                **{**self._special, "add_generation_prompt": True, "tools": None, **options, "messages": messages}
            )
        except (jinja2.TemplateError, TypeError) as error:
            raise ChatTemplateError(f"the chat template refuses these messages: {error}") from error
        # The template writes the special tokens itself.
        ids = tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
        self._prompts[key] = ids
        if len(self._prompts) > _REMEMBERED:
            self._prompts.popitem(last=False)
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """What the ids say, special tokens left out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """One token as text; a part of a character becomes U+FFFD."""
        if (found := self._pieces.get(token)) is None:
            found = self._pieces[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return found


def _read(path: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(path.read_text())) if path.exists() else {}


def _ids(value: int | list[int] | None) -> list[int]:
    """An end as saved: one id, several or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(token: object) -> str | None:
    """A special token as saved: a string, or an object with its content."""
    if isinstance(token, dict):
        return cast("dict[str, str]", token).get("content")
    return token if isinstance(token, str) else None


def _load(directory: Path) -> Tokenizer:
    if (directory / "tokenizer.json").exists():
        return Tokenizer.from_file(str(directory / "tokenizer.json"))
    from transformers import AutoTokenizer

    # Converts the older formats (sentencepiece, vocab.json with merges.txt).
    load = cast("Any", AutoTokenizer.from_pretrained)  # pyright: ignore[reportUnknownMemberType]
    return cast("Tokenizer", load(directory).backend_tokenizer)


def _raise(message: str) -> str:
    raise jinja2.TemplateError(message)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _template(directory: Path, settings: dict[str, Any]) -> jinja2.Template | None:
    """The template in the environment that transformers gives it."""
    path = directory / "chat_template.jinja"
    source: Any = path.read_text() if path.exists() else settings.get("chat_template")
    if isinstance(source, list):
        named = cast("Iterable[dict[str, str]]", source)
        source = next((entry["template"] for entry in named if entry["name"] == "default"), None)
    if not source:
        return None
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    names = cast("dict[str, Any]", environment.globals)
    names.update(raise_exception=_raise, strftime_now=_now)
    return environment.from_string(source)
