"""Fingerprints of conversations: whether a request goes on from an answer that was given.

Compared is what was said and not how a client writes it down: text in parts or whole, an answer with or without the
space around it, arguments of a tool in whatever JSON; the reasoning of an answer, which many clients do not send back,
does not count.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from headrace.streams.assembly.loose import as_list, as_mapping

START = b""
ASSISTANT = "assistant"
DIGEST_BYTES = 16


def extended(before: bytes, message: Any) -> bytes:
    """The fingerprint of a conversation with one more message.

    Args:
        before: that of the messages before; `START` where there are none.
    """
    return fingerprint([before.hex(), *_said(as_mapping(message))])


def beginnings(messages: Sequence[Any]) -> list[bytes]:
    """Of each beginning of a conversation, that of n messages at index n."""
    found = [START]
    for message in messages:
        found.append(extended(found[-1], message))
    return found


def fingerprint(value: Any) -> bytes:
    """Of any JSON value."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # it reads 1,024 levels and writes 254
        written = repr(value).encode("utf-8", "replace")
    return blake2b(written, digest_size=DIGEST_BYTES).digest()


def has_media(messages: Sequence[Any]) -> bool:
    """Whether anything but text is said, which becomes more tokens than it has in the prompt as text."""
    return any(
        not isinstance(as_mapping(part).get("text"), str)
        for message in messages
        for part in as_list(as_mapping(message).get("content"))
    )


def _said(message: Mapping[str, Any]) -> list[Any]:
    role, content = message.get("role"), _content(message.get("content"))
    calls = [_call(as_mapping(call)) for call in as_list(message.get("tool_calls"))]
    if role == ASSISTANT:
        return [role, content.strip() if isinstance(content, str) else content, calls]
    return [role, content, calls, message.get("tool_call_id"), message.get("name")]


def _content(content: Any) -> Any:
    if not isinstance(content, list):
        return content or ""
    texts = [as_mapping(part).get("text") for part in as_list(content)]
    whole = [text for text in texts if isinstance(text, str)]
    return "\n".join(whole) if len(whole) == len(texts) else as_list(content)


def _call(call: Mapping[str, Any]) -> list[Any]:
    function = as_mapping(call.get("function"))
    return [call.get("id"), function.get("name"), _arguments(function.get("arguments"))]


def _arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return orjson.dumps(orjson.loads(arguments or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, TypeError):  # TypeError: it reads 1,024 levels and writes 254
        return arguments
