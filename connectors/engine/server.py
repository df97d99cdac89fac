"""The builtin engine's HTTP server."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.connectors.engine.backend import Backend
from headrace.connectors.engine.batching import Batcher
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.checkpoint import CheckpointError, read_checkpoint
from headrace.connectors.engine.protocol import RequestError, completion, parse_request, plan
from headrace.connectors.engine.weights import (
    LoadedVersion,
    WeightsRefused,
    WeightsRequest,
    is_loaded,
    parse_weights,
)

log = logging.getLogger(__name__)


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


class EngineServer:
    """The routes of one engine.

    policy: the policy served, which is the model's name too; other names given are accepted as well.
    seed: of the requests that give none.
    """

    def __init__(
        self, backend: Backend, tokenizer: ChatTokenizer, batcher: Batcher, *, policy: str, names: set[str], seed: int
    ) -> None:
        self.policy, self.batcher = policy, batcher
        self._backend, self._tokenizer = backend, tokenizer
        self._names = names | {policy}
        self._seeds = random.Random(seed)
        self._loading = asyncio.Lock()
        self._identity = uuid.uuid4().hex
        self._answered = 0
        self._created = int(time.time())

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/health", self._health),
                Route("/headrace/weights", self._weights),
                Route("/headrace/load_weights", self._load, methods=["POST"]),
            ]
        )

    def loaded(self, *, changed: bool = False, seconds: float = 0.0) -> LoadedVersion:
        """What is served now."""
        return LoadedVersion(self.policy, self.batcher.version, self.batcher.weights_id, changed, round(seconds, 6))

    async def load(self, weights: WeightsRequest) -> LoadedVersion:
        """Verifies a version, then swaps it in between two decode steps.

        Raises:
            WeightsRefused: nothing has changed.
        """
        async with self._loading:
            began = time.perf_counter()
            if is_loaded(weights, self.policy, self.batcher.version, self.batcher.weights_id):
                return self.loaded()
            try:
                prepared = await asyncio.to_thread(self._prepare, weights)
            except CheckpointError as error:
                raise WeightsRefused.broken(error) from error
            await self.batcher.swap(prepared, weights.version, weights.weights_id)
            return self.loaded(changed=True, seconds=time.perf_counter() - began)

    def _prepare(self, weights: WeightsRequest) -> Any:
        tensors = read_checkpoint(weights.uri, weights.sha256)
        self._backend.check(tensors)
        return self._backend.prepare(tensors)

    async def _chat(self, request: Request) -> Response:
        try:
            asked = parse_request(await request.body())
            if asked.model is not None and asked.model not in self._names:
                known = ", ".join(sorted(self._names))
                raise RequestError(
                    f"The model `{asked.model}` does not exist; this engine serves {known}.",
                    param="model",
                    code="model_not_found",
                    status=404,
                )
            seed = self._seeds.getrandbits(63)
            prompt, choices = plan(asked, self._tokenizer, self._backend.max_positions, self.batcher.max_batch, seed)
        except RequestError as error:
            return _json(error.body(), error.status)
        await self.batcher.generate(prompt, choices)
        self._answered += 1
        identity = f"chatcmpl-{self._identity}-{self._answered}"
        return _json(completion(asked, identity, asked.model or self.policy, prompt, choices, self._tokenizer))

    async def _models(self, request: Request) -> Response:
        del request
        models = [
            {"id": name, "object": "model", "created": self._created, "owned_by": "headrace"}
            | {"max_model_len": self._backend.max_positions}
            for name in sorted(self._names, key=lambda name: (name != self.policy, name))
        ]
        return _json({"object": "list", "data": models})

    async def _health(self, request: Request) -> Response:
        del request
        return _json({"status": "ok"})

    async def _weights(self, request: Request) -> Response:
        del request
        loaded = self.loaded()
        return _json({"policy": loaded.policy, "version": loaded.version, "weights_id": loaded.weights_id})

    async def _load(self, request: Request) -> Response:
        try:
            weights = parse_weights(await request.body())
            loaded = await self.load(weights)
        except WeightsRefused as refused:
            log.warning("weights refused (%s): %s", refused.reason, refused)
            return _json(refused.body(), refused.status)
        log.info("loaded %s version %d in %.1f ms", loaded.policy, loaded.version, 1e3 * loaded.seconds)
        return _json(
            {
                "policy": loaded.policy,
                "version": loaded.version,
                "weights_id": loaded.weights_id,
                "changed": loaded.changed,
                "seconds": loaded.seconds,
            }
        )
