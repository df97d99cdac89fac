"""The text of a choice while its tokens come: no character before it is whole, no stop string, nor its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.tools import held_suffix

CUT = "\ufffd"  # what a tokenizer makes of a part of a character


class TextStream:
    """Decodes the ids of one choice step by step.

    Each step decodes a window that begins a piece before what is new: a token's text may depend on the one before it.
    """

    def __init__(self, tokenizer: ChatTokenizer, stops: list[str]) -> None:
        self._tokenizer, self._stops = tokenizer, stops
        self._start = self._read = 0
        self._given = 0  # characters given away
        self._held = ""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that is certain now.

        ids: all of the choice so far.
        """
        before = self._tokenizer.text(ids[self._start : self._read])
        now = self._tokenizer.text(ids[self._start :])
        if len(now) <= len(before) or now.endswith(CUT):
            return ""
        self._start, self._read = self._read, len(ids)
        text = self._held + now[len(before) :]
        keep = held_suffix(text, self._stops) if self._stops else 0
        text, self._held = text[: len(text) - keep], text[len(text) - keep :]
        self._given += len(text)
        return text

    def end(self, whole: str) -> str:
        """What is left.

        whole: the choice's text, cut at a stop string.
        """
        return whole[self._given :]
