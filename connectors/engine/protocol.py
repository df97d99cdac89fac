"""OpenAI's chat and text completions as the builtin engine takes them, with vLLM's extensions for token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from headrace.connectors.engine.batching import Generation
from headrace.connectors.engine.chat import ChatTemplateError, ChatTokenizer
from headrace.connectors.engine.sampling import Sampling, stream_key
from headrace.connectors.engine.tools import tool_fault, with_parsed_arguments

MAX_STOPS = 16
MAX_TOP_LOGPROBS = 20
DEFAULT_TEXT_TOKENS = 16  # as OpenAI has it for text completions

# What changes the distribution or the form of the answer and is not implemented: refused unless it is neutral.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
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
    "echo": (False,),
    "suffix": ("",),
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


class StreamOptions(msgspec.Struct):
    """`stream_options`."""

    include_usage: bool | None = None


class PromptIds(msgspec.Struct):
    """`kv_transfer_params` of vLLM, of which this engine knows one: the prompt, instead of a rendering of messages."""

    prompt_token_ids: list[int] | None = None


class CompletionRequest(msgspec.Struct, kw_only=True):
    """What both kinds of completion take; others are ignored, as vLLM does, or stand in `_NEUTRAL`."""

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
    return_token_ids: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def count(self) -> int:
        """How many choices."""
        return self.n or 1

    @property
    def limit(self) -> int | None:
        """How many tokens a choice may have; None: what fits."""
        return self.max_tokens

    @property
    def alternatives(self) -> int | None:
        """How many likely tokens are named beside each one sampled; None: no log-probabilities at all."""
        return None

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the counts of tokens."""
        return bool(self.stream_options and self.stream_options.include_usage)


class ChatRequest(CompletionRequest, kw_only=True):
    """The parameters of chat completions."""

    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    chat_template_kwargs: dict[str, Any] | None = None
    kv_transfer_params: PromptIds | None = None

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def alternatives(self) -> int | None:
        return self.top_logprobs or 0 if self.logprobs else None

    @property
    def uses_tools(self) -> bool:
        """Whether the model is told of tools, and its calls of them are read."""
        return bool(self.tools) and self.tool_choice != "none"


class TextRequest(CompletionRequest, kw_only=True):
    """The parameters of text completions."""

    prompt: Any
    logprobs: int | None = None

    @property
    def limit(self) -> int | None:
        return self.max_tokens or DEFAULT_TEXT_TOKENS

    @property
    def alternatives(self) -> int | None:
        return self.logprobs


_ANY = msgspec.json.Decoder(dict[str, Any])
R = TypeVar("R", bound=CompletionRequest)


def parse_request(raw: bytes, kind: type[R]) -> R:
    """Raises RequestError where it is no JSON, a type is wrong or something asked for is not supported."""
    try:
        fields = _ANY.decode(raw)
        request = msgspec.convert(fields, kind)
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
    if isinstance(request, ChatRequest):
        _check_chat(request)
    return request


def _check(request: CompletionRequest) -> None:
    ranges: list[tuple[str, float | None, float, float]] = [
        ("n", request.n, 1, 128),
        ("temperature", request.temperature, 0, 100),
        ("top_k", request.top_k, -1, 1 << 31),
        ("max_tokens", request.max_tokens, 1, 1 << 31),
    ]
    if isinstance(request, ChatRequest):
        ranges.append(("max_completion_tokens", request.max_completion_tokens, 1, 1 << 31))
        ranges.append(("top_logprobs", request.top_logprobs, 0, MAX_TOP_LOGPROBS))
    else:
        ranges.append(("logprobs", request.alternatives, 0, MAX_TOP_LOGPROBS))
    for name, value, low, high in ranges:
        if value is not None and not low <= value <= high:
            raise RequestError(f"{name} must lie in [{low}, {high}], not {value}", param=name, code="invalid_value")
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise RequestError(f"top_p must lie in (0, 1], not {request.top_p}", param="top_p", code="invalid_value")
    if request.temperature and request.temperature < 1e-2:
        raise RequestError("temperature must be 0 (greedy) or at least 0.01", param="temperature", code="invalid_value")
    if len(request.stops) > MAX_STOPS or "" in request.stops:
        raise RequestError(f"stop takes at most {MAX_STOPS} strings, none empty", param="stop", code="invalid_value")
    if request.stream_options is not None and not request.stream:
        raise RequestError("stream_options needs stream", param="stream_options", code="invalid_value")


def _check_chat(request: ChatRequest) -> None:
    if request.top_logprobs and not request.logprobs:
        raise RequestError("top_logprobs needs logprobs", param="top_logprobs", code="invalid_value")
    if not request.messages:
        raise RequestError("messages must not be empty", param="messages", code="invalid_value")
    if (fault := tool_fault(request.tools or [])) is not None:
        raise RequestError(fault, param="tools", code="invalid_value")


def _messages(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Content given as parts becomes one string, joined as vLLM does."""
    messages: list[dict[str, Any]] = []
    for i, message in enumerate(given):
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
        messages.append(with_parsed_arguments({**message, "content": content or ""}))
    return messages


def chat_prompt(messages: list[dict[str, Any]], options: dict[str, Any], tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """The ids of a rendered conversation.

    Raises:
        RequestError: the messages are none, or the chat template refuses them.
    """
    try:
        return tokenizer.prompt(_messages(messages), options)
    except ChatTemplateError as error:
        raise RequestError(str(error), param="messages", code="invalid_value") from error


def _prompt_of(request: ChatRequest, tokenizer: ChatTokenizer) -> tuple[int, ...]:
    given = request.kv_transfer_params
    if given is not None and given.prompt_token_ids is not None:
        return _given_ids(given.prompt_token_ids, tokenizer, "kv_transfer_params.prompt_token_ids")
    options = request.chat_template_kwargs or {}
    if request.uses_tools:
        options = {"tools": request.tools, **options}
    return chat_prompt(request.messages, options, tokenizer)


def _given_ids(ids: list[int], tokenizer: ChatTokenizer, param: str) -> tuple[int, ...]:
    if not ids or not 0 <= min(ids) <= max(ids) < tokenizer.size:
        message = f"{param} must be a list of token ids below {tokenizer.size}, not empty"
        raise RequestError(message, param=param, code="invalid_value")
    return tuple(ids)


def _text_prompt(prompt: Any, tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """A text or token ids, also as the only one of a list."""
    listed = cast("list[Any]", prompt) if isinstance(prompt, list) else []
    if len(listed) == 1 and isinstance(listed[0], str | list):
        return _text_prompt(listed[0], tokenizer)
    if isinstance(prompt, str):
        ids = tokenizer.ids(prompt)
    elif listed and all(isinstance(token, int) and 0 <= token < tokenizer.size for token in listed):
        ids = tuple(cast("list[int]", listed))
    else:
        message = f"prompt must be one text, or one list of token ids below {tokenizer.size}"
        raise RequestError(message, param="prompt", code="invalid_value")
    if not ids:
        raise RequestError("prompt must not be empty", param="prompt", code="invalid_value")
    return ids


def plan(
    request: CompletionRequest, tokenizer: ChatTokenizer, max_positions: int, max_batch: int, seed: int
) -> tuple[tuple[int, ...], list[Generation]]:
    """Prompt ids and one Generation a choice.

    seed: for a request that gives none.
    """
    if isinstance(request, ChatRequest):
        prompt, what = _prompt_of(request, tokenizer), "messages"
    else:
        prompt, what = _text_prompt(cast("TextRequest", request).prompt, tokenizer), "prompt"
    asked, room = request.limit, max_positions - len(prompt)
    if room < 1 or (asked or 1) > room:
        raise RequestError(
            f"This model's maximum context length is {max_positions} tokens; the {what} take {len(prompt)} and "
            f"{asked or 1} are to be generated. Shorten the {what} or lower max_tokens.",
            param=what,
            code="context_length_exceeded",
        )
    n = request.count
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
    finder = _stop_finder(tokenizer, request.stops) if request.stops else None
    base = seed if request.seed is None else request.seed
    top = min(request.alternatives or 0, tokenizer.size)
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
