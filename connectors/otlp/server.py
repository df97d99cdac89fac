"""The receiver's HTTP side."""

from aiohttp import web

from headrace.connectors.otlp.answer import JSON, METHOD_NOT_ALLOWED, NOT_FOUND, Answer, refused
from headrace.connectors.otlp.receiver import PATH, Receiver
from headrace.connectors.serving import HttpServer

GRACE_SECONDS = 10.0


class Server(HttpServer):
    """`POST /v1/traces`, and `GET /health`."""

    def __init__(self, receiver: Receiver, max_body_bytes: int) -> None:
        super().__init__(self._handle, max_body_bytes, GRACE_SECONDS)
        self._receiver = receiver

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._answer(request)
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)

    async def _answer(self, request: web.BaseRequest) -> Answer:
        path = request.raw_path.partition("?")[0].rstrip("/")
        if path == "/health" and request.method in ("GET", "HEAD"):
            return Answer(200, {"content-type": JSON}, b'{"status":"ok"}')
        if path != PATH:
            return refused(JSON, NOT_FOUND, f"no such path; traces are taken at {PATH}, and nothing else is")
        if request.method != "POST":
            return refused(JSON, METHOD_NOT_ALLOWED, f"{PATH} takes POST only")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._receiver.too_large(request.headers)
        except (web.RequestPayloadError, ConnectionError) as error:  # broken, or the client has hung up
            return self._receiver.unreadable(request.headers, str(error))
        return await self._receiver.handle(request.headers, body)
