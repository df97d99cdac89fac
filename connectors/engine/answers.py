"""Completions as the builtin engine gives them, in vLLM's shape, with the versions that generated them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from headrace.connectors.engine.batching import Generation
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.protocol import ChatRequest, CompletionRequest
from headrace.connectors.engine.tools import ToolReader

# JSON has no infinity; vLLM writes the same.
LOWEST_LOGPROB = -9999.0
LOGPROBS_MODE = "processed"


def completion(
    request: CompletionRequest,
    identity: str,
    model: str,
    prompt: tuple[int, ...],
    choices: Sequence[Generation],
    tokenizer: ChatTokenizer,
) -> dict[str, Any]:
    """The JSON of an answer that is not streamed."""
    is_chat = isinstance(request, ChatRequest)
    given = [_choice(i, c, tokenizer, request) for i, c in enumerate(choices)]
    answer: dict[str, Any] = {
        "id": identity,
        "object": "chat.completion" if is_chat else "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": given,
        "usage": usage(prompt, choices),
        **stamp(choices),
    }
    if request.return_token_ids and is_chat:
        answer["prompt_token_ids"] = prompt
    elif request.return_token_ids:
        for choice in given:
            choice["prompt_token_ids"] = prompt
    return answer


def usage(prompt: Sequence[int], choices: Sequence[Generation]) -> dict[str, int]:
    """Counts of tokens."""
    generated = sum(len(choice.token_ids) for choice in choices)
    return {
        "prompt_tokens": len(prompt),
        "completion_tokens": generated,
        "total_tokens": len(prompt) + generated,
    }


def stamp(choices: Sequence[Generation]) -> dict[str, Any]:
    """Which versions generated the tokens of choices that have some."""
    newest = max(choices, key=lambda choice: choice.version_max)
    return {
        "policy_version": {"min": min(choice.version_min for choice in choices), "max": newest.version_max},
        "weights_id": newest.weights_id,
        "logprobs_mode": LOGPROBS_MODE,
    }


def whole_text(choice: Generation, tokenizer: ChatTokenizer) -> str:
    """The text of a choice that has ended."""
    return choice.text if choice.text is not None else tokenizer.text(choice.token_ids)


def finish_reason(choice: Generation, tool_calls: int) -> str | None:
    """Why a choice has ended, in OpenAI's words."""
    return "tool_calls" if tool_calls and choice.finish_reason == "stop" else choice.finish_reason


def _choice(index: int, choice: Generation, tokenizer: ChatTokenizer, request: CompletionRequest) -> dict[str, Any]:
    text = whole_text(choice, tokenizer)
    answer: dict[str, Any] = {"index": index}
    reader = ToolReader()
    if not isinstance(request, ChatRequest):
        answer["text"] = text
    elif request.uses_tools:
        (content, calls), (rest, last) = reader.feed(text), reader.end()
        for call in (*calls, *last):
            del call["index"]
        answer["message"] = {"role": "assistant", "content": content + rest or None, "tool_calls": calls + last}
    else:
        answer["message"] = {"role": "assistant", "content": text}
    answer |= {
        "logprobs": logprobs_of(choice, 0, len(choice.token_ids), tokenizer, request),
        "finish_reason": finish_reason(choice, reader.calls),
        "stop_reason": choice.stop_reason,
    }
    if request.return_token_ids:
        answer["token_ids"] = choice.token_ids
    return answer


def logprobs_of(
    choice: Generation, start: int, end: int, tokenizer: ChatTokenizer, request: CompletionRequest
) -> dict[str, Any] | None:
    """`logprobs` of some tokens, in the form of chat or of text completions; None where they were not asked for."""
    if request.alternatives is None:
        return None
    tokens, logprobs = choice.token_ids[start:end], choice.logprobs[start:end]
    alternatives = choice.alternatives[start:end] or [list[tuple[int, float]]() for _ in tokens]
    if isinstance(request, ChatRequest):
        return {
            "content": [
                {**_entry(token, logprob, tokenizer), "top_logprobs": [_entry(t, p, tokenizer) for t, p in others]}
                for token, logprob, others in zip(tokens, logprobs, alternatives, strict=True)
            ]
        }
    pieces = [tokenizer.piece(token) for token in tokens]
    offset = sum(len(tokenizer.piece(token)) for token in choice.token_ids[:start])
    offsets: list[int] = []
    for piece in pieces:
        offsets.append(offset)
        offset += len(piece)
    return {
        "tokens": pieces,
        "token_logprobs": [max(logprob, LOWEST_LOGPROB) for logprob in logprobs],
        "top_logprobs": [{tokenizer.piece(t): max(p, LOWEST_LOGPROB) for t, p in others} for others in alternatives],
        "text_offset": offsets,
    }


def _entry(token: int, logprob: float, tokenizer: ChatTokenizer) -> dict[str, Any]:
    piece = tokenizer.piece(token)
    return {"token": piece, "logprob": max(logprob, LOWEST_LOGPROB), "bytes": list(piece.encode())}
