"""The OpenAI clients that all rollouts of a process share: one connection pool, a copy of the client for each URL.

A client of its own for each rollout would cost 40 ms (a TLS context), `with_options(base_url=...)` 0.3-0.5 ms.
"""

import asyncio
import os
import threading
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies
from weakref import WeakKeyDictionary

from headrace.streams.agent.failover import redirected
from headrace.streams.agent.tracer import CURRENT
from headrace.streams.tracecontext import format_traceparent

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI, OpenAI

NOWHERE = "http://127.0.0.1:9/v1"  # the shared clients themselves are never called
NO_KEY = "none"
KEY_VARIABLE = "HEADRACE_GATEWAY_KEY"
ROLLOUT_PATH = "/rollout/"
CONNECTIONS = 4096  # how many rollouts run at once is the runner's to bound
CALL_SECONDS = 600.0
RETRIES = 5  # waits of half a second to eight: a gateway that is killed is found out, and another takes over
MODE_HEADER = "x-headrace-mode"
TRACE_HEADER = "traceparent"
TRAIN = "train"
_async_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI]" = WeakKeyDictionary()
_lock = threading.Lock()


def async_client(base_url: str, api_key: str | None = None) -> "AsyncOpenAI":
    """The AsyncOpenAI of the running event loop, at a URL. TLS goes over aiohttp, which costs two thirds of httpx."""
    loop = asyncio.get_running_loop()
    shared = _async_clients.get(loop)
    if shared is None:
        import httpx2
        import openai

        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        http = openai.DefaultAioHttpClient(
            limits=limits, mounts=_lean_transport(limits), event_hooks={"request": [_before_call]}
        )
        shared = openai.AsyncOpenAI(
            base_url=NOWHERE, api_key=NO_KEY, http_client=http, timeout=CALL_SECONDS, max_retries=RETRIES
        )
        _async_clients[loop] = shared
    return shared.with_options(base_url=base_url, api_key=api_key or _key_of_gateway(base_url))


def sync_client(base_url: str, api_key: str | None = None) -> "OpenAI":
    """The OpenAI that all threads share, at a URL."""
    with _lock:
        shared = _shared_sync()
    return shared.with_options(base_url=base_url, api_key=api_key or _key_of_gateway(base_url))


def _key_of_gateway(base_url: str) -> str:
    """The key for a rollout's URL; no other server is told it."""
    return os.environ.get(KEY_VARIABLE) or NO_KEY if ROLLOUT_PATH in base_url else NO_KEY


async def close_async_client() -> None:
    """Closes the connections of the running event loop's client."""
    shared = _async_clients.pop(asyncio.get_running_loop(), None)
    if shared is not None:
        await shared.close()


def _lean_transport(limits: "httpx2.Limits") -> "dict[str, httpx2.AsyncBaseTransport]":
    """For plain HTTP; nothing where the environment names a proxy for it, which the client then heeds by itself."""
    if "http" in getproxies():
        return {}
    import httpx2

    from headrace.streams.agent.transport import AgentTransport

    return {"http://": AgentTransport(httpx2.AsyncHTTPTransport(limits=limits))}


@cache
def _shared_sync() -> "OpenAI":
    import httpx2
    import openai

    http = openai.DefaultHttpxClient(
        limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        event_hooks={"request": [_prepare]},
    )
    return openai.OpenAI(base_url=NOWHERE, api_key=NO_KEY, http_client=http, timeout=CALL_SECONDS, max_retries=RETRIES)


def _prepare(request: Any) -> None:
    """Before each try of a call."""
    _say_mode(request)
    _say_parent(request)
    if (target := redirected(str(request.url))) is not None:
        request.url = request.url.copy_with(scheme=target.scheme, host=target.hostname, port=target.port)
        request.headers["host"] = target.netloc


def _say_mode(request: Any) -> None:
    """Tells the gateway that a call is no train traffic, which it would sample as training demands."""
    tracer = CURRENT.get()
    if tracer is not None and tracer.rollout.mode not in (None, TRAIN):
        request.headers[MODE_HEADER] = tracer.rollout.mode


def _say_parent(request: Any) -> None:
    """Tells the gateway which span the call stands below, unless the agent or its instrumentation has said it."""
    tracer = CURRENT.get()
    if tracer is None or TRACE_HEADER in request.headers:
        return
    span_id = tracer.span_id
    if span_id is not None:
        request.headers[TRACE_HEADER] = format_traceparent(tracer.trace_id, span_id)


async def _before_call(request: Any) -> None:
    """Holds a call back until all that was emitted is acknowledged: a reward stands before the next call's span."""
    _prepare(request)
    tracer = CURRENT.get()
    if tracer is not None and tracer.on_loop() and tracer.pending:
        await tracer.flush()
