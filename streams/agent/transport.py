"""How the shared client carries calls: over `streams.http1` where it can, for 0.1 to 0.5 ms less CPU than aiohttp.

What needs more (TLS, a streamed answer, a body that is a stream itself) goes through the client's own transport.
"""

import asyncio
from typing import cast

import httpx2

from headrace.streams.http1.answers import HttpAnswer, MalformedAnswerError
from headrace.streams.http1.connections import Connections

MAX_ANSWER_BYTES = 256 * 1024 * 1024
_STREAMED = b'"stream"'  # as a key of the body; within a text its quotes would be escaped
_HOP_HEADERS = (b"accept-encoding", b"connection", b"content-length", b"host", b"transfer-encoding")


class AgentTransport(httpx2.AsyncBaseTransport):
    """Plain HTTP to few servers, many calls at once.

    Args:
        general: carries whatever this does not; closed with it.
    """

    def __init__(self, general: httpx2.AsyncBaseTransport) -> None:
        self._general = general
        self._pools: dict[bytes, Connections] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request.

        Raises:
            httpx2.TransportError: its kinds as httpx2's own transport has them.
        """
        body = _whole_body(request)
        if request.url.scheme != "http" or body is None or _STREAMED in body:
            return await self._general.handle_async_request(request)
        answer = await self._ask(request, body)
        return httpx2.Response(answer.status, headers=list(answer.headers), content=answer.body, request=request)

    async def aclose(self) -> None:
        """Closes idle connections and the general transport."""
        for pool in self._pools.values():
            pool.close()
        await self._general.aclose()

    async def _ask(self, request: httpx2.Request, body: bytes) -> HttpAnswer:
        limits = cast("dict[str, float | None]", request.extensions.get("timeout", {}))
        whole = _head(request, body) + body
        address = request.url.netloc
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = Connections(f"http://{address.decode()}", MAX_ANSWER_BYTES)
        try:
            connection = await pool.take(limits.get("connect"))
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"no connection to {request.url}", request=request) from error
        except OSError as error:
            raise httpx2.ConnectError(f"{request.url}: {error}", request=request) from error
        try:
            async with asyncio.timeout(limits.get("read")):
                answer = await connection.ask(whole)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer from {request.url}", request=request) from error
        except OSError as error:
            raise httpx2.ReadError(f"{request.url}: {error}", request=request) from error
        except MalformedAnswerError as error:
            raise httpx2.RemoteProtocolError(f"{request.url}: {error}", request=request) from error
        pool.give_back(connection)
        return answer


def _whole_body(request: httpx2.Request) -> bytes | None:
    """The body; None where it is a stream that was not read."""
    try:
        return request.content
    except httpx2.RequestNotRead:
        return None


def _head(request: httpx2.Request, body: bytes) -> bytes:
    lines = [
        b"%b %b HTTP/1.1\r\nhost: %b" % (request.method.encode(), request.url.raw_path, request.url.netloc),
        b"accept-encoding: identity\r\ncontent-length: %d" % len(body),
    ]
    lines += [b"%b: %b" % (name, value) for name, value in request.headers.raw if name.lower() not in _HOP_HEADERS]
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    if head.count(b"\n") != len(lines) + 3:  # the first two have one within, and two end the head
        raise httpx2.LocalProtocolError("a header of the request has a line break in it", request=request)
    return head
