"""The gateway's HTTP side."""

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import orjson
from aiohttp import web

from headrace.connectors.content_coding import NotReadable, TooLarge, UnknownEncoding
from headrace.connectors.gateway.caller import ANSWER_ROLLOUT_HEADER, Caller, identify, split_path
from headrace.connectors.gateway.dialects.base import Dialect, error_body
from headrace.connectors.gateway.edge import Edge
from headrace.connectors.gateway.engines import Engines
from headrace.connectors.gateway.errors import (
    BAD_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    TOO_LARGE,
    UNSUPPORTED_MEDIA,
    CallError,
)
from headrace.connectors.gateway.feedback import PATH as FEEDBACK_PATH
from headrace.connectors.gateway.gateway import Gateway, Reply
from headrace.connectors.gateway.keys.guard import UNAUTHORIZED
from headrace.connectors.gateway.keys.store import CALL, FEEDBACK
from headrace.connectors.gateway.operations import Operation
from headrace.connectors.serving import EventStream, HttpServer, Request, read_body, while_there

MODELS, HEALTH = "/v1/models", "/health"
GRACE_SECONDS = 10.0
JSON = "application/json"


class StreamClient(EventStream):
    """The client of a streamed answer, as `gateway.Client` has it."""

    def __init__(self, request: Request, caller: Caller) -> None:
        super().__init__(request, _headers(caller))
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
        edge: Edge,
        max_body_bytes: int,
    ) -> None:
        super().__init__(self._handle, max_body_bytes, GRACE_SECONDS)
        self._edge = edge
        self._gateway, self._engines, self._operations = gateway, engines, operations
        self._provided = frozenset(provided)

    async def _handle(self, request: Request) -> web.StreamResponse:
        path = ""
        try:
            rollout_id, attempt_id, path = split_path(request.raw_path.partition("?")[0])
            if path == HEALTH:
                return web.Response(body=self._look(request.method, path), content_type=JSON)
            with self._edge.guard.admit(request.headers, FEEDBACK if path == FEEDBACK_PATH else CALL) as grant:
                if path == FEEDBACK_PATH:
                    return await self._take_feedback(request)
                operation = self._operations.get(path)
                if operation is None:
                    return web.Response(body=self._look(request.method, path), content_type=JSON)
                _check_method(request, path)
                caller = identify(rollout_id, attempt_id, request.headers, self._edge.outside, grant)
                return await self._call(request, operation, caller)
        except CallError as error:
            body = error_body(error, self._dialect_of(path))
            response = web.Response(body=body, status=error.status, content_type=JSON)
            if error.retry_after is not None:
                response.headers["retry-after"] = error.retry_after
            if error.status == UNAUTHORIZED:
                response.headers["www-authenticate"] = "Bearer"
            return response

    async def _take_feedback(self, request: Request) -> web.Response:
        _check_method(request, FEEDBACK_PATH)
        body, refused = await self._read(request)
        if refused is not None:
            raise refused
        answer = await self._edge.feedback.handle(request.headers, body)
        response = web.Response(body=answer.body, status=answer.status, content_type=JSON)
        if answer.retry_after is not None:
            response.headers["retry-after"] = str(answer.retry_after)
        return response

    async def _read(self, request: Request) -> tuple[bytes, CallError | None]:
        """The body, or why there is none."""
        try:
            return await read_body(request, self._limit), None
        except TooLarge:
            message = f"the request is larger than {self._limit} bytes (gateway_max_body_bytes)"
            return b"", CallError(TOO_LARGE, "request_too_large", message)
        except NotReadable as error:
            return b"", CallError(BAD_REQUEST, "invalid_body", f"the body cannot be read: {error}")
        except UnknownEncoding:
            message = "Content-Encoding must be gzip, deflate or identity"
            return b"", CallError(UNSUPPORTED_MEDIA, "invalid_body", message)

    async def _call(self, request: Request, operation: Operation, caller: Caller) -> web.StreamResponse:
        body, refused = await self._read(request)
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
        if path not in (MODELS, HEALTH) and not path.startswith(MODELS + "/"):
            known = ", ".join((*self._operations, FEEDBACK_PATH))
            raise CallError(NOT_FOUND, "not_found", f"no such path: {path}; there are {known} and {MODELS}")
        if method not in ("GET", "HEAD"):
            raise CallError(METHOD_NOT_ALLOWED, "method_not_allowed", f"{path} takes GET only")
        engines = self._engines.all()
        if path == HEALTH:
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


def _headers(caller: Caller) -> dict[str, str]:
    """Of an answer: the rollout, unless nothing is known of it."""
    return {ANSWER_ROLLOUT_HEADER: caller.rollout_id} if caller.recorded else {}


def _check_method(request: Request, path: str) -> None:
    if request.method != "POST":
        raise CallError(METHOD_NOT_ALLOWED, "method_not_allowed", f"{path} takes POST only")


def _response(reply: Reply, caller: Caller) -> web.Response:
    response = web.Response(body=reply.body, status=reply.status, content_type=JSON)
    response.headers.update(_headers(caller))
    if reply.retry_after is not None:
        response.headers["retry-after"] = reply.retry_after
    return response
