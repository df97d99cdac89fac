"""A chat completion, whole or a chunk of a stream, as the pieces that other dialects say in their own way.

What an engine or a provider answers is read leniently: a field of another type counts as absent.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.streams.assembly.loose import EMPTY, as_list, as_mapping

MOST_TOKENS = 1 << 53  # JSON numbers beyond are not whole everywhere


class CallPiece(msgspec.Struct):
    """A piece of a tool call; `index` says of which one."""

    index: int
    id: str | None
    name: str | None
    arguments: str


class Tokens(msgspec.Struct):
    """Numbers of tokens."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0


class Piece(msgspec.Struct):
    """What the first choice of one chunk, or of a whole answer, adds.

    Attributes:
        logprobs: entries as OpenAI has them.
        finish_reason: None while more is to come.
        stop: the stop string that was met, where the engine says it.
        tokens: None where the chunk has none.
    """

    text: str
    reasoning: str
    refusal: str
    calls: list[CallPiece]
    logprobs: list[Any]
    finish_reason: str | None
    stop: str | None
    tokens: Tokens | None


def read_piece(chat: Mapping[str, Any]) -> Piece:
    """Reads a chunk (`delta`) or a whole answer (`message`)."""
    choices = map(as_mapping, as_list(chat.get("choices")))
    choice = next((choice for choice in choices if not choice.get("index")), EMPTY)
    said = as_mapping(choice.get("delta")) or as_mapping(choice.get("message"))
    return Piece(
        text=_text(said.get("content")) or "",
        reasoning=_text(said.get("reasoning")) or _text(said.get("reasoning_content")) or "",
        refusal=_text(said.get("refusal")) or "",
        calls=[_call(as_mapping(call), position) for position, call in enumerate(as_list(said.get("tool_calls")))],
        logprobs=as_list(as_mapping(choice.get("logprobs")).get("content")),
        finish_reason=_text(choice.get("finish_reason")),
        stop=_text(choice.get("stop_reason")),
        tokens=_tokens(as_mapping(chat.get("usage"))),
    )


def _call(call: Mapping[str, Any], position: int) -> CallPiece:
    function = as_mapping(call.get("function"))
    index = call.get("index")
    return CallPiece(
        index=index if isinstance(index, int) else position,
        id=_text(call.get("id")) or None,
        name=_text(function.get("name")) or None,
        arguments=_text(function.get("arguments")) or "",
    )


def _tokens(usage: Mapping[str, Any]) -> Tokens | None:
    if not usage:
        return None
    return Tokens(
        prompt=_count(usage.get("prompt_tokens")),
        completion=_count(usage.get("completion_tokens")),
        cached=_count(as_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning=_count(as_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _count(value: Any) -> int:
    return min(value, MOST_TOKENS) if isinstance(value, int) and value > 0 else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
