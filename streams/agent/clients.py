"""The OpenAI clients that all rollouts of a process share: one connection pool, a copy of the client for each URL.

A client of its own for each rollout would cost 40 ms (a TLS context), `with_options(base_url=...)` 0.3-0.5 ms.
"""

import threading
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.streams.agent.tracer import CURRENT

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

NO_KEY = "none"
CONNECTIONS = 4096  # the number of rollouts at once is the runner's to bound
CALL_TIMEOUT_SECONDS = 600.0
Client = TypeVar("Client", "AsyncOpenAI", "OpenAI")
_lock = threading.Lock()


async def _rewards_first(request: Any) -> None:
    """Holds a call back until what was emitted is acknowledged, so that a reward stands before the next call's span."""
    tracer = CURRENT.get()
    if tracer is not None and tracer.pending:
        await tracer.flush()


@cache
def _shared_async() -> "AsyncOpenAI":
    import httpx2
    import openai

    http = openai.DefaultAioHttpClient(
        limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        event_hooks={"request": [_rewards_first]},
    )
    return openai.AsyncOpenAI(
        base_url="http://headrace", api_key=NO_KEY, http_client=http, timeout=CALL_TIMEOUT_SECONDS
    )


@cache
def _shared_sync() -> "OpenAI":
    import httpx2
    import openai

    http = openai.DefaultHttpxClient(
        limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    )
    return openai.OpenAI(base_url="http://headrace", api_key=NO_KEY, http_client=http, timeout=CALL_TIMEOUT_SECONDS)


def _at(client: Client, base_url: str, api_key: str) -> Client:
    return client.with_options(base_url=base_url, api_key=api_key)


def async_client(base_url: str, api_key: str | None = None) -> "AsyncOpenAI":
    """The shared AsyncOpenAI at a URL; for the runner's event loop."""
    return _at(_shared_async(), base_url, api_key or NO_KEY)


def sync_client(base_url: str, api_key: str | None = None) -> "OpenAI":
    """The shared OpenAI at a URL; for threads."""
    with _lock:
        shared = _shared_sync()
    return _at(shared, base_url, api_key or NO_KEY)
