"""An HTTP server on a loopback port, on aiohttp's server, whose parser is in C: half the CPU of uvicorn with h11."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from headrace.streams.errors import HeadraceError

# Answers under way may take this long after the server was told to stop.
GRACE_SECONDS = 5.0
BACKLOG = 2048

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class PortError(HeadraceError, OSError):
    """The port cannot be bound."""


def bind(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        PortError: the port is in use.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortError(f"cannot serve on port {port}: {error.strerror}; port 0 takes a free one") from error
    listener.listen(BACKLOG)
    return listener


def endpoint(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"


class HttpServer:
    """Gives each request to a handler. A client that goes away does not cancel the handling of its request.

    Args:
        decompress: bodies, by their Content-Encoding, before the handler reads them.
    """

    def __init__(
        self,
        handler: Handler,
        max_body_bytes: int,
        grace_seconds: float = GRACE_SECONDS,
        *,
        decompress: bool = True,
    ) -> None:
        self._limit = max_body_bytes
        server = web.Server(handler, request_factory=self._request, access_log=None, auto_decompress=decompress)
        self._runner = web.ServerRunner(server, shutdown_timeout=grace_seconds)

    async def start(self, listener: socket.socket) -> None:
        """Begins to answer."""
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """Takes no more requests, and returns when those under way are answered, or after a grace."""
        await self._runner.cleanup()

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=self._limit)
