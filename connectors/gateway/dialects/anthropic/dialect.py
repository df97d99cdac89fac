"""`/v1/messages`: requests and answers of Anthropic's Messages API, which are chat completions below."""

from typing import Any

import orjson

from headrace.connectors.gateway.dialects.anthropic.builder import MessageBuilder
from headrace.connectors.gateway.dialects.anthropic.request import chat_request, ignored
from headrace.connectors.gateway.dialects.pieces import read_piece
from headrace.connectors.gateway.dialects.sse import event
from headrace.streams.assembly.loose import as_list

CHAT_PREFIX = "chatcmpl-"
ERROR_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
SERVER_ERROR = 500


class MessagesDialect:
    """The Messages API."""

    name = "anthropic"
    path = "/v1/messages"

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """The chat completion that is asked for.

        Raises:
            CallError: 400.
        """
        return chat_request(body)

    def ignored(self, body: dict[str, Any]) -> list[str]:
        """Fields of a request that have no effect."""
        return ignored(body)

    def conversation(self, body: dict[str, Any]) -> None:
        """A request has all its messages."""

    def answer(self, chat: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        """The message."""
        builder = _builder(chat, body)
        builder.add(read_piece(chat))
        builder.finish()
        return builder.message

    def stream(self, body: dict[str, Any]) -> "MessagesStream":
        """A streamed answer."""
        return MessagesStream(body)

    def error(self, status: int, code: str, message: str, param: str | None = None) -> bytes:
        """Anthropic's form of an error, its type by the status."""
        del code, param
        return orjson.dumps(error_object(status, message))


class MessagesStream:
    """One streamed message."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body
        self._builder: MessageBuilder | None = None

    def feed(self, chunk: dict[str, Any]) -> list[bytes]:
        """The events of a chunk."""
        events: list[bytes] = []
        builder = self._begun(chunk, events)
        events += map(event, builder.add(read_piece(chunk)))
        return events

    def end(self) -> list[bytes]:
        """The last events."""
        events: list[bytes] = []
        events += map(event, self._begun({}, events).finish())
        return events

    def error(self, status: int, message: str) -> bytes:
        """An error event."""
        return event(error_object(status, message))

    def _begun(self, chunk: dict[str, Any], events: list[bytes]) -> MessageBuilder:
        if self._builder is None:
            self._builder = _builder(chunk, self._body)
            events += map(event, self._builder.begin())
        return self._builder


def error_object(status: int, message: str) -> dict[str, Any]:
    """An error as Anthropic's clients read it."""
    kind = ERROR_TYPES.get(status) or ("invalid_request_error" if status < SERVER_ERROR else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _builder(chat: dict[str, Any], body: dict[str, Any]) -> MessageBuilder:
    identity, model = chat.get("id"), chat.get("model")
    return MessageBuilder(
        f"msg_{identity.removeprefix(CHAT_PREFIX)}" if isinstance(identity, str) and identity else "",
        model if isinstance(model, str) else str(body.get("model") or ""),
        as_list(body.get("stop_sequences")),
    )
