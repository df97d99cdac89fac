"""An engine's answer: what the span records of it, and what the client is given."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
import orjson

from headrace.connectors.gateway.errors import garbage
from headrace.connectors.gateway.request import ChatRequest
from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import Choice, Usage, VersionRange


class Answer(msgspec.Struct):
    """What an engine generated.

    Attributes:
        body: for the client, without what it did not ask for.
        prompt_token_ids: packed; empty where the engine gave none.
        policy_version, weights_id, logprobs_mode: None where the engine does not say.
    """

    body: bytes
    model: str | None
    response_id: str | None
    prompt_token_ids: bytes
    choices: list[Choice]
    usage: Usage | None
    policy_version: VersionRange | None
    weights_id: str | None
    logprobs_mode: str | None


def read_answer(raw: bytes, request: ChatRequest) -> Answer:
    """Reads a chat completion with vLLM's extensions for token ids.

    Token ids or log-probabilities that are missing or malformed are left out, and those that do not fit each other
    recorded as they came: the agent still gets its answer, and assembly says why the call is not trained.

    Raises:
        CallError: 502 where it is no chat completion.
    """
    try:
        value: Any = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise garbage(f"the engine's answer is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise garbage("the engine's answer is no JSON object")
    fields = cast(dict[str, Any], value)
    given = fields.get("choices")
    if not isinstance(given, list) or not given:
        raise garbage("the engine's answer has no choices")
    choices = [_choice(choice, i, request) for i, choice in enumerate(cast(list[Any], given))]
    prompt = fields.get("prompt_token_ids") if request.wants_token_ids else fields.pop("prompt_token_ids", None)
    versions = fields.get("policy_version")
    return Answer(
        _json(fields),
        _text(fields.get("model")),
        _text(fields.get("id")),
        _packed(pack_int32, prompt) or b"",
        choices,
        _usage(fields.get("usage")),
        _versions(cast(dict[str, Any], versions)) if isinstance(versions, dict) else None,
        _text(fields.get("weights_id")),
        _text(fields.get("logprobs_mode")),
    )


def _json(fields: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(fields)
    except TypeError as error:  # it reads 1,024 levels and writes 254
        raise garbage(f"the engine's answer cannot be passed on: {error}") from error


def _choice(value: Any, position: int, request: ChatRequest) -> Choice:
    if not isinstance(value, dict) or not isinstance(cast(dict[str, Any], value).get("message"), dict):
        raise garbage(f"choice {position} of the engine's answer has no message")
    choice = cast(dict[str, Any], value)
    message = cast(dict[str, Any], choice["message"])
    ids = choice.get("token_ids") if request.wants_token_ids else choice.pop("token_ids", None)
    logprobs = _logprobs(choice.get("logprobs"))
    if not request.wants_logprobs:
        choice["logprobs"] = None
    index = choice.get("index")
    tool_calls = message.get("tool_calls")
    return Choice(
        index=index if isinstance(index, int) else position,
        response_token_ids=_packed(pack_int32, ids) or b"",
        logprobs=logprobs,
        finish_reason=_text(choice.get("finish_reason")),
        text=_text(message.get("content")),
        tool_calls=orjson.dumps(tool_calls).decode() if tool_calls else "[]",
    )


def _logprobs(value: Any) -> bytes | None:
    if not isinstance(value, dict):
        return None
    content = cast(dict[str, Any], value).get("content")
    try:
        return pack_float32([entry["logprob"] for entry in cast(list[Any], content)])
    except Exception:  # struct.error, TypeError, KeyError: whatever garbage leads to, there are no log-probabilities
        return None


def _packed(pack: Callable[[list[Any]], bytes], values: Any) -> bytes | None:
    if not isinstance(values, list):
        return None
    try:
        return pack(cast(list[Any], values))
    except ValueError:
        return None


def _versions(value: dict[str, Any]) -> VersionRange | None:
    low, high = value.get("min"), value.get("max")
    return VersionRange(min=low, max=high) if isinstance(low, int) and isinstance(high, int) else None


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    usage = cast(dict[str, Any], value)
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(
        input_tokens=prompt if isinstance(prompt, int) else 0,
        output_tokens=completion if isinstance(completion, int) else 0,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
