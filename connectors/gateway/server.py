"""The gateway's HTTP side."""

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import orjson
from aiohttp import web

from headrace.connectors.gateway.caller import ANSWER_ROLLOUT_HEADER, Caller, identify, split_path
from headrace.connectors.gateway.dialects.base import Dialect
from headrace.connectors.gateway.engines import Engines
from headrace.connectors.gateway.errors import BAD_REQUEST, METHOD_NOT_ALLOWED, NOT_FOUND, TOO_LARGE, CallError
from headrace.connectors.gateway.gateway import Gateway, Reply
from headrace.connectors.gateway.operations import Operation
from headrace.connectors.serving import EventStream, HttpServer, Request, while_there

MODELS = "/v1/models"
GRACE_SECONDS = 10.0
JSON = "application/json"


class StreamClient(EventStream):
    """The client of a streamed answer, as `gateway.Client` has it."""

    def __init__(self, request: Request, caller: Caller) -> None:
        super().__init__(request, {ANSWER_ROLLOUT_HEADER: caller.rollout_id})
        self._there = request

    @contextmanager
    def while_there(self) -> Generator[None]:
        with while_there(self._there):
            yield


class Server(HttpServer):
    """The routes of a gateway.

    A client that goes away ends its call if the answer is streamed, and only then; the span is written all the same.
    """

    def __init__(
        self,
        gateway: Gateway,
        engines: Engines,
        operations: Mapping[str, Operation],
        provided: Iterable[str],
        max_body_bytes: int,
    ) -> None:
        super().__init__(self._handle, max_body_bytes, GRACE_SECONDS)
        self._gateway, self._engines, self._operations = gateway, engines, operations
        self._provided = frozenset(provided)

    async def _handle(self, request: Request) -> web.StreamResponse:
        path = ""
        try:
            rollout_id, attempt_id, path = split_path(request.raw_path.partition("?")[0])
            operation = self._operations.get(path)
            if operation is not None:
                return await self._call(request, operation, rollout_id, attempt_id)
            return web.Response(body=self._look(request.method, path), content_type=JSON)
        except CallError as error:
            dialect = self._dialect_of(path)
            body = dialect.error(error.status, error.code, str(error)) if dialect is not None else error.body()
            return web.Response(body=body, status=error.status, content_type=JSON)

    async def _call(
        self, request: Request, operation: Operation, rollout_id: str | None, attempt_id: str | None
    ) -> web.StreamResponse:
        if request.method != "POST":
            raise CallError(METHOD_NOT_ALLOWED, "method_not_allowed", f"{operation.path} takes POST only")
        caller = identify(rollout_id, attempt_id, request.headers)
        body, refused = b"", None
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            message = f"the request is larger than {self._limit} bytes (gateway_max_body_bytes)"
            refused = CallError(TOO_LARGE, "request_too_large", message)
        except web.RequestPayloadError as error:
            refused = CallError(BAD_REQUEST, "invalid_body", f"the body cannot be read: {error}")
        call = self._gateway.begin(caller, operation, body, refused)
        if not call.streaming:
            return _response(await self._gateway.complete(call), caller)
        client = StreamClient(request, caller)
        reply = await self._gateway.stream(call, client)
        return _response(reply, caller) if reply is not None else client.response

    def _dialect_of(self, path: str) -> Dialect | None:
        """The dialect of what is asked for, or of what stands above it (`/v1/messages/count_tokens`)."""
        operations = self._operations.values()
        return next((op.dialect for op in operations if path == op.path or path.startswith(op.path + "/")), None)

    def _look(self, method: str, path: str) -> bytes:
        if path == "/v1/embeddings":
            raise CallError(NOT_FOUND, "not_supported", "embeddings are not served here; ask a server of such models")
        if path not in (MODELS, "/health") and not path.startswith(MODELS + "/"):
            known = ", ".join(self._operations)
            raise CallError(NOT_FOUND, "not_found", f"no such path: {path}; there are {known} and {MODELS}")
        if method not in ("GET", "HEAD"):
            raise CallError(METHOD_NOT_ALLOWED, "method_not_allowed", f"{path} takes GET only")
        engines = self._engines.all()
        if path == "/health":
            return orjson.dumps({"status": "ok", "engines": len(engines)})
        names = sorted({name for engine in engines if (name := engine.policy or engine.model)} | self._provided)
        if path != MODELS:
            wanted = unquote(path[len(MODELS) + 1 :])
            if wanted not in names:
                served = ", ".join(names) or "none"
                message = f"no engine serves {wanted!r}; there are: {served}"
                raise CallError(NOT_FOUND, "model_not_found", message, param="model")
            return orjson.dumps(_model(wanted))
        return orjson.dumps({"object": "list", "data": [_model(name) for name in names]})


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": int(time.time()), "owned_by": "headrace"}


def _response(reply: Reply, caller: Caller) -> web.Response:
    response = web.Response(body=reply.body, status=reply.status, content_type=JSON)
    response.headers[ANSWER_ROLLOUT_HEADER] = caller.rollout_id
    if reply.retry_after is not None:
        response.headers["retry-after"] = reply.retry_after
    return response
