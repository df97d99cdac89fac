"""A call from its request to its answer: the engine is called, the span is written, and only then is it answered."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import Any, Protocol, cast

import msgspec
import orjson

from headrace.connectors.gateway.answer import read_answer
from headrace.connectors.gateway.caller import Caller
from headrace.connectors.gateway.calling import EngineCalls
from headrace.connectors.gateway.dialects.base import error_body
from headrace.connectors.gateway.engines import Engine, Engines
from headrace.connectors.gateway.errors import (
    BAD_REQUEST,
    OK,
    SERVER_ERROR,
    STATUS_END,
    CallError,
    engine_refusal,
    garbage,
    unavailable,
)
from headrace.connectors.gateway.operations import Operation
from headrace.connectors.gateway.providers.provided import ProviderCalls
from headrace.connectors.gateway.recorder import Recorder
from headrace.connectors.gateway.relay import Relay
from headrace.connectors.gateway.request import read_request
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.connectors.gateway.spans import Observed
from headrace.connectors.gateway.token_in.continuing import TokenIn
from headrace.connectors.gateway.upstream import ConnectionLost, EngineTimeout, Upstream
from headrace.connectors.serving import ClientGone

log = logging.getLogger(__name__)


class Reply(msgspec.Struct):
    """An HTTP answer with a JSON body."""

    status: int
    body: bytes
    retry_after: str | None = None


class Client(Protocol):
    """The client of a streamed answer.

    Attributes:
        begun: it has been sent something.
    """

    begun: bool

    def write(self, events: bytes) -> Awaitable[None]:
        """Sends events at once. Raises ClientGone where it has hung up."""
        ...

    def end(self, events: bytes) -> Awaitable[None]:
        """Sends the last events. Raises ClientGone where it has hung up."""
        ...

    def while_there(self) -> AbstractContextManager[None]:
        """Within it, ClientGone is raised as soon as it hangs up."""
        ...


class Gateway:
    """Answers model calls."""

    def __init__(
        self,
        settings: GatewaySettings,
        engines: Engines,
        upstream: Upstream,
        recorder: Recorder,
        providers: ProviderCalls,
        token_in: TokenIn,
    ) -> None:
        self._calls, self._providers, self._token_in = EngineCalls(settings, engines), providers, token_in
        self._upstream, self._recorder = upstream, recorder
        self._timeout = settings.gateway_engine_timeout.total_seconds()
        self.counters: Counter[str] = Counter()

    def begin(self, caller: Caller, operation: Operation, body: bytes, refused: CallError | None = None) -> Observed:
        """Reads a request; where it cannot be, the call has an error already.

        Args:
            refused: why it is not passed on.
        """
        call = Observed(caller=caller, body=body, operation=operation, started_at=time.time_ns())
        try:
            if refused is not None:
                raise refused
            call.request = read_request(body, caller.mode, operation)
            call.target = self._providers.find(call.request.model)
            if call.target is not None:
                call.request = read_request(body, None, operation)  # nothing is trained on it: sampled as asked
            else:
                call.continuation = self._token_in.begin(caller, call.request)
            call.request.prompt = {}
            call.streaming = call.request.stream
        except CallError as error:
            call.fail(error)
        except Exception as error:  # whatever a client sends has an answer and a span
            call.fail(_unforeseen(error))
        return call

    async def complete(self, call: Observed) -> Reply:
        """Answers a call; its span stands in the log by then."""
        try:
            if call.error is not None:
                pass
            elif call.target is not None:
                await self._providers.complete(call)
            else:
                await self._calls.through(call, self._complete)
        except CallError as error:
            call.fail(error)
        except Exception as error:  # whatever an engine answers has a span
            call.fail(_unforeseen(error))
        if (error := await self._record(call)) is not None:
            return _refusal(call, error)
        if call.answer is not None and call.error is None:
            return Reply(call.http_status, call.answer.body)
        return Reply(call.http_status, call.error_body or b"", call.error.retry_after if call.error else None)

    async def stream(self, call: Observed, client: Client) -> Reply | None:
        """Answers a call while the engine generates; the last event goes out when the span stands in the log.

        Returns an answer for a client that has been sent nothing yet.
        """
        passing = _Passing(self._upstream, self._token_in, self._timeout, client)
        try:
            with client.while_there():
                if call.target is not None:
                    await passing.provide(call, self._providers.chunks(call))
                else:
                    await self._calls.through(call, passing.relay)
        except CallError as error:
            call.fail(error, sent=client.begun)
        except ClientGone:
            call.hung_up = passing.current is None or not passing.current.whole
        except Exception as error:  # as in `complete`
            call.fail(_unforeseen(error), sent=client.begun)
        relay = passing.current
        if relay is not None and relay.gathering.begun:
            self._note(call, relay)
        failed = await self._record(call)
        if failed is not None and not client.begun:
            return _refusal(call, failed)
        error = failed or call.error
        if error is not None and not client.begun:
            return Reply(call.http_status, call.error_body or b"", error.retry_after)
        if relay is not None and not call.hung_up:
            await _finish(client, relay, error)
        return None

    @staticmethod
    def _note(call: Observed, relay: Relay) -> None:
        try:
            call.answer = relay.gathering.answer()
        except CallError as error:
            call.fail(call.error or error, sent=True)

    async def _record(self, call: Observed) -> CallError | None:
        """Writes the span and counts the call; why the span was not written as it should be."""
        if (answer := call.answer) is not None:
            call.policy_version = answer.policy_version or call.policy_version
            call.logprobs_mode = answer.logprobs_mode
        self._token_in.end(call)
        call.ended_at = time.time_ns()
        self.counters["calls"] += 1
        if call.continuation is not None:
            self.counters[f"token_in_{call.continuation.result}"] += 1
        try:
            await self._recorder.record(call)
        except CallError as error:
            self.counters[error.code] += 1
            return error
        if call.error is not None:
            self.counters[call.error.code] += 1
        if call.hung_up:
            self.counters["hung_up"] += 1
        return None

    async def _complete(self, call: Observed, engine: Engine) -> None:
        assert call.request is not None
        body = await self._token_in.body(call, engine)
        given = await self._upstream.complete(engine.endpoint, call.operation.upstream, body)
        status, raw = given.status, given.body
        _check_status(status, raw, given.headers)
        try:
            call.answer = read_answer(raw, call.request)
        except CallError as error:
            log.warning("%s answered garbage of %d bytes: %s", engine.endpoint, len(raw), error)
            raise


class _Passing:
    """A streamed answer passed on from whichever engine gives it.

    Attributes:
        current: of the engine that was asked last.
    """

    def __init__(self, upstream: Upstream, token_in: TokenIn, timeout: float, client: Client) -> None:
        self._upstream, self._token_in, self._timeout, self._client = upstream, token_in, timeout, client
        self.current: Relay | None = None

    async def relay(self, call: Observed, engine: Engine) -> None:
        assert call.request is not None
        relay = self.current = Relay(call.request)
        try:
            body = await self._token_in.body(call, engine)
            async with (
                asyncio.timeout(self._timeout),
                self._upstream.stream(engine.endpoint, call.operation.upstream, body) as answer,
            ):
                if answer.status != OK:
                    _check_status(answer.status, await answer.rest(), answer.headers)
                if not answer.header(b"content-type").startswith(b"text/event-stream"):
                    raise garbage("the engine did not stream, though it was asked to")
                while not relay.done and (data := await answer.read()) is not None:
                    await self._pass(call, relay, data)
                if not relay.whole:
                    raise ConnectionLost(f"{engine.endpoint}: the stream ended before the answer did")
        except TimeoutError as error:
            raise EngineTimeout(f"{engine.endpoint}: no whole answer within {self._timeout:g} s") from error

    async def provide(self, call: Observed, chunks: AsyncGenerator[dict[str, Any]]) -> None:
        """Passes on what a provider answers. Raises CallError."""
        assert call.request is not None
        relay = self.current = Relay(call.request)
        options: Any = call.request.fields.get("stream_options")
        counted = isinstance(options, dict) and cast(dict[str, Any], options).get("include_usage")
        async with aclosing(chunks):
            async for chunk in chunks:
                if chunk["choices"] or counted:
                    await self._pass(call, relay, b"data: %b\n\n" % orjson.dumps(chunk))
                else:
                    relay.gathering.add(chunk)
        if not relay.gathering.finished:
            raise unavailable("engine_lost", "the provider's stream ended before the answer did")

    async def _pass(self, call: Observed, relay: Relay, data: bytes) -> None:
        assert call.request is not None
        events = relay.feed(data)
        if not call.first_chunk_at and relay.gathering.begun:
            call.first_chunk_at = time.time_ns()
            call.request.encoded = b""  # it is not asked again
            if call.continuation is not None:
                call.continuation.new = []
        if events:
            await self._client.write(events)
        if relay.failed is not None:
            raise relay.failed


async def _finish(client: Client, relay: Relay, error: CallError | None) -> None:
    try:
        last = relay.last() if error is None else relay.error(error)
    except CallError as untranslated:
        log.warning("%s", untranslated)
        last = relay.error(untranslated)
    try:
        await client.end(last)
    except ClientGone:
        log.debug("a client left before the last event")


def _unforeseen(error: Exception) -> CallError:
    log.error("a call failed", exc_info=error)
    return CallError(SERVER_ERROR, "internal_error", f"the gateway failed ({type(error).__name__}); its log says where")


def _refusal(call: Observed, error: CallError) -> Reply:
    return Reply(error.status, error_body(error, call.operation.dialect), error.retry_after)


def _check_status(status: int, raw: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    if status == OK:
        return
    if not BAD_REQUEST <= status < STATUS_END:
        raise garbage(f"the engine answered with status {status}")
    after = next((value.decode("latin-1") for name, value in headers if name == b"retry-after"), None)
    raise engine_refusal(status, raw, after if after is not None and after.isprintable() else None)
