"""A Responses object that grows by pieces of a chat completion, and the events that tell of it.

A whole answer is one piece; so the object is the same, however it was made.
"""

from typing import Any

import msgspec

from headrace.connectors.gateway.dialects.pieces import CallPiece, Piece, Tokens
from headrace.connectors.gateway.dialects.responses.envelope import envelope, usage

Event = dict[str, Any]
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
WHOLE = ("stop", "tool_calls", "function_call")
TEXT, REFUSAL, REASONING, CALL = "output_text", "refusal", "reasoning_text", "function_call_arguments"
_FIELD = {TEXT: "text", REFUSAL: "refusal", REASONING: "text"}
_PREFIX = {TEXT: "msg", REFUSAL: "msg", REASONING: "rs", CALL: "fc"}


class _Item(msgspec.Struct):
    """One output item. `item` is what the client gets in the end."""

    kind: str
    index: int
    item: dict[str, Any]
    pieces: list[str] = []
    logprobs: list[Any] = []
    open: bool = True

    @property
    def place(self) -> dict[str, Any]:
        place: dict[str, Any] = {"item_id": self.item["id"], "output_index": self.index}
        return place if self.kind == CALL else place | {"content_index": 0}


class ResponseBuilder:
    """Builds one response.

    Args:
        identity: what its id and those of its items are made of; without it they have none of their own.
        body: the request.
        stored: whether it can be named by `previous_response_id`.
    """

    def __init__(self, identity: str, model: str, created: float, body: dict[str, Any], stored: bool) -> None:
        self._identity = identity
        response_id = f"resp_{identity}" if identity else ""
        self.response = envelope(response_id, model, created, body, stored)
        self._items: list[_Item] = []
        self._current: _Item | None = None
        self._calls: dict[int, _Item] = {}
        self._finish_reason: str | None = None
        self._sequence = 0

    def begin(self) -> list[Event]:
        """The first events."""
        return [self._state("created"), self._state("in_progress")]

    def add(self, piece: Piece) -> list[Event]:
        """Takes what was generated next."""
        events: list[Event] = []
        for kind, text in ((REASONING, piece.reasoning), (TEXT, piece.text), (REFUSAL, piece.refusal)):
            if text:
                logprobs = [_logprob(entry) for entry in piece.logprobs] if kind == TEXT else []
                events += self._add_text(kind, text, logprobs)
        for call in piece.calls:
            events += self._add_call(call)
        if piece.tokens is not None:
            self.set_tokens(piece.tokens)
        self._finish_reason = piece.finish_reason or self._finish_reason
        return events

    def set_tokens(self, tokens: Tokens) -> None:
        """What was counted; the last count stands."""
        self.response["usage"] = usage(tokens)

    def finish(self, now: float | None = None) -> list[Event]:
        """Closes all items and tells the end: complete, or cut by a limit or by something else.

        Args:
            now: seconds since the epoch.
        """
        events: list[Event] = []
        if not self._items:
            events += self._open(TEXT, self._message())
        whole = self._finish_reason in WHOLE
        for item in self._items:
            events += self._close(item, "completed" if whole or item is not self._items[-1] else "incomplete")
        self.response["output"] = [item.item for item in self._items]
        if whole:
            self.response |= {"status": "completed", "completed_at": now}
            return [*events, self._state("completed")]
        reason = INCOMPLETE.get(self._finish_reason or "")
        self.response |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        return [*events, self._state("incomplete")]

    def fail(self, code: str, message: str) -> Event:
        """The event that ends a stream that failed."""
        self.response["output"] = [item.item for item in self._items if not item.open]
        self.response |= {"status": "failed", "error": {"code": code, "message": message}}
        return self._state("failed")

    def _add_text(self, kind: str, text: str, logprobs: list[Any]) -> list[Event]:
        events: list[Event] = []
        item = self._current
        if item is None or item.kind != kind:
            events += self._open(kind, self._reasoning() if kind == REASONING else self._message())
            item = self._items[-1]
        item.pieces.append(text)
        delta = self._event(f"response.{kind}.delta", **item.place, delta=text)
        if kind == TEXT:
            item.logprobs += logprobs
            delta["logprobs"] = logprobs
        return [*events, delta]

    def _add_call(self, piece: CallPiece) -> list[Event]:
        events: list[Event] = []
        call = self._calls.get(piece.index)
        if call is None:
            call_id = piece.id or f"call_{self._identity}_{len(self._calls)}"
            item = {"type": "function_call", "call_id": call_id, "name": piece.name or "", "arguments": ""}
            events += self._open(CALL, item)
            call = self._calls[piece.index] = self._items[-1]
        elif piece.name and not call.item["name"]:
            call.item["name"] = piece.name
        if piece.arguments:
            # A call that was closed is open again: engines tell one after another, but nothing says that they must.
            call.open = True
            call.pieces.append(piece.arguments)
            events.append(self._event(f"response.{CALL}.delta", **call.place, delta=piece.arguments))
        return events

    def _open(self, kind: str, item: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        if self._current is not None:
            events += self._close(self._current, "completed")
        index = len(self._items)
        item = {"id": f"{_PREFIX[kind]}_{self._identity}_{index}", **item, "status": "in_progress"}
        added = _Item(kind, index, item)
        self._items.append(added)
        self._current = added
        events.append(self._event("response.output_item.added", output_index=index, item=dict(item)))
        if kind != CALL:
            events.append(self._event("response.content_part.added", **added.place, part=_part(kind, "", [])))
        return events

    def _close(self, closed: _Item, status: str) -> list[Event]:
        if not closed.open:
            return []
        closed.open = False
        text, item = "".join(closed.pieces), closed.item
        item["status"] = status
        if closed.kind == CALL:
            item["arguments"] = text or "{}"
            done = self._event(f"response.{CALL}.done", **closed.place, name=item["name"], arguments=item["arguments"])
            return [done, self._item_done(closed)]
        part = _part(closed.kind, text, closed.logprobs)
        item["content"] = [part]
        done = self._event(f"response.{closed.kind}.done", **closed.place, **{_FIELD[closed.kind]: text})
        if closed.kind == TEXT:
            done["logprobs"] = closed.logprobs
        return [done, self._event("response.content_part.done", **closed.place, part=part), self._item_done(closed)]

    def _item_done(self, closed: _Item) -> Event:
        return self._event("response.output_item.done", output_index=closed.index, item=dict(closed.item))

    def _state(self, name: str) -> Event:
        return self._event(f"response.{name}", response=dict(self.response))

    def _event(self, kind: str, **fields: Any) -> Event:
        event = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return event

    @staticmethod
    def _message() -> dict[str, Any]:
        return {"type": "message", "role": "assistant", "content": []}

    @staticmethod
    def _reasoning() -> dict[str, Any]:
        return {"type": "reasoning", "summary": [], "content": []}


def _part(kind: str, text: str, logprobs: list[Any]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": kind, _FIELD[kind]: text}
    return part | {"annotations": [], "logprobs": logprobs} if kind == TEXT else part


def _logprob(entry: Any) -> dict[str, Any]:
    """An entry of chat's log-probabilities; the Responses API names the same fields."""
    empty: dict[str, Any] = {"token": "", "logprob": 0.0, "bytes": [], "top_logprobs": []}
    return empty | entry if isinstance(entry, dict) else empty
