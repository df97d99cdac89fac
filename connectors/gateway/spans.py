"""The span of a model call, with current GenAI attribute names (OpenTelemetry semantic conventions for GenAI)."""

from typing import Any
from urllib.parse import urlsplit

import msgspec
import orjson

from headrace.connectors.gateway.answer import Answer
from headrace.connectors.gateway.caller import Caller
from headrace.connectors.gateway.dialects.base import Dialect, error_body
from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.operations import CHAT, Operation
from headrace.connectors.gateway.providers.settings import Target
from headrace.connectors.gateway.request import ModelRequest
from headrace.connectors.gateway.token_in.continuation import Continuation
from headrace.schemas.records import ErrorInfo, ModelCall, Span, SpanStatus, VersionRange
from headrace.streams.tracecontext import new_span_id

PROVIDER = "headrace"
# A request that is no JSON is kept as a JSON string of at most so many bytes.
UNREADABLE_REQUEST_BYTES = 64 * 1024
_REQUEST_ATTRIBUTES = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "seed": "gen_ai.request.seed",
    "n": "gen_ai.request.choice.count",
}


class Observed(msgspec.Struct):
    """What one call came to.

    Attributes:
        operation: what is asked for.
        body: as the client sent it.
        started_at, ended_at: nanoseconds since the epoch.
        policy_version: of the answer, else what is known of the engine.
        error_body: the answer that the client gets where it is an error.
        target: the provider that is asked instead of an engine.
        streaming: the answer goes out while it is generated.
        first_chunk_at: when the first piece of such an answer came from the engine; nanoseconds since the epoch.
        hung_up: the client left before the answer was whole.
        continuation: how it stands to its conversation; None where that is not asked for.
    """

    caller: Caller
    body: bytes
    started_at: int
    operation: Operation = CHAT
    ended_at: int = 0
    request: ModelRequest | None = None
    answer: Answer | None = None
    endpoint: str | None = None
    model: str | None = None
    policy: str | None = None
    policy_version: VersionRange | None = None
    logprobs_mode: str | None = None
    http_status: int = 200
    error: CallError | None = None
    error_body: bytes | None = None
    target: Target | None = None
    streaming: bool = False
    first_chunk_at: int = 0
    hung_up: bool = False
    continuation: Continuation | None = None

    def fail(self, error: CallError, *, sent: bool = False) -> None:
        """Notes why the call has failed.

        Args:
            sent: the client has got a status and a part of the answer already.
        """
        self.error = error
        if not sent:
            self.http_status = error.status
        self.error_body = error_body(error, self.operation.dialect)


class SpanMaker:
    """Makes the spans of one gateway process."""

    def __init__(self, worker_id: str, version: str) -> None:
        resource = {"service.name": "headrace-gateway", "service.instance.id": worker_id, "service.version": version}
        self._resource = orjson.dumps(resource).decode()
        self._scope = orjson.dumps({"name": "headrace.connectors.gateway", "version": version}).decode()
        self._addresses: dict[str, tuple[str, int | None]] = {}

    def __call__(self, call: Observed, *, bodies: bool = True) -> Span:
        """The span of a call.

        Args:
            bodies: with the JSON of request and response.
        """
        caller, answer, error = call.caller, call.answer, call.error
        model = call.model or (call.request.model if call.request else None) or "unknown"
        response = None
        if bodies:
            response = answer.body if answer else call.error_body
        return Span(
            rollout_id=caller.rollout_id,
            attempt_id=caller.attempt_id,
            session_id=caller.session_id,
            source="gateway",
            trace_id=caller.trace_id,
            span_id=new_span_id(),
            parent_id=caller.parent_id,
            name=f"{call.operation.name} {model}",
            kind="CLIENT",
            status=SpanStatus(code="ERROR", message=str(error)) if error else SpanStatus(),
            start=call.started_at,
            end=call.ended_at,
            attributes=orjson.dumps(self._attributes(call, model)).decode(),
            resource=self._resource,
            scope=self._scope,
            llm=ModelCall(
                model=model,
                policy=call.policy,
                policy_version=call.policy_version,
                weights_id=answer.weights_id if answer else None,
                response_id=answer.response_id if answer else None,
                prompt_token_ids=answer.prompt_token_ids if answer else b"",
                choices=answer.choices if answer else [],
                sampling=call.request.sampling if call.request else None,
                logprobs_mode=call.logprobs_mode,
                request=_json_text(call.body, parsed=call.request is not None) if bodies else None,
                response=_json_text(response, parsed=answer is not None) if response is not None else None,
                retry_count=caller.retry_count,
                usage=answer.usage if answer else None,
                http_status=call.http_status,
                error=ErrorInfo(type=error.code, message=str(error)) if error else None,
            ),
        )

    def bare(self, call: Observed) -> Span:
        """A span that only says that there was a call and why it failed: for what fits no record."""
        caller, error = call.caller, call.error
        assert error is not None
        info = ErrorInfo(type=error.code, message=str(error))
        return Span(
            rollout_id=caller.rollout_id,
            attempt_id=caller.attempt_id,
            source="gateway",
            trace_id=caller.trace_id,
            span_id=new_span_id(),
            parent_id=caller.parent_id,
            name=call.operation.name,
            kind="CLIENT",
            status=SpanStatus(code="ERROR", message=str(error)),
            start=call.started_at,
            end=call.ended_at,
            resource=self._resource,
            scope=self._scope,
            llm=ModelCall(model=call.model or "unknown", http_status=call.http_status, error=info),
        )

    def _attributes(self, call: Observed, model: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": call.operation.name,
            "gen_ai.provider.name": call.target.provider_name if call.target else PROVIDER,
            "gen_ai.request.model": model,
        }
        if call.request is not None:
            fields = call.request.fields
            for name, attribute in _REQUEST_ATTRIBUTES.items():
                if (value := fields.get(name)) is not None:
                    attributes[attribute] = value
            limit = fields.get("max_completion_tokens") or fields.get("max_tokens")
            if limit is not None:
                attributes["gen_ai.request.max_tokens"] = limit
            if stop := fields.get("stop"):
                attributes["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else stop
            if (dialect := call.operation.dialect) is not None:
                attributes |= _of_dialect(dialect, call.request.asked)
        if call.streaming:
            attributes["gen_ai.request.stream"] = True
        if call.first_chunk_at:
            attributes["gen_ai.response.time_to_first_chunk"] = (call.first_chunk_at - call.started_at) / 1e9
        if call.hung_up:
            attributes["headrace.hung_up"] = True
        if call.continuation is not None:
            attributes["headrace.token_in"] = call.continuation.result
        if (answer := call.answer) is not None:
            attributes["gen_ai.response.id"] = answer.response_id
            attributes["gen_ai.response.model"] = answer.model
            attributes["gen_ai.response.finish_reasons"] = [choice.finish_reason for choice in answer.choices]
            if answer.usage is not None:
                attributes["gen_ai.usage.input_tokens"] = answer.usage.input_tokens
                attributes["gen_ai.usage.output_tokens"] = answer.usage.output_tokens
        if call.caller.session_id is not None:
            attributes["gen_ai.conversation.id"] = call.caller.session_id
        if call.endpoint is not None:
            address, port = self._address(call.endpoint)
            attributes["server.address"] = address
            attributes["server.port"] = port
        if call.caller.mode is not None:
            attributes["headrace.mode"] = call.caller.mode
        if call.caller.key_id is not None:
            attributes["headrace.key"] = call.caller.key_id
        attributes["http.response.status_code"] = call.http_status
        if call.error is not None:
            attributes["error.type"] = call.error.code
        return attributes

    def _address(self, endpoint: str) -> tuple[str, int | None]:
        found = self._addresses.get(endpoint)
        if found is None:
            parts = urlsplit(endpoint)
            found = self._addresses[endpoint] = (parts.hostname or endpoint, parts.port)
        return found


def _of_dialect(dialect: Dialect, asked: dict[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {"headrace.dialect": dialect.name}
    if ignored := dialect.ignored(asked):
        attributes["headrace.dialect.ignored"] = ignored
    if messages := dialect.conversation(asked):
        attributes["gen_ai.input.messages"] = orjson.dumps(messages).decode()
    return attributes


def _json_text(body: bytes, *, parsed: bool) -> str:
    """A JSON value as text: the body as it is, or a JSON string of a body that is none."""
    if not parsed:
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:
            text = body[:UNREADABLE_REQUEST_BYTES].decode("utf-8", "replace")
            return orjson.dumps(text).decode()
    return body.decode()
