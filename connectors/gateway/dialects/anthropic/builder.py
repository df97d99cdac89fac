"""A message of Anthropic's API that grows by pieces of a chat completion, and the events that tell of it.

A whole answer is one piece; so the message is the same, however it was made.
"""

from typing import Any, cast

import msgspec
import orjson

from headrace.connectors.gateway.dialects.pieces import CallPiece, Piece, Tokens

Event = dict[str, Any]
TEXT, THINKING, TOOL = "text", "thinking", "tool_use"
_STOP_REASONS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_BESIDE: dict[str, dict[str, Any]] = {TEXT: {"citations": None}, THINKING: {"signature": ""}}
# What a model wrote as arguments and is no JSON object stands under this name.
RAW_ARGUMENTS = "raw_arguments"


class _Block(msgspec.Struct):
    kind: str
    index: int
    block: dict[str, Any]
    pieces: list[str] = []
    open: bool = True


class MessageBuilder:
    """Builds one message.

    Args:
        stops: the stop sequences of the request.
    """

    def __init__(self, message_id: str, model: str, stops: list[Any]) -> None:
        self.message: dict[str, Any] = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(Tokens()),
        }
        self._stops = stops
        self._blocks: list[_Block] = []
        self._current: _Block | None = None
        self._calls: dict[int, _Block] = {}
        self._finish_reason: str | None = None
        self._stop: str | None = None

    def begin(self) -> list[Event]:
        """The first events. What the prompt counts is not known before the end, and told then."""
        return [{"type": "message_start", "message": dict(self.message)}, {"type": "ping"}]

    def add(self, piece: Piece) -> list[Event]:
        """Takes what was generated next."""
        events: list[Event] = []
        if piece.reasoning:
            events += self._add_text(THINKING, piece.reasoning)
        if text := piece.text + piece.refusal:
            events += self._add_text(TEXT, text)
        for call in piece.calls:
            events += self._add_call(call)
        if piece.tokens is not None:
            self.message["usage"] = _usage(piece.tokens)
        self._finish_reason = piece.finish_reason or self._finish_reason
        self._stop = piece.stop or self._stop
        return events

    def finish(self) -> list[Event]:
        """Closes all blocks and tells the end; a message that was cut has no stop reason."""
        events: list[Event] = []
        for block in self._blocks:
            events += self._close(block)
        self.message["content"] = [block.block for block in self._blocks]
        reason = _STOP_REASONS.get(self._finish_reason or "")
        sequence = None
        if self._finish_reason == "stop":
            reason = "end_turn"
            if self._stop in self._stops:
                reason, sequence = "stop_sequence", self._stop
        if self._calls and reason in ("end_turn", "tool_use"):  # a tool that was chosen by name ends with `stop`
            reason = "tool_use"
        self.message |= {"stop_reason": reason, "stop_sequence": sequence}
        usage = self.message["usage"]
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        return [*events, {"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]

    def _add_text(self, kind: str, text: str) -> list[Event]:
        events: list[Event] = []
        block = self._current
        if block is None or block.kind != kind:
            events += self._open(kind, {kind: "", **_BESIDE[kind]})
            block = self._blocks[-1]
        block.pieces.append(text)
        return [*events, _delta(block, {"type": f"{kind}_delta", kind: text})]

    def _add_call(self, piece: CallPiece) -> list[Event]:
        events: list[Event] = []
        call = self._calls.get(piece.index)
        if call is None:
            call_id = piece.id or f"toolu_{self.message['id'].removeprefix('msg_')}_{len(self._calls)}"
            events += self._open(TOOL, {"id": call_id, "name": piece.name or "", "input": {}})
            call = self._calls[piece.index] = self._blocks[-1]
        elif piece.name and not call.block["name"]:
            call.block["name"] = piece.name
        if piece.arguments:
            call.pieces.append(piece.arguments)
            events.append(_delta(call, {"type": "input_json_delta", "partial_json": piece.arguments}))
        return events

    def _open(self, kind: str, fields: dict[str, Any]) -> list[Event]:
        events = self._close(self._current) if self._current is not None else []
        block = _Block(kind, len(self._blocks), {"type": kind, **fields})
        self._blocks.append(block)
        self._current = block
        return [*events, {"type": "content_block_start", "index": block.index, "content_block": dict(block.block)}]

    def _close(self, closed: _Block) -> list[Event]:
        # Pieces may have come after its end was told: an engine may tell several calls at once.
        text = "".join(closed.pieces)
        if closed.kind == TOOL:
            closed.block["input"] = _input(text)
        else:
            closed.block[closed.kind] = text
        if not closed.open:
            return []
        closed.open = False
        return [{"type": "content_block_stop", "index": closed.index}]


def _delta(block: _Block, delta: dict[str, Any]) -> Event:
    return {"type": "content_block_delta", "index": block.index, "delta": delta}


def _input(arguments: str) -> dict[str, Any]:
    try:
        value: Any = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": max(tokens.prompt - tokens.cached, 0),
        "output_tokens": tokens.completion,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
    }
