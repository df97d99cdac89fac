"""What a dialect gives the gateway: its requests as chat completions, and chat completions as its answers.

A dialect takes and returns values, and keeps nothing but what one stream needs, or what a later request may name. The
gateway calls the engine, records token ids, and answers when the brokers have the span, the same for all of them.

Ids of an answer are derived from the chat completion's `id`, never drawn: the answer, the stream and the span name the
same response. The span's `response_id` is the `id` of what `Dialect.answer` returns.
"""

from typing import Any, Protocol

from headrace.connectors.gateway.errors import CallError


class DialectStream(Protocol):
    """One streamed answer. Events are whole: `event:` and `data:` lines and the empty line that ends them."""

    def feed(self, chunk: dict[str, Any]) -> list[bytes]:
        """The events that a `chat.completion.chunk` becomes, perhaps none.

        The chunk is as a chat client would get it: without token ids and log-probabilities that `Dialect.read` did not
        ask for. The last one has `usage` and no choices where `read` asked for `stream_options.include_usage`.
        """
        ...

    def end(self) -> list[bytes]:
        """The last events, once the engine's stream has ended well."""
        ...

    def error(self, status: int, message: str) -> bytes:
        """The event that ends a stream which failed in the middle, with the HTTP status it would have had."""
        ...


class Dialect(Protocol):
    """One API.

    Attributes:
        name: of the API in spans, `headrace.dialect`.
        path: below the base URL of a rollout or of the gateway, such as `/v1/messages`; POST.
    """

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the chat completion that is asked for; `stream` goes over as it is.

        Raises:
            CallError: 400 where the request cannot be, or asks for what chat completions have not.
        """
        ...

    def ignored(self, body: dict[str, Any]) -> list[str]:
        """Fields of a request that have no effect; for the record."""
        ...

    def conversation(self, body: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Chat messages of a request that names earlier ones instead of having them; for the record."""
        ...

    def answer(self, chat: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        """The answer to the request `body` that a chat completion becomes.

        Also called with what came of a stream, whole or cut (then a `finish_reason` is None), for the record.
        """
        ...

    def stream(self, body: dict[str, Any]) -> DialectStream:
        """Translates the chunks of a streamed answer to the request `body`."""
        ...

    def error(self, status: int, code: str, message: str, param: str | None = None) -> bytes:
        """The JSON body of an answer with an error status.

        Args:
            param: the parameter at fault, as this API or chat completions name it.
        """
        ...


def error_body(error: CallError, dialect: Dialect | None) -> bytes:
    """The JSON of an answer that is an error, in the client's dialect; in OpenAI's form where that is None."""
    if dialect is None:
        return error.body()
    return dialect.error(error.status, error.code, str(error), error.param)
