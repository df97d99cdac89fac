"""An engine's answer: what the span records of it, and what the client is given."""

from typing import Any, cast

import msgspec
import orjson

from headrace.connectors.gateway.errors import garbage, garbage_if_broken
from headrace.connectors.gateway.request import ModelRequest
from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import Choice, Usage, VersionRange

_LONG = 1 << 63


class Answer(msgspec.Struct):
    """What an engine generated.

    Attributes:
        body: for the client, without what it did not ask for.
        prompt_token_ids: packed; empty where the engine gave none, or none that can be read of any choice: a record
            has no other way to tell that from a choice without tokens.
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


def read_answer(raw: bytes, request: ModelRequest) -> Answer:
    """Reads a chat or text completion with vLLM's extensions for token ids.

    Token ids or log-probabilities that are missing or malformed are left out, and those that do not fit each other
    recorded as they came: the agent still gets its answer, and assembly says why the call is not trained.

    Raises:
        CallError: 502 where it is no completion.
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
    with garbage_if_broken("the engine's answer cannot be recorded"):
        prompt = prompt_ids(fields, cast(list[Any], given), keep=request.wants_token_ids)
        choices: list[Choice] = []
        told = False
        for position, one in enumerate(cast(list[Any], given)):
            choice, ids = _choice(one, position, request)
            choices.append(choice)
            told = told or ids is not None
    response_id, body = for_client(fields, request)
    return Answer(
        body,
        text_or_none(fields.get("model")),
        response_id,
        (packed_ids(prompt) or b"") if told else b"",
        choices,
        read_usage(fields.get("usage")),
        read_versions(fields.get("policy_version")),
        text_or_none(fields.get("weights_id")),
        text_or_none(fields.get("logprobs_mode")),
    )


def for_client(fields: dict[str, Any], request: ModelRequest) -> tuple[str | None, bytes]:
    """The id of the answer that the client is given, and its JSON, in the client's dialect.

    Raises:
        CallError: 502 where the engine's answer cannot be passed on.
    """
    dialect = request.operation.dialect
    if dialect is not None:
        with garbage_if_broken("the engine's answer cannot be translated"):
            fields = dialect.answer(fields, request.asked)
    with garbage_if_broken("the engine's answer cannot be passed on"):
        body = orjson.dumps(fields)
    return text_or_none(fields.get("id")), body


def prompt_ids(fields: dict[str, Any], choices: list[Any], *, keep: bool) -> Any:
    """The prompt's ids: of the answer (chat) or of its choices (text); taken out unless `keep`."""
    found = fields.get("prompt_token_ids") if keep else fields.pop("prompt_token_ids", None)
    for choice in choices:
        if isinstance(choice, dict) and "prompt_token_ids" in choice:
            of_choice = cast(dict[str, Any], choice)
            ids: Any = of_choice["prompt_token_ids"] if keep else of_choice.pop("prompt_token_ids")
            found = found or ids
    return found


def _choice(value: Any, position: int, request: ModelRequest) -> tuple[Choice, bytes | None]:
    """A choice, and its ids: None where they are missing or malformed."""
    if not isinstance(value, dict):
        raise garbage(f"choice {position} of the engine's answer is no object")
    choice = cast(dict[str, Any], value)
    if request.operation.is_text:
        content: Any = choice.get("text")
        tool_calls = None
        if not isinstance(content, str):
            raise garbage(f"choice {position} of the engine's answer has no text")
    else:
        message: Any = choice.get("message")
        if not isinstance(message, dict):
            raise garbage(f"choice {position} of the engine's answer has no message")
        spoken = cast(dict[str, Any], message)
        content, tool_calls = spoken.get("content"), spoken.get("tool_calls")
    ids = packed_ids(choice.get("token_ids") if request.wants_token_ids else choice.pop("token_ids", None))
    logprobs = packed_logprobs(choice.get("logprobs"))
    if not request.wants_logprobs:
        choice["logprobs"] = None
    index = choice.get("index")
    recorded = Choice(
        index=index if isinstance(index, int) else position,
        response_token_ids=ids or b"",
        logprobs=logprobs,
        finish_reason=text_or_none(choice.get("finish_reason")),
        text=text_or_none(content),
        tool_calls=orjson.dumps(tool_calls).decode() if tool_calls else "[]",
    )
    return recorded, ids


def packed_logprobs(value: Any) -> bytes | None:
    """Those of the sampled tokens, packed, from either form of OpenAI's `logprobs`; None where there are none."""
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    try:
        if "token_logprobs" in fields:
            return pack_float32(cast(list[float], fields["token_logprobs"]))
        return pack_float32([entry["logprob"] for entry in cast(list[Any], fields.get("content"))])
    except Exception:  # struct.error, TypeError, KeyError: whatever garbage leads to, there are no log-probabilities
        return None


def packed_ids(values: Any) -> bytes | None:
    """Token ids, packed; None where they are none."""
    if not isinstance(values, list):
        return None
    ids = cast(list[Any], values)
    try:
        packed = pack_int32(ids)
    except ValueError:
        return None
    return packed if not ids or min(ids) >= 0 else None


def read_versions(value: Any) -> VersionRange | None:
    """`policy_version` of an answer; None where an engine does not say, or says what it cannot be."""
    if not isinstance(value, dict):
        return None
    versions = cast(dict[str, Any], value)
    low, high = _long(versions.get("min")), _long(versions.get("max"))
    return VersionRange(min=low, max=high) if low is not None and high is not None else None


def read_usage(value: Any) -> Usage | None:
    """`usage` of an answer, as far as it can be read."""
    if not isinstance(value, dict):
        return None
    usage = cast(dict[str, Any], value)
    return Usage(
        input_tokens=_long(usage.get("prompt_tokens")) or 0, output_tokens=_long(usage.get("completion_tokens")) or 0
    )


def _long(value: Any) -> int | None:
    """A whole number that a record can hold."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -_LONG <= value < _LONG else None


def text_or_none(value: Any) -> str | None:
    """The value if it is a string."""
    return value if isinstance(value, str) else None
