"""From what is published to what the agent of one rollout gets."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from headrace.schemas.records import LLM as PublishedLLM
from headrace.schemas.records import PromptTemplate as PublishedTemplate
from headrace.schemas.records import ProxyLLM, ResourcesUpdate, Weights
from headrace.streams.agent.errors import ResourceError
from headrace.streams.agent.resources import LLM, PromptTemplate, Resource, Resources
from headrace.streams.resources import ResourceFollower
from headrace.streams.workers import GATEWAY, Workers

PUBLICATION_SECONDS = 5.0  # how long a pinned publication that nobody has seen yet is waited for
DEFAULT_LLM = "llm"
FRESH_SECONDS = 0.25  # asking for the live workers costs microseconds, but a rollout has few of them
WAIT_SECONDS = 0.2
PROBE_SECONDS = 1.0


class Gateways:
    """Where the gateway is: by setting, else by WorkerState; several take turns."""

    def __init__(self, fixed: str | None, workers: Workers | None) -> None:
        self._fixed = fixed.rstrip("/") if fixed else None
        self._workers = workers
        self._turn = 0
        self._live: list[str] = []
        self._known: dict[str, None] = {}  # in the order of their coming
        self._refusing: set[str] = set()
        self._asked = -FRESH_SECONDS

    def there(self) -> bool:
        """Whether a gateway is there."""
        return self._fixed is not None or bool(self._now())

    def urls(self) -> tuple[list[str], list[str]]:
        """The gateways that answer now, and all that ever were."""
        if self._fixed is not None:
            return [self._fixed], [self._fixed]
        return self._now(), list(self._known)

    async def probe(self) -> None:
        """Looks which gateways refuse connections: one that was killed counts as alive for a few heartbeats more."""
        if self._fixed is not None:
            return
        self._now()
        urls = list(self._live)
        refused = await asyncio.gather(*(_refuses(url) for url in urls))
        self._refusing = {url for url, refuses in zip(urls, refused, strict=True) if refuses}

    def pick(self) -> str | None:
        """The URL of a live gateway; None if there is none now."""
        if self._fixed is not None:
            return self._fixed
        live = self._now()
        if not live:
            return None
        self._turn += 1
        return live[self._turn % len(live)]

    def _now(self) -> list[str]:
        now = time.monotonic()
        if self._workers is not None and (not self._live or now - self._asked > FRESH_SECONDS):
            self._live = [w.endpoint.rstrip("/") for w in self._workers.live(GATEWAY) if w.endpoint]
            self._known |= dict.fromkeys(self._live)
            self._asked = now
        return [url for url in self._live if url not in self._refusing] if self._refusing else self._live


async def _refuses(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, parts.hostname or "", port
            )
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):  # it may be busy, or the way to it
        return False
    transport.close()
    return False


class ResourceResolver:
    """Finds the publication of a task, and makes of it what its agent gets."""

    def __init__(self, follower: ResourceFollower, gateways: Gateways, policy: str, name: str | None) -> None:
        self._follower = follower
        self._gateways = gateways
        self._policy = policy
        self._name = name
        self._sampling: dict[str, dict[str, Any]] = {}

    async def find(self, resources_id: str | None) -> ResourcesUpdate | None:
        """The pinned publication, else the newest; None where nothing is published.

        Raises:
            ResourceError: the pinned one does not exist.
        """
        if resources_id is None:
            return self._follower.newest(self._name)
        update = self._follower.get(resources_id)
        if update is None:
            update = await asyncio.to_thread(self._follower.wait, resources_id, PUBLICATION_SECONDS)
        if update is None:
            raise ResourceError(f"the task pins resources {resources_id!r}, which nobody has published")
        return update

    async def gateway_there(self, given_up: Callable[[], bool] = lambda: False) -> None:
        """Waits for a gateway, unless it is not wanted any more."""
        while not (self._gateways.there() or given_up()):  # noqa: ASYNC110  # who is there is told to another thread
            await asyncio.sleep(WAIT_SECONDS)

    def bind(self, update: ResourcesUpdate | None, rollout_id: str, attempt_id: str) -> Resources:
        """The resources of one attempt; models behind the gateway get its URL.

        Raises:
            ResourceError: a model stands behind a gateway that is not there.
        """
        gateway = self._gateways.pick()
        path = f"/rollout/{rollout_id}/attempt/{attempt_id}/v1"
        named: dict[str, Resource] = {}
        policy = self._policy
        for name, resource in update.resources.items() if update else ():
            if isinstance(resource, PublishedTemplate):
                named[name] = PromptTemplate(resource.template, resource.engine)
            elif isinstance(resource, PublishedLLM):
                named[name] = LLM(
                    resource.endpoint, resource.model, self._parsed(resource.sampling_parameters), resource.api_key_env
                )
            elif isinstance(resource, ProxyLLM):
                base = resource.endpoint.rstrip("/").removesuffix("/v1") or gateway
                if base is None:
                    raise ResourceError(f"resource {name!r} stands behind the gateway, but no gateway is there")
                named[name] = LLM(
                    base + path, resource.model, self._parsed(resource.sampling_parameters), resource.api_key_env
                )
            elif isinstance(resource, Weights):  # pyright: ignore[reportUnnecessaryIsInstance]  # a later kind is passed over
                policy = resource.policy
        if gateway is not None and not any(isinstance(r, LLM) for r in named.values()):
            named[DEFAULT_LLM] = LLM(gateway + path, policy)
        return Resources(named, update.resources_id if update else None)

    def _parsed(self, text: str) -> dict[str, Any]:
        parsed = self._sampling.get(text)
        if parsed is None:
            parsed = self._sampling[text] = json.loads(text)
        return parsed
