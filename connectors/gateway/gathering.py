"""A streamed answer, gathered from its chunks for the record while they are passed on."""

from io import StringIO
from typing import Any, cast

import orjson

from headrace.connectors.gateway.answer import (
    Answer,
    for_client,
    packed_ids,
    packed_logprobs,
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
from headrace.schemas.packing import unpack_int32
from headrace.schemas.records import Choice, Usage, VersionRange

Fields = dict[str, Any]
_ID_BYTES = 4
CHUNK_KINDS = {"chat.completion.chunk": "chat.completion"}


class GatheredChoice:
    """One choice: its texts and tool calls joined, its token ids and log-probabilities packed as they come."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.finish_reason: str | None = None
        self._ids: bytearray | None = bytearray()
        self._logprobs: bytearray | None = None
        self._bad_logprobs = False
        self._texts: dict[str, StringIO] = {}
        self._tools: dict[int, Fields] = {}
        self._other: Fields = {}
        self._message: Fields = {}
        self._shown: Fields = {}  # log-probabilities in OpenAI's form, where the client asked for them

    def add(self, choice: Fields, request: ModelRequest) -> bool:
        """Takes what a chunk says of it, and out of the chunk what the client did not ask for.

        Returns whether anything is left for the client to see.
        """
        ids: Any = choice.get("token_ids") if request.wants_token_ids else choice.pop("token_ids", None)
        if ids:
            self._add_ids(ids)
        logprobs: Any = choice.get("logprobs")
        if isinstance(logprobs, dict):
            self._add_logprobs(cast(Fields, logprobs), shown=request.wants_logprobs)
        if logprobs is not None and not request.wants_logprobs:
            choice["logprobs"] = None
        reason = text_or_none(choice.get("finish_reason"))
        if reason:
            self.finish_reason = reason
        if request.operation.is_text:
            said = self._add_text("text", choice.get("text"))
        else:
            delta: Any = choice.get("delta")
            said = isinstance(delta, dict) and self._add_delta(cast(Fields, delta))
        for name in choice.keys() - {"index", "delta", "text", "logprobs", "finish_reason", "token_ids"}:
            self._other[name] = choice[name]
        # A chunk without a word comes only because its ids were asked for.
        wanted = request.wants_token_ids or (request.wants_logprobs and logprobs is not None)
        return bool(said or reason or not ids or wanted)

    def _add_ids(self, ids: Any) -> None:
        packed = packed_ids(ids)
        if packed is None:
            self._ids = None
        elif self._ids is not None:
            self._ids += packed

    def _add_logprobs(self, value: Fields, *, shown: bool) -> None:
        if not value.get("content") and "token_logprobs" not in value:
            return
        packed = packed_logprobs(value)
        if packed is None:
            self._bad_logprobs = True
            return
        if self._logprobs is None:
            self._logprobs = bytearray()
        self._logprobs += packed
        if shown:
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
    def token_count(self) -> int:
        """How many token ids have come."""
        return len(self._ids) // _ID_BYTES if self._ids is not None else 0

    def record(self, request: ModelRequest) -> Choice:
        """For the span."""
        tool_calls = self._tool_calls()
        return Choice(
            index=self.index,
            response_token_ids=bytes(self._ids or b""),
            logprobs=bytes(self._logprobs) if self._logprobs is not None and not self._bad_logprobs else None,
            finish_reason=self.finish_reason,
            text=self._text("text" if request.operation.is_text else "content"),
            tool_calls=orjson.dumps(tool_calls).decode() if tool_calls else "[]",
        )

    def answer(self, request: ModelRequest) -> Fields:
        """As an answer that is not streamed has it."""
        choice: Fields = {"index": self.index}
        if request.operation.is_text:
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
        if request.wants_token_ids:
            choice["token_ids"] = unpack_int32(bytes(self._ids or b""))
        return choice


class Gathering:
    """All chunks of one streamed answer to `request`."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
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
        if not self._prompt or not self._request.wants_token_ids:
            ids = prompt_ids(fields, choices, keep=self._request.wants_token_ids)
            self._prompt = self._prompt or packed_ids(ids) or b""
        for name, value in fields.items():
            if name != "choices" and value is not None:
                self._top[name] = value
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
            gathered = self._choices[index] = GatheredChoice(index)
        before = gathered.finish_reason
        shown = gathered.add(choice, self._request)
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
        fields = dict(self._top)
        kind = fields.get("object")
        fields["object"] = CHUNK_KINDS.get(kind, kind) if isinstance(kind, str) else kind
        fields["choices"] = [choice.answer(request) for choice in choices]
        if self._versions is not None:
            fields["policy_version"] = {"min": self._versions.min, "max": self._versions.max}
        usage = read_usage(fields.get("usage"))
        if usage is None and self._prompt:
            generated = sum(choice.token_count for choice in choices)
            usage = Usage(input_tokens=len(self._prompt) // _ID_BYTES, output_tokens=generated)
        response_id, body = for_client(fields, request)
        return Answer(
            body,
            text_or_none(fields.get("model")),
            response_id,
            self._prompt,
            [choice.record(request) for choice in choices],
            usage,
            self._versions,
            text_or_none(fields.get("weights_id")),
            text_or_none(fields.get("logprobs_mode")),
        )


def _engine_error(value: Any) -> CallError:
    """An error that an engine sends in the middle of a stream, in OpenAI's form or as a text."""
    fields = cast(Fields, value) if isinstance(value, dict) else {"message": value}
    message, code = fields.get("message"), fields.get("code")
    status = code if isinstance(code, int) and BAD_REQUEST <= code < STATUS_END else BAD_GATEWAY
    return CallError(status, "engine_error", f"the engine failed: {message}")
