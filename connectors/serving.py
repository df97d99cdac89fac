"""An HTTP server on a loopback port, on aiohttp's server, whose parser is in C: half the CPU of uvicorn with h11."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from headrace.connectors.content_coding import NotReadable, TooLarge, decompressed
from headrace.streams.errors import HeadraceError

# A server with a thousand streams open has a thousand files, a proxy of them two thousand; many systems allow 1,024.
OPEN_FILES = 65_536
# Answers under way may take this long after the server was told to stop.
GRACE_SECONDS = 5.0
BACKLOG = 2048


class PortError(HeadraceError, OSError):
    """The port cannot be bound."""


class ClientGone(HeadraceError):
    """The client has hung up: nobody waits for the answer."""


def allow_many_connections() -> None:
    """Raises the limit of open files as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def bind(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        PortError: the port is in use.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortError(f"cannot serve on port {port} of {host}: {error.strerror}; port 0 takes a free one") from error
    listener.listen(BACKLOG)
    return listener


def endpoint(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Request(web.BaseRequest):
    """A request whose handler can learn that the client has hung up.

    Attributes:
        on_gone: called when the connection is lost before the answer is out.
    """

    on_gone: Callable[[], object] | None = None

    def _cancel(self, exc: BaseException) -> None:
        # The only notice that aiohttp gives without cancelling handlers that must end what they do.
        super()._cancel(exc)
        if self.on_gone is not None:
            self.on_gone()


async def read_body(request: Request, max_body_bytes: int) -> bytes:
    """The body without its Content-Encoding.

    Args:
        max_body_bytes: of the server, and of what is decompressed.

    Raises:
        TooLarge, NotReadable, UnknownEncoding: as in `content_coding`; also where the body was cut off.
    """
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise TooLarge from error
    except (web.RequestPayloadError, ConnectionError) as error:  # broken, or the client has hung up
        raise NotReadable(str(error)) from error
    return decompressed(body, request.headers.get("content-encoding") or "", max_body_bytes)


@contextmanager
def while_there(request: Request) -> Generator[None]:
    """Ends what is done within as soon as the client hangs up.

    Raises:
        ClientGone: it did.
    """
    task = asyncio.current_task()
    assert task is not None
    if request.transport is None or request.transport.is_closing():
        raise ClientGone("the client has hung up")
    before, gone = task.cancelling(), False

    def leave() -> None:
        nonlocal gone
        gone = True
        task.cancel()

    request.on_gone = leave
    try:
        yield
    except asyncio.CancelledError:
        if gone and task.uncancel() <= before:
            raise ClientGone("the client has hung up") from None
        raise
    finally:
        request.on_gone = None


class EventStream:
    """Server-sent events as the answer to a request; the head goes out with the first of them.

    Args:
        headers: beside the content type.

    Attributes:
        begun: something was sent; an answer with another status is too late.
    """

    def __init__(self, request: Request, headers: Mapping[str, str] | None = None) -> None:
        self.response = web.StreamResponse(headers=headers)
        self.response.content_type = "text/event-stream"
        self.response.headers["cache-control"] = "no-cache"
        self.begun = False
        self._request = request

    async def write(self, events: bytes) -> None:
        """Sends events at once.

        Raises:
            ClientGone: nobody is there.
        """
        try:
            if not self.begun:
                await self._begin()
            await self.response.write(events)
        except ConnectionError as error:
            raise ClientGone(str(error)) from error

    async def end(self, events: bytes) -> None:
        """Sends the last events.

        Raises:
            ClientGone: nobody is there.
        """
        try:
            if not self.begun:
                await self._begin()
            await self.response.write_eof(events)
        except ConnectionError as error:
            raise ClientGone(str(error)) from error

    async def _begin(self) -> None:
        self.begun = True
        await self.response.prepare(self._request)


Handler = Callable[[Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """Gives each request to a handler. A client that goes away does not cancel the handling of its request.

    Bodies come as they were sent: `read_body` decompresses them, aiohttp would inflate all of one that is too large.

    Args:
        idle_seconds: how long a connection may send nothing, or half a head; aiohttp's hour where it is not given.
    """

    def __init__(
        self,
        handler: Handler,
        max_body_bytes: int,
        grace_seconds: float = GRACE_SECONDS,
        *,
        idle_seconds: float | None = None,
    ) -> None:
        self._limit = max_body_bytes
        # What the factory makes are Requests.
        answer: Any = handler
        idle: Any = {} if idle_seconds is None else {"keepalive_timeout": idle_seconds}
        server = web.Server(answer, request_factory=self._request, access_log=None, auto_decompress=False, **idle)
        self._runner = web.ServerRunner(server, shutdown_timeout=grace_seconds)

    async def start(self, listener: socket.socket) -> None:
        """Begins to answer."""
        await self._runner.setup()
        await web.SockSite(self._runner, listener, backlog=BACKLOG).start()  # it listens anew

    async def stop(self) -> None:
        """Takes no more requests, and returns when those under way are answered, or after a grace."""
        await self._runner.cleanup()

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return Request(message, payload, protocol, writer, task, loop, client_max_size=self._limit)
