"""Streamed completions: what came of each choice since the last time, as server-sent events in vLLM's shape."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import orjson

from headrace.connectors.engine.answers import finish_reason, logprobs_of, stamp, usage, whole_text
from headrace.connectors.engine.batching import Generation
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.protocol import ChatRequest, CompletionRequest
from headrace.connectors.engine.texts import TextStream
from headrace.connectors.engine.tools import ToolCall, ToolReader

DONE_EVENT = b"data: [DONE]\n\n"


class _ChoiceStream:
    """What of one choice has gone out.

    Attributes:
        sent: tokens.
        ended: its last chunk has gone out.
    """

    def __init__(self, choice: Generation, tokenizer: ChatTokenizer, request: CompletionRequest) -> None:
        self.choice = choice
        self.sent = 0
        self.ended = False
        self.tools = ToolReader() if isinstance(request, ChatRequest) and request.uses_tools else None
        self._tokenizer = tokenizer
        self._text = TextStream(tokenizer, request.stops)

    def take(self) -> tuple[str, list[ToolCall]]:
        """Text and tool calls that are certain now and have not been taken yet."""
        choice = self.choice
        if choice.ended:
            text = self._text.end(whole_text(choice, self._tokenizer))
        else:
            text = self._text.feed(choice.token_ids[: choice.settled])
        if self.tools is None:
            return text, []
        content, calls = self.tools.feed(text)
        if choice.ended:
            rest, last = self.tools.end()
            return content + rest, calls + last
        return content, calls


class ChunkMaker:
    """The events of one streamed answer."""

    def __init__(
        self,
        request: CompletionRequest,
        identity: str,
        model: str,
        prompt: tuple[int, ...],
        choices: Sequence[Generation],
        tokenizer: ChatTokenizer,
    ) -> None:
        self._request, self._prompt, self._tokenizer = request, prompt, tokenizer
        self._chat = isinstance(request, ChatRequest)
        self._base: dict[str, Any] = {
            "id": identity,
            "object": "chat.completion.chunk" if self._chat else "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._streams = [_ChoiceStream(choice, tokenizer, request) for choice in choices]
        self._begun = False

    def step(self) -> bytes:
        """Events for what has been generated since the last time, perhaps none."""
        events: list[bytes] = []
        if not self._begun and all(stream.choice.settled for stream in self._streams):
            self._begun = True
            events += self._first()
        if self._begun:
            for index, stream in enumerate(self._streams):
                events += self._chunk(index, stream)
        return b"".join(events)

    def last(self) -> bytes:
        """The events that end the stream."""
        if not self._request.include_usage:
            return DONE_EVENT
        counts = usage(self._prompt, [stream.choice for stream in self._streams])
        return _event({**self._base, "choices": [], "usage": counts}) + DONE_EVENT

    def _first(self) -> list[bytes]:
        if not self._chat:
            return []
        extra: dict[str, Any] = {}
        if self._request.return_token_ids:
            extra["prompt_token_ids"] = self._prompt
        events: list[bytes] = []
        for index in range(len(self._streams)):
            delta = {"role": "assistant", "content": ""}
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
            events.append(_event({**self._base, "choices": [choice], **extra}))
            extra = {}
        return events

    def _chunk(self, index: int, stream: _ChoiceStream) -> list[bytes]:
        choice, request = stream.choice, self._request
        start, end = stream.sent, choice.settled
        if stream.ended or (start == end and not choice.ended):
            return []
        text, calls = stream.take()
        logprobs = logprobs_of(choice, start, end, self._tokenizer, request)
        if not (text or calls or choice.ended or logprobs or request.return_token_ids):
            return []
        fields: dict[str, Any] = {"index": index}
        if self._chat:
            fields["delta"] = ({"content": text} if text else {}) | ({"tool_calls": calls} if calls else {})
        else:
            fields["text"] = text
        fields["logprobs"] = logprobs
        fields["finish_reason"] = None
        if choice.ended:
            calls_made = stream.tools.calls if stream.tools is not None else 0
            fields |= {"finish_reason": finish_reason(choice, calls_made), "stop_reason": choice.stop_reason}
        if request.return_token_ids:
            fields["token_ids"] = choice.token_ids[start:end]
            if not self._chat and not start:
                fields["prompt_token_ids"] = self._prompt
        stream.sent, stream.ended = end, choice.ended
        return [_event({**self._base, "choices": [fields], **stamp([choice])})]


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(value)
