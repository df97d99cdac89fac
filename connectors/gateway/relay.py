"""Passing on a streamed answer, event by event, while it is gathered for the record."""

from typing import Any

import orjson

from headrace.connectors.gateway.dialects.base import DialectStream
from headrace.connectors.gateway.errors import BROKEN, CallError, broken, garbage, garbage_if_broken
from headrace.connectors.gateway.gathering import Gathering
from headrace.connectors.gateway.request import ModelRequest
from headrace.streams.http1.events import EventReader

DONE = b"[DONE]"
DONE_EVENT = b"data: [DONE]\n\n"


class Relay:
    """One streamed answer on its way from an engine to a client.

    What comes from the event on that ends the last choice is held back: a client that has seen the end may take the
    answer for recorded.

    Attributes:
        done: the engine has sent its last event.
        failed: why the stream cannot go on: 502 where an event is no chunk, or the engine's own error.
    """

    def __init__(self, request: ModelRequest) -> None:
        self.gathering = Gathering(request)
        self.done = False
        self.failed: CallError | None = None
        self._as_it_came = request.wants_token_ids and request.wants_logprobs
        self._stream = _translator(request)
        self._reader = EventReader()
        self._held: list[bytes] = []

    @property
    def whole(self) -> bool:
        """Whether all that was asked for has come."""
        return self.done or self.gathering.finished

    def feed(self, data: bytes) -> bytes:
        """Takes bytes from the engine; events for the client, perhaps none; those before what has failed too."""
        out: list[bytes] = []
        for event in self._reader.feed(data):
            if self.done or event == DONE:
                self.done = True
                break
            try:
                shown = self._take(event)
            except CallError as error:
                self.failed = error
                break
            except BROKEN as error:
                self.failed = broken("the engine's stream cannot be passed on", error)
                break
            (self._held if self.gathering.finished else out).append(shown)
        return b"".join(out)

    def last(self) -> bytes:
        """What was held back, and the end of the stream.

        Raises:
            CallError: 502 where it cannot be translated.
        """
        end = [DONE_EVENT]
        if self._stream is not None:
            with garbage_if_broken("the engine's stream cannot be translated"):
                end = self._stream.end()
        return b"".join(self._held + end)

    def error(self, error: CallError) -> bytes:
        """The event that ends a stream that has failed."""
        if self._stream is not None:
            return self._stream.error(error.status, str(error))
        return b"data: %b\n\n" % error.body()

    def _take(self, event: bytes) -> bytes:
        try:
            chunk: Any = orjson.loads(event)
        except orjson.JSONDecodeError as error:
            raise garbage(f"an event of the engine's stream is no JSON: {error}") from error
        shown = self.gathering.add(chunk)
        if self._stream is not None:
            return b"".join(self._stream.feed(chunk))
        if not shown:
            return b""
        return b"data: %b\n\n" % (event.replace(b"\n", b" ") if self._as_it_came else orjson.dumps(chunk))


def _translator(request: ModelRequest) -> DialectStream | None:
    dialect = request.operation.dialect
    return dialect.stream(request.asked) if dialect is not None else None
