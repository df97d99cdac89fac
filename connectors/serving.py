"""Runs an ASGI application on a loopback port until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import uvicorn

from headrace.streams.errors import HeadraceError

# Answers under way may take this long after a signal.
GRACE_SECONDS = 5


class PortError(HeadraceError, OSError):
    """The port cannot be bound."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # uvicorn raises the signals it caught again, which would end the process with their code instead of 0.
        yield


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
    listener.listen(2048)
    return listener


def endpoint(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"


async def serve(app: Any, listener: socket.socket, on_ready: Callable[[], Awaitable[None]] | None = None) -> None:
    """Serves until a signal comes; on_ready runs once requests are answered."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        log_level="warning",
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.005)
    if on_ready is not None and not serving.done():
        await on_ready()
    await serving
