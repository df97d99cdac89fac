"""A call from its request to its answer: the engine is called, the span is written, and only then is it answered."""

import asyncio
import logging
import time
from collections import Counter

import msgspec
import orjson

from headrace.connectors.gateway.answer import read_answer
from headrace.connectors.gateway.caller import Caller
from headrace.connectors.gateway.engines import Engine, Engines
from headrace.connectors.gateway.errors import (
    BAD_GATEWAY,
    GATEWAY_TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
    CallError,
    garbage,
)
from headrace.connectors.gateway.request import read_request
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.connectors.gateway.spans import Observed, SpanMaker
from headrace.connectors.gateway.upstream import OK, ConnectionLost, EngineTimeout, Unreachable, Upstream
from headrace.schemas.records import Span
from headrace.streams.codec import EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.http1.answers import MalformedAnswerError
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.tracecontext import format_traceparent

log = logging.getLogger(__name__)

CLIENT_ERROR, SERVER_ERROR, STATUS_END = 400, 500, 600


class Reply(msgspec.Struct):
    """An HTTP answer with a JSON body."""

    status: int
    body: bytes


class Gateway:
    """Answers chat completions."""

    def __init__(
        self, settings: GatewaySettings, engines: Engines, upstream: Upstream, producer: AckedProducer, spans: SpanMaker
    ) -> None:
        self._engines, self._upstream, self._producer, self._spans = engines, upstream, producer, spans
        self._engine_wait = settings.gateway_engine_wait.total_seconds()
        self._broker_wait = settings.gateway_broker_wait.total_seconds()
        self._timeout = settings.gateway_engine_timeout.total_seconds()
        self.counters: Counter[str] = Counter()

    async def complete(self, caller: Caller, body: bytes, refused: CallError | None = None) -> Reply:
        """Answers a request; its span stands in the log by then.

        Args:
            refused: why it is not passed on.
        """
        call = Observed(caller=caller, body=body, started_at=time.time_ns())
        try:
            if refused is not None:
                raise refused
            call.request = read_request(body, caller.mode)
            await self._generate(call)
        except CallError as error:
            call.error, call.http_status = error, error.status
            call.error_body = call.error_body or error.body()
        call.ended_at = time.time_ns()
        self.counters["calls"] += 1
        try:
            await self._record(call)
        except CallError as error:
            self.counters[error.code] += 1
            return Reply(error.status, error.body())
        if call.error is not None:
            self.counters[call.error.code] += 1
        if call.answer is not None and call.error is None:
            return Reply(call.http_status, call.answer.body)
        return Reply(call.http_status, call.error_body or b"")

    async def _generate(self, call: Observed) -> None:
        assert call.request is not None
        deadline = time.monotonic() + self._engine_wait
        lost = False
        while True:
            engine = await self._engines.acquire(call.request.model, deadline)
            if engine is None:
                raise CallError(
                    UNAVAILABLE, "engine_unavailable", f"no engine answered within {self._engine_wait:g} s; is one up?"
                )
            try:
                return await self._call(call, engine)
            except Unreachable as error:
                log.info("%s", error)
                self._engines.mark_down(engine)
            except EngineTimeout as error:
                raise CallError(GATEWAY_TIMEOUT, "engine_timeout", str(error)) from error
            except ConnectionLost as error:
                # Once more, since an idle connection may close just as a call takes it; twice may be the call's fault.
                if lost:
                    raise CallError(UNAVAILABLE, "engine_lost", f"the engine went away: {error}") from error
                lost = True

    async def _call(self, call: Observed, engine: Engine) -> None:
        assert call.request is not None
        call.endpoint, call.model, call.policy = engine.endpoint, engine.model, engine.policy
        loaded = engine.loaded
        engine.in_flight += 1
        try:
            given = await self._upstream.complete(engine.endpoint, call.request.upstream(engine.model or ""))
        except MalformedAnswerError as error:
            raise garbage(f"the engine's answer is no HTTP: {error}") from error
        finally:
            engine.in_flight -= 1
        call.policy_version = engine.versions(loaded)
        status, raw = given.status, given.body
        if status != OK and not CLIENT_ERROR <= status < STATUS_END:
            raise garbage(f"the engine answered with status {status}")
        if status != OK:
            call.error_body, error = _engine_error(status, raw)
            raise error
        try:
            call.answer = answer = read_answer(raw, call.request)
        except CallError:
            # What it was is seen nowhere else.
            log.warning("%s answered garbage: %r", engine.endpoint, raw[:200])
            raise
        call.policy_version = answer.policy_version or call.policy_version
        call.logprobs_mode = answer.logprobs_mode

    async def _record(self, call: Observed) -> None:
        """Returns when the brokers have the span.

        Raises:
            CallError: 413 where the call is too large for a record, 503 where no broker acknowledged in time. A span
                that says so is written all the same.
        """
        try:
            return await self._send(self._spans(call))
        except RecordTooLargeError as error:
            refusal = CallError(TOO_LARGE, "record_too_large", f"the call cannot be recorded: {error}")
        except EncodeError as error:
            refusal = CallError(BAD_GATEWAY, "engine_garbage", f"the call cannot be recorded: {error}")
        call.error, call.http_status = refusal, refusal.status
        try:
            await self._send(self._spans(call, bodies=False))
        except (RecordTooLargeError, EncodeError):
            await self._send(self._spans.bare(call))
        raise refusal

    async def _send(self, span: Span) -> None:
        headers = [("traceparent", format_traceparent(span.trace_id, span.span_id))]
        try:
            async with asyncio.timeout(self._broker_wait):
                await self._producer.send(span, headers)  # type: ignore[arg-type]
        except TimeoutError as error:
            message = f"no broker acknowledged the span within {self._broker_wait:g} s"
            raise CallError(UNAVAILABLE, "broker_unavailable", message) from error
        except DeliveryError as error:
            raise CallError(UNAVAILABLE, "broker_unavailable", f"the span was not written: {error}") from error


def _engine_error(status: int, raw: bytes) -> tuple[bytes, CallError]:
    """An engine's own error, passed on as it is where it is JSON."""
    try:
        value = orjson.loads(raw)
        message = str(value["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = raw[:200].decode("utf-8", "replace")
        error = CallError(
            status if CLIENT_ERROR <= status < SERVER_ERROR else BAD_GATEWAY,
            "engine_error",
            f"the engine answered {status}: {text}",
        )
        return error.body(), error
    return raw, CallError(status, "engine_error", message)
