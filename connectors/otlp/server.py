"""The receiver's HTTP side."""

import asyncio

from aiohttp import web

from headrace.connectors.otlp.answer import JSON, METHOD_NOT_ALLOWED, NOT_FOUND, Answer, refused
from headrace.connectors.otlp.receiver import PATH, Receiver
from headrace.connectors.otlp.settings import OtlpSettings
from headrace.connectors.serving import HttpServer

GRACE_SECONDS = 10.0
IDLE_SECONDS = 120.0  # a connection that sends nothing, or half a head, is closed then


class TooMuchAtOnce(Exception):
    """The bodies that are being read are as large together as those in hand may be."""


class Server(HttpServer):
    """`POST /v1/traces`, and `GET /health`."""

    def __init__(self, receiver: Receiver, settings: OtlpSettings) -> None:
        super().__init__(self._handle, settings.otlp_max_body_bytes, GRACE_SECONDS, idle_seconds=IDLE_SECONDS)
        self._receiver = receiver
        self._longest = settings.otlp_max_body_bytes
        self._most = settings.otlp_max_in_hand_bytes
        self._seconds = settings.otlp_body_wait.total_seconds()
        self._reading = 0

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
            body = await self._body(request)
        except web.HTTPRequestEntityTooLarge:
            return self._receiver.too_large(request.headers)
        except TooMuchAtOnce:
            return self._receiver.too_many(request.headers)
        except TimeoutError:
            return self._receiver.too_slow(request.headers)
        except (web.RequestPayloadError, ConnectionError) as error:  # broken, or the client has hung up
            return self._receiver.unreadable(request.headers, str(error))
        return await self._receiver.handle(request.headers, body)

    async def _body(self, request: web.BaseRequest) -> bytes:
        """The body as it was sent; what all clients together have sent of theirs is bounded."""
        if request.content.is_eof():  # it came with its head, as most do: nothing is waited for
            whole = request.content.read_nowait()
            self._check(len(whole), self._reading + len(whole))
            return whole
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                while chunk := await request.content.readany():
                    body += chunk
                    self._reading += len(chunk)
                    self._check(len(body), self._reading)
            return bytes(body)
        finally:
            self._reading -= len(body)

    def _check(self, own: int, all_together: int) -> None:
        if own > self._longest:
            raise web.HTTPRequestEntityTooLarge(self._longest, own)
        if all_together > self._most and all_together > own:
            raise TooMuchAtOnce
