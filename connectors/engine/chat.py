"""Tokenizer and chat template of a Hugging Face directory, without importing transformers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import orjson
from tokenizers import Tokenizer

from headrace.streams.chat_template import ChatTemplate, ChatTemplateError, read_json, special_tokens

_REMEMBERED_BYTES = 64 * 1024 * 1024
_ID_BYTES = 40  # of an id in a tuple, about


class ChatTokenizer:
    """Messages to token ids and back.

    Attributes:
        size: number of ids; none beyond is ever sampled.
        stop_ids: ids that end a turn.
        remembered_bytes: what the prompts that are kept take, about.
    """

    def __init__(self, directory: Path) -> None:
        settings = read_json(directory / "tokenizer_config.json")
        self._tokenizer = _load(directory)
        self.size = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        self._special = special_tokens(settings)
        self.stop_ids = frozenset(
            [
                *_ids(read_json(directory / "generation_config.json").get("eos_token_id")),
                *_ids(read_json(directory / "config.json").get("eos_token_id")),
                *_ids(self._tokenizer.token_to_id(self._special.get("eos_token", ""))),
            ]
        )
        self._template = ChatTemplate.of(directory)
        self._prompts: OrderedDict[bytes, tuple[int, ...]] = OrderedDict()
        self.remembered_bytes = 0
        self._lock = threading.Lock()  # long prompts are made on threads
        self._pieces: dict[int, str] = {}

    def prompt(self, messages: list[dict[str, Any]], options: dict[str, Any]) -> tuple[int, ...]:
        """Ids of the rendered conversation with the assistant's turn opened.

        Raises:
            ChatTemplateError: the template refuses the messages, or there is none.
        """
        try:
            key = orjson.dumps([messages, options])
        except TypeError as error:  # nested too deeply, or an integer of more than 64 bits
            raise ChatTemplateError(f"the messages cannot be rendered: {error}") from error
        with self._lock:
            if (found := self._prompts.get(key)) is not None:
                self._prompts.move_to_end(key)
                return found
        if self._template is None:
            raise ChatTemplateError("the model has no chat template: add chat_template.jinja to its directory")
        text = self._template.render(messages, add_generation_prompt=True, options=options)
        # The template writes the special tokens itself.
        ids = tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
        with self._lock:
            self._remember(key, ids)
        return ids

    def _remember(self, key: bytes, ids: tuple[int, ...]) -> None:
        if key in self._prompts:
            return
        self._prompts[key] = ids
        self.remembered_bytes += len(key) + _ID_BYTES * len(ids)
        while self.remembered_bytes > _REMEMBERED_BYTES:
            key, ids = self._prompts.popitem(last=False)
            self.remembered_bytes -= len(key) + _ID_BYTES * len(ids)

    def ids(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """Ids of a text that is no conversation.

        special: with what the tokenizer puts before and after every text.
        """
        return tuple(self._tokenizer.encode(text, add_special_tokens=special).ids)

    def text(self, ids: Sequence[int]) -> str:
        """What the ids say, special tokens left out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """One token as text; a part of a character becomes U+FFFD."""
        if (found := self._pieces.get(token)) is None:
            found = self._pieces[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return found


def _ids(value: int | list[int] | None) -> list[int]:
    """An end as saved: one id, several or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _load(directory: Path) -> Tokenizer:
    if (directory / "tokenizer.json").exists():
        return Tokenizer.from_file(str(directory / "tokenizer.json"))
    from transformers import AutoTokenizer

    # Converts the older formats (sentencepiece, vocab.json with merges.txt).
    load = cast("Any", AutoTokenizer.from_pretrained)  # pyright: ignore[reportUnknownMemberType]
    return cast("Tokenizer", load(directory).backend_tokenizer)
