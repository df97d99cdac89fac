"""A streamed answer, gathered from its chunks for the record while they are passed on.

What is done for each chunk counts: a stream has hundreds, and a gateway thousands of streams.
"""

from array import array
from io import StringIO
from typing import Any, cast

import numpy as np
import orjson

from headrace.connectors.gateway.answer import (
    Answer,
    for_client,
    packed_ids,
    prompt_ids,
    read_usage,
    read_versions,
    text_or_none,
)
from headrace.connectors.gateway.errors import (
    BAD_GATEWAY,
    BAD_REQUEST,
    STATUS_END,
    CallError,
    garbage,
    garbage_if_broken,
)
from headrace.connectors.gateway.request import ModelRequest
from headrace.schemas.packing import pack_float32, pack_int32, unpack_int32
from headrace.schemas.records import Choice, Usage, VersionRange

Fields = dict[str, Any]
_ID_BYTES = 4
_USUAL = 4  # members of a chunk's choice without ids: index, delta or text, logprobs, finish_reason
CHUNK_KINDS = {"chat.completion.chunk": "chat.completion"}


class GatheredChoice:
    """One choice: its texts and tool calls joined, its token ids and log-probabilities packed as they come."""

    def __init__(self, index: int, request: ModelRequest) -> None:
        self.index = index
        self.finish_reason: str | None = None
        self._is_text = request.operation.is_text
        self._wants_ids, self._wants_logprobs = request.wants_token_ids, request.wants_logprobs
        self._ids: array[int] | None = None
        self._logprobs: array[float] | None = None
        self._bad_ids = self._bad_logprobs = False
        self._texts: dict[str, StringIO] = {}
        self._tools: dict[int, Fields] = {}
        self._other: Fields = {}
        self._message: Fields = {}
        self._shown: Fields = {}  # log-probabilities in OpenAI's form, where the client asked for them

    def add(self, choice: Fields) -> bool:
        """Takes what a chunk says of it, and out of the chunk what the client did not ask for.

        Returns whether anything is left for the client to see.
        """
        get = choice.get
        ids: Any = get("token_ids") if self._wants_ids else choice.pop("token_ids", None)
        if ids is not None:
            self._add_ids(ids)
        logprobs: Any = get("logprobs")
        if logprobs is not None:
            if isinstance(logprobs, dict):
                self._add_logprobs(cast(Fields, logprobs))
            if not self._wants_logprobs:
                choice["logprobs"] = None
        reason: Any = get("finish_reason")
        if reason and isinstance(reason, str):
            self.finish_reason = reason
        else:
            reason = None
        if self._is_text:
            said = self._add_text("text", get("text"))
        else:
            delta: Any = get("delta")
            said = isinstance(delta, dict) and self._add_delta(cast(Fields, delta))
        if len(choice) > _USUAL:
            for name in choice.keys() - {"index", "delta", "text", "logprobs", "finish_reason", "token_ids"}:
                self._other[name] = choice[name]
        # A chunk without a word comes only because its ids were asked for.
        wanted = self._wants_ids or (self._wants_logprobs and logprobs is not None)
        return bool(said or reason or not ids or wanted)

    def _add_ids(self, ids: Any) -> None:
        if self._ids is None:
            self._ids = array("i")
        try:
            self._ids.fromlist(ids)
        except (TypeError, OverflowError):
            self._bad_ids = True

    def _add_logprobs(self, value: Fields) -> None:
        content: Any = value.get("content")
        if not content and "token_logprobs" not in value:
            return
        if self._logprobs is None:
            self._logprobs = array("d")
        add = self._logprobs.append
        try:
            if "token_logprobs" in value:
                for logprob in value["token_logprobs"]:
                    add(logprob)
            else:
                for entry in content:
                    add(entry["logprob"])
        except (TypeError, KeyError, OverflowError, IndexError):  # whatever garbage leads to
            self._bad_logprobs = True
            return
        if self._wants_logprobs:
            for name, entries in value.items():
                if isinstance(entries, list):
                    self._shown.setdefault(name, []).extend(cast(list[Any], entries))

    def _add_text(self, name: str, text: Any) -> bool:
        if not isinstance(text, str):
            return False
        written = self._texts.get(name)
        if written is None:
            written = self._texts[name] = StringIO()
        written.write(text)
        return bool(text)

    def _add_delta(self, delta: Fields) -> bool:
        said = False
        for name, value in delta.items():
            if name == "tool_calls" and isinstance(value, list):
                for position, call in enumerate(cast(list[Any], value)):
                    if isinstance(call, dict):
                        self._add_tool(cast(Fields, call), position)
                        said = True
            elif isinstance(value, str) and name != "role":
                self._add_text(name, value)
                said = True
            elif value is not None:
                self._message[name] = value
                said = True
        return said

    def _add_tool(self, call: Fields, position: int) -> None:
        """The pieces of one call share its index; the arguments come in pieces, all else once."""
        index = call.get("index")
        known = self._tools.setdefault(index if isinstance(index, int) else position, {})
        for name, value in call.items():
            if name == "function":
                function = cast(Fields, known.setdefault("function", {"arguments": ""}))
                for part, text in cast(Fields, value).items() if isinstance(value, dict) else ():
                    if part == "arguments" and text is not None:
                        function["arguments"] += text if isinstance(text, str) else orjson.dumps(text).decode()
                    elif text is not None:
                        function[part] = text
            elif name != "index" and value is not None:
                known[name] = value

    def _tool_calls(self) -> list[Fields]:
        return [self._tools[index] for index in sorted(self._tools)]

    def _text(self, name: str) -> str | None:
        written = self._texts.get(name)
        return written.getvalue() if written is not None else None

    @property
    def ids(self) -> bytes | None:
        """The token ids, packed; None where there are none, or they are malformed."""
        if self._ids is None or self._bad_ids or (self._ids and min(self._ids) < 0):
            return None
        return pack_int32(np.asarray(self._ids, dtype=np.int32))

    @property
    def unread(self) -> bool:
        """Whether it should have ids, and has none that can be read."""
        return self.ids is None and (self._bad_ids or self._ids is not None or self.finish_reason is not None)

    def _packed_logprobs(self) -> bytes | None:
        if self._logprobs is None or self._bad_logprobs:
            return None
        try:
            return pack_float32(self._logprobs)
        except OverflowError:  # no float of 32 bits
            return None

    def record(self) -> Choice:
        """For the span."""
        tool_calls = self._tool_calls()
        return Choice(
            index=self.index,
            response_token_ids=self.ids or b"",
            logprobs=self._packed_logprobs(),
            finish_reason=self.finish_reason,
            text=self._text("text" if self._is_text else "content"),
            tool_calls=orjson.dumps(tool_calls).decode() if tool_calls else "[]",
        )

    def answer(self) -> Fields:
        """As an answer that is not streamed has it."""
        choice: Fields = {"index": self.index}
        if self._is_text:
            choice["text"] = self._text("text") or ""
        else:
            content = self._text("content")
            message: Fields = {"role": "assistant", **self._message, "content": content or None}
            message |= {name: text.getvalue() for name, text in self._texts.items() if name != "content"}
            if self._tools:
                message["tool_calls"] = self._tool_calls()
            elif content is not None:
                message["content"] = content
            choice["message"] = message
        choice |= {"logprobs": self._shown or None, "finish_reason": self.finish_reason, **self._other}
        if self._wants_ids:
            choice["token_ids"] = unpack_int32(self.ids or b"")
        return choice


class Gathering:
    """All chunks of one streamed answer to `request`."""

    def __init__(self, request: ModelRequest) -> None:
        self._request, self._wants_ids = request, request.wants_token_ids
        self._top: Fields = {}
        self._choices: dict[int, GatheredChoice] = {}
        self._prompt: bytes = b""
        self._versions: VersionRange | None = None
        self._unfinished = request.count

    @property
    def finished(self) -> bool:
        """Whether every choice has ended."""
        return self._unfinished <= 0

    @property
    def begun(self) -> bool:
        """Whether any chunk has come."""
        return bool(self._top)

    def add(self, chunk: Any) -> bool:
        """Takes a chunk, and out of it what the client did not ask for.

        Returns whether anything is left for the client to see.

        Raises:
            CallError: 502 where it is no chunk, the engine's own where it is an error.
        """
        if not isinstance(chunk, dict):
            raise garbage("an event of the engine's stream is no JSON object")
        fields = cast(Fields, chunk)
        if (error := fields.get("error")) is not None:
            raise _engine_error(error)
        given: Any = fields.get("choices")
        if not isinstance(given, list):
            raise garbage("an event of the engine's stream has no choices")
        choices = cast(list[Any], given)
        if not (self._prompt and self._wants_ids) and _tells_prompt(fields, choices):
            ids = prompt_ids(fields, choices, keep=self._wants_ids)
            self._prompt = self._prompt or packed_ids(ids) or b""
        top = self._top
        for name, value in fields.items():
            if value is not None and name != "choices":
                top[name] = value
        if "policy_version" in fields:
            self._widen(read_versions(fields["policy_version"]))
        shown = not choices
        for position, choice in enumerate(choices):
            if isinstance(choice, dict):
                shown = self._add_choice(cast(Fields, choice), position) or shown
        return shown

    def _add_choice(self, choice: Fields, position: int) -> bool:
        index = choice.get("index")
        if not isinstance(index, int):
            index = position
        gathered = self._choices.get(index)
        if gathered is None:
            gathered = self._choices[index] = GatheredChoice(index, self._request)
        before = gathered.finish_reason
        shown = gathered.add(choice)
        if before is None and gathered.finish_reason is not None:
            self._unfinished -= 1
        return shown

    def _widen(self, versions: VersionRange | None) -> None:
        known = self._versions
        if versions is None or known is None:
            self._versions = versions or known
        elif versions.min < known.min or versions.max > known.max:
            self._versions = VersionRange(min=min(known.min, versions.min), max=max(known.max, versions.max))

    def answer(self) -> Answer:
        """What has come, as if it had not been streamed.

        Raises:
            CallError: 502 where it cannot be recorded, or put in the client's dialect.
        """
        with garbage_if_broken("the engine's answer cannot be recorded"):
            return self._answer(self._request)

    def _answer(self, request: ModelRequest) -> Answer:
        choices = [self._choices[index] for index in sorted(self._choices)]
        recorded = [choice.record() for choice in choices]
        fields = dict(self._top)
        kind = fields.get("object")
        fields["object"] = CHUNK_KINDS.get(kind, kind) if isinstance(kind, str) else kind
        fields["choices"] = [choice.answer() for choice in choices]
        if self._versions is not None:
            fields["policy_version"] = {"min": self._versions.min, "max": self._versions.max}
        usage = read_usage(fields.get("usage"))
        if usage is None and self._prompt:
            generated = sum(len(choice.response_token_ids) for choice in recorded) // _ID_BYTES
            usage = Usage(input_tokens=len(self._prompt) // _ID_BYTES, output_tokens=generated)
        response_id, body = for_client(fields, request)
        return Answer(
            body,
            text_or_none(fields.get("model")),
            response_id,
            b"" if all(choice.unread for choice in choices) else self._prompt,
            recorded,
            usage,
            self._versions,
            text_or_none(fields.get("weights_id")),
            text_or_none(fields.get("logprobs_mode")),
        )


def _tells_prompt(fields: Fields, choices: list[Any]) -> bool:
    if "prompt_token_ids" in fields:
        return True
    return any(isinstance(choice, dict) and "prompt_token_ids" in choice for choice in choices)


def _engine_error(value: Any) -> CallError:
    """An error that an engine sends in the middle of a stream, in OpenAI's form or as a text."""
    fields = cast(Fields, value) if isinstance(value, dict) else {"message": value}
    message, code = fields.get("message"), fields.get("code")
    status = code if isinstance(code, int) and BAD_REQUEST <= code < STATUS_END else BAD_GATEWAY
    return CallError(status, "engine_error", f"the engine failed: {message}")
