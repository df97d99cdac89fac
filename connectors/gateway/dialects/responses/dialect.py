"""`/v1/responses`: requests and answers of OpenAI's Responses API, which are chat completions below."""

import time
from collections.abc import Callable
from typing import Any

from headrace.connectors.gateway.dialects.fields import Fields
from headrace.connectors.gateway.dialects.pieces import read_piece
from headrace.connectors.gateway.dialects.responses.builder import WHOLE, ResponseBuilder
from headrace.connectors.gateway.dialects.responses.history import History
from headrace.connectors.gateway.dialects.responses.items import Messages
from headrace.connectors.gateway.dialects.responses.request import chat_request, ignored, input_messages
from headrace.connectors.gateway.dialects.sse import event
from headrace.connectors.gateway.errors import CallError
from headrace.streams.assembly.loose import as_number

CHAT_PREFIX = "chatcmpl-"
LATEST = 1e12  # seconds; beyond, an engine counts in something else
SERVER_ERROR, TOO_MANY = 500, 429
# What an engine finds fault with, as this API names it.
PARAMS = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
}


class ResponsesDialect:
    """The Responses API.

    Args:
        history: what earlier responses said.
        clock: seconds since the epoch.
    """

    name = "responses"
    path = "/v1/responses"

    def __init__(self, history: History, clock: Callable[[], float] = time.time) -> None:
        self._history, self._clock = history, clock

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """The chat completion that is asked for.

        Raises:
            CallError: 400.
        """
        return chat_request(body, self._history.messages(Fields(body).text("previous_response_id")))

    def ignored(self, body: dict[str, Any]) -> list[str]:
        """Fields of a request that have no effect."""
        return ignored(body)

    def conversation(self, body: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The messages of a request that goes on from an earlier response, if that is still known."""
        if not body.get("previous_response_id"):
            return None
        try:
            return self.read(body)["messages"]
        except CallError:
            return None

    def answer(self, chat: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        """The response; one that came to its end may be named by `previous_response_id` from now on."""
        piece = read_piece(chat)
        builder = self._builder(chat, body)
        builder.add(piece)
        builder.finish(self._clock())
        response = builder.response
        if response["store"] and response["id"] and piece.finish_reason in WHOLE:
            self._keep(response, body)
        return response

    def stream(self, body: dict[str, Any]) -> "ResponsesStream":
        """A streamed answer."""
        return ResponsesStream(body, self._builder, self._clock)

    def error(self, status: int, code: str, message: str, param: str | None = None) -> bytes:
        """OpenAI's form of an error."""
        return CallError(status, code, message, param=PARAMS.get(param or "", param)).body()

    def _builder(self, chat: dict[str, Any], body: dict[str, Any]) -> ResponseBuilder:
        identity, model = chat.get("id"), chat.get("model")
        created = as_number(chat.get("created"))
        return ResponseBuilder(
            identity.removeprefix(CHAT_PREFIX) if isinstance(identity, str) else "",
            model if isinstance(model, str) else str(body.get("model") or ""),
            int(created if created is not None and 0 <= created < LATEST else self._clock()),
            body,
            self._history.enabled and body.get("store") is not False,
        )

    def _keep(self, response: dict[str, Any], body: dict[str, Any]) -> None:
        try:
            earlier = self._history.messages(body.get("previous_response_id"))
            said = Messages(input_messages(Fields(body), earlier))
            for item in response["output"]:
                said.add(Fields(item))
        except CallError:  # the earlier response is forgotten by now, or the model called a function without a name
            return
        self._history.keep(response["id"], said.all[: len(earlier)], said.all[len(earlier) :])


class ResponsesStream:
    """One streamed response."""

    def __init__(
        self,
        body: dict[str, Any],
        make: Callable[[dict[str, Any], dict[str, Any]], ResponseBuilder],
        clock: Callable[[], float],
    ) -> None:
        self._body, self._make, self._clock = body, make, clock
        self._builder: ResponseBuilder | None = None

    def feed(self, chunk: dict[str, Any]) -> list[bytes]:
        """The events of a chunk."""
        events: list[bytes] = []
        builder = self._begun(chunk, events)
        events += map(event, builder.add(read_piece(chunk)))
        return events

    def end(self) -> list[bytes]:
        """The last events."""
        events: list[bytes] = []
        events += map(event, self._begun({}, events).finish(self._clock()))
        return events

    def error(self, status: int, message: str) -> bytes:
        """`response.failed`."""
        events: list[bytes] = []
        code = "rate_limit_exceeded" if status == TOO_MANY else "server_error"
        if status < SERVER_ERROR and status != TOO_MANY:
            code = "invalid_prompt"
        events.append(event(self._begun({}, events).fail(code, message)))
        return b"".join(events)

    def _begun(self, chunk: dict[str, Any], events: list[bytes]) -> ResponseBuilder:
        if self._builder is None:
            self._builder = self._make(chunk, self._body)
            events += map(event, self._builder.begin())
        return self._builder
