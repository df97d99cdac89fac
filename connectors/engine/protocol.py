"""OpenAI's chat completions as the builtin engine takes and gives them, with vLLM's extensions for token ids."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from headrace.connectors.engine.batching import Generation
from headrace.connectors.engine.chat import ChatTemplateError, ChatTokenizer
from headrace.connectors.engine.sampling import Sampling, stream_key

MAX_STOPS = 16
MAX_TOP_LOGPROBS = 20
# JSON has no infinity; vLLM writes the same.
LOWEST_LOGPROB = -9999.0

# What changes the distribution or the form of the answer and is not implemented: refused unless it is neutral.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "stream": (False,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "structured_outputs": (),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "best_of": (1,),
    "prompt_logprobs": (),
    "use_beam_search": (False,),
    "bad_words": ([],),
    "allowed_token_ids": (),
    "continue_final_message": (False,),
    "audio": (),
    "modalities": (["text"],),
}


class RequestError(Exception):
    """A request that is answered with an error in OpenAI's form.

    Attributes:
        status: HTTP status.
        param: the parameter at fault, or None.
        code: OpenAI's code, or None.
    """

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


class ChatRequest(msgspec.Struct):
    """The parameters that the engine honours; others are ignored, as vLLM does, or stand in `_NEUTRAL`."""

    messages: list[dict[str, Any]]
    model: str | None = None
    n: int | None = None
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    return_token_ids: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None


_ANY = msgspec.json.Decoder(dict[str, Any])


def parse_request(raw: bytes) -> ChatRequest:
    """Raises RequestError where it is no JSON, a type is wrong or something asked for is not supported."""
    try:
        fields = _ANY.decode(raw)
        request = msgspec.convert(fields, ChatRequest)
    except msgspec.ValidationError as error:
        raise RequestError(str(error), code="invalid_type") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"the body is no valid JSON: {error}", code="invalid_json") from error
    for name in fields.keys() & _NEUTRAL.keys():
        if fields[name] is not None and fields[name] not in _NEUTRAL[name]:
            raise RequestError(
                f"{name} is not supported by the builtin engine; use `headrace engine vllm`",
                param=name,
                code="unsupported_parameter",
            )
    _check(request)
    return request


def _check(request: ChatRequest) -> None:
    ranges: list[tuple[str, float | None, float, float]] = [
        ("n", request.n, 1, 128),
        ("temperature", request.temperature, 0, 100),
        ("top_logprobs", request.top_logprobs, 0, MAX_TOP_LOGPROBS),
        ("top_k", request.top_k, -1, 1 << 31),
        ("max_tokens", request.max_tokens, 1, 1 << 31),
        ("max_completion_tokens", request.max_completion_tokens, 1, 1 << 31),
    ]
    for name, value, low, high in ranges:
        if value is not None and not low <= value <= high:
            raise RequestError(f"{name} must lie in [{low}, {high}], not {value}", param=name, code="invalid_value")
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise RequestError(f"top_p must lie in (0, 1], not {request.top_p}", param="top_p", code="invalid_value")
    if request.temperature and request.temperature < 1e-2:
        raise RequestError("temperature must be 0 (greedy) or at least 0.01", param="temperature", code="invalid_value")
    if request.top_logprobs and not request.logprobs:
        raise RequestError("top_logprobs needs logprobs", param="top_logprobs", code="invalid_value")
    if not request.messages:
        raise RequestError("messages must not be empty", param="messages", code="invalid_value")
    stops = _stops(request)
    if len(stops) > MAX_STOPS or "" in stops:
        raise RequestError(f"stop takes at most {MAX_STOPS} strings, none empty", param="stop", code="invalid_value")


def _stops(request: ChatRequest) -> list[str]:
    return [request.stop] if isinstance(request.stop, str) else request.stop or []


def _messages(request: ChatRequest) -> list[dict[str, Any]]:
    """Content given as parts becomes one string, joined as vLLM does."""
    messages: list[dict[str, Any]] = []
    for i, message in enumerate(request.messages):
        if not isinstance(message.get("role"), str):
            raise RequestError(f"messages[{i}] has no role", param="messages", code="invalid_value")
        content = message.get("content")
        if isinstance(content, list):
            parts = cast("list[Any]", content)
            if not all(isinstance(p, dict) and isinstance(cast("dict[str, Any]", p).get("text"), str) for p in parts):
                raise RequestError(f"messages[{i}] has content other than text", param="messages", code="invalid_value")
            content = "\n".join(part["text"] for part in parts)
        elif content is not None and not isinstance(content, str):
            raise RequestError(f"messages[{i}].content must be a string", param="messages", code="invalid_type")
        messages.append({**message, "content": content or ""})
    return messages


def plan(
    request: ChatRequest, tokenizer: ChatTokenizer, max_positions: int, max_batch: int, seed: int
) -> tuple[tuple[int, ...], list[Generation]]:
    """Prompt ids and one Generation a choice.

    seed: for a request that gives none.
    """
    try:
        prompt = tokenizer.prompt(_messages(request), request.chat_template_kwargs or {})
    except ChatTemplateError as error:
        raise RequestError(str(error), param="messages", code="invalid_value") from error
    asked = request.max_completion_tokens or request.max_tokens
    room = max_positions - len(prompt)
    if room < 1 or (asked or 1) > room:
        raise RequestError(
            f"This model's maximum context length is {max_positions} tokens; the messages take {len(prompt)} and "
            f"{asked or 1} are to be generated. Shorten the messages or lower max_tokens.",
            param="messages",
            code="context_length_exceeded",
        )
    n = request.n or 1
    if n > max_batch:
        raise RequestError(
            f"n must not exceed the engine's --max-batch of {max_batch}", param="n", code="invalid_value"
        )
    sampling = Sampling(
        temperature=1.0 if request.temperature is None else request.temperature,
        top_k=max(0, request.top_k or 0),
        top_p=1.0 if request.top_p is None else request.top_p,
    )
    stop_ids = frozenset[int]() if request.ignore_eos else tokenizer.stop_ids
    if request.stop_token_ids:
        stop_ids |= frozenset(request.stop_token_ids)
    stops = _stops(request)
    finder = _stop_finder(tokenizer, stops) if stops else None
    base = seed if request.seed is None else request.seed
    top = (request.top_logprobs or 0) if request.logprobs else 0
    top = min(top, tokenizer.size)
    return prompt, [Generation(stream_key(base, i), sampling, asked or room, stop_ids, finder, top) for i in range(n)]


def _stop_finder(tokenizer: ChatTokenizer, stops: Sequence[str]) -> Callable[[list[int]], tuple[str, str] | None]:
    def find(ids: list[int]) -> tuple[str, str] | None:
        text = tokenizer.text(ids)
        places = [(text.find(stop), stop) for stop in stops if stop in text]
        if not places:
            return None
        where, stop = min(places)
        return text[:where], stop

    return find


def completion(
    request: ChatRequest,
    identity: str,
    model: str,
    prompt: tuple[int, ...],
    choices: Sequence[Generation],
    tokenizer: ChatTokenizer,
) -> dict[str, Any]:
    """The JSON of the answer, in vLLM's shape, with the versions that generated it."""
    with_ids = bool(request.return_token_ids)
    generated = sum(len(choice.token_ids) for choice in choices)
    newest = max(choices, key=lambda choice: choice.version_max)
    answer: dict[str, Any] = {
        "id": identity,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [_choice(i, c, tokenizer, request, with_ids) for i, c in enumerate(choices)],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": generated,
            "total_tokens": len(prompt) + generated,
        },
        "policy_version": {"min": min(c.version_min for c in choices), "max": newest.version_max},
        "weights_id": newest.weights_id,
        "logprobs_mode": "processed",
    }
    if with_ids:
        answer["prompt_token_ids"] = prompt
    return answer


def _choice(
    index: int, choice: Generation, tokenizer: ChatTokenizer, request: ChatRequest, with_ids: bool
) -> dict[str, Any]:
    text = choice.text if choice.text is not None else tokenizer.text(choice.token_ids)
    answer: dict[str, Any] = {
        "index": index,
        "message": {"role": "assistant", "content": text},
        "logprobs": {"content": _logprobs(choice, tokenizer)} if request.logprobs else None,
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
    }
    if with_ids:
        answer["token_ids"] = choice.token_ids
    return answer


def _logprobs(choice: Generation, tokenizer: ChatTokenizer) -> list[dict[str, Any]]:
    content = [
        {**_entry(token, logprob, tokenizer), "top_logprobs": list[Any]()}
        for token, logprob in zip(choice.token_ids, choice.logprobs, strict=True)
    ]
    for entry, alternatives in zip(content, choice.alternatives, strict=False):
        entry["top_logprobs"] = [_entry(token, logprob, tokenizer) for token, logprob in alternatives]
    return content


def _entry(token: int, logprob: float, tokenizer: ChatTokenizer) -> dict[str, Any]:
    piece = tokenizer.piece(token)
    return {"token": piece, "logprob": max(logprob, LOWEST_LOGPROB), "bytes": list(piece.encode())}
