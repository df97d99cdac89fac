"""The gateway's HTTP side."""

import time

import orjson
from aiohttp import web

from headrace.connectors.gateway.caller import ANSWER_ROLLOUT_HEADER, identify, split_path
from headrace.connectors.gateway.engines import Engines
from headrace.connectors.gateway.errors import BAD_REQUEST, METHOD_NOT_ALLOWED, NOT_FOUND, TOO_LARGE, CallError
from headrace.connectors.gateway.gateway import Gateway
from headrace.connectors.serving import HttpServer

COMPLETIONS = "/v1/chat/completions"
GRACE_SECONDS = 10.0
JSON = "application/json"


class Server(HttpServer):
    """The routes of a gateway. A client that goes away does not end its call: the span is written all the same."""

    def __init__(self, gateway: Gateway, engines: Engines, max_body_bytes: int) -> None:
        super().__init__(self._handle, max_body_bytes, GRACE_SECONDS)
        self._gateway, self._engines = gateway, engines

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            rollout_id, attempt_id, path = split_path(request.raw_path.partition("?")[0])
            if path == COMPLETIONS:
                return await self._complete(request, rollout_id, attempt_id)
            return web.Response(body=self._look(request.method, path), content_type=JSON)
        except CallError as error:
            return web.Response(body=error.body(), status=error.status, content_type=JSON)

    async def _complete(self, request: web.BaseRequest, rollout_id: str | None, attempt_id: str | None) -> web.Response:
        if request.method != "POST":
            raise CallError(METHOD_NOT_ALLOWED, "method_not_allowed", f"{COMPLETIONS} takes POST only")
        caller = identify(rollout_id, attempt_id, request.headers)
        body, refused = b"", None
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            message = f"the request is larger than {self._limit} bytes (gateway_max_body_bytes)"
            refused = CallError(TOO_LARGE, "request_too_large", message)
        except web.RequestPayloadError as error:
            refused = CallError(BAD_REQUEST, "invalid_body", f"the body cannot be read: {error}")
        reply = await self._gateway.complete(caller, body, refused)
        response = web.Response(body=reply.body, status=reply.status, content_type=JSON)
        response.headers[ANSWER_ROLLOUT_HEADER] = caller.rollout_id
        return response

    def _look(self, method: str, path: str) -> bytes:
        if path not in ("/v1/models", "/health"):
            raise CallError(NOT_FOUND, "not_found", f"no such path: {path}")
        if method not in ("GET", "HEAD"):
            raise CallError(METHOD_NOT_ALLOWED, "method_not_allowed", f"{path} takes GET only")
        engines = self._engines.all()
        if path == "/health":
            return orjson.dumps({"status": "ok", "engines": len(engines)})
        names = sorted({name for engine in engines if (name := engine.policy or engine.model)})
        now = int(time.time())
        models = [{"id": name, "object": "model", "created": now, "owned_by": "headrace"} for name in names]
        return orjson.dumps({"object": "list", "data": models})
