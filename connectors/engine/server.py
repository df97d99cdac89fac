"""The builtin engine's HTTP server."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
import orjson
from aiohttp import web

from headrace.connectors.content_coding import NotReadable, TooLarge, UnknownEncoding
from headrace.connectors.engine.adapter import LORA, merge, read_adapter, read_base
from headrace.connectors.engine.answers import completion
from headrace.connectors.engine.backend import Backend
from headrace.connectors.engine.batching import Batcher, Generation
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.checkpoint import CheckpointError, TensorBytes, read_checkpoint
from headrace.connectors.engine.chunks import ChunkMaker
from headrace.connectors.engine.protocol import (
    ChatRequest,
    CompletionRequest,
    RequestError,
    TextRequest,
    parse_request,
    plan,
)
from headrace.connectors.engine.tokenizing import parse_tokenize, tokenized
from headrace.connectors.engine.weights import (
    LoadedVersion,
    WeightsRefused,
    WeightsRequest,
    is_loaded,
    parse_weights,
)
from headrace.connectors.serving import ClientGone, EventStream, Request, read_body, while_there

log = logging.getLogger(__name__)

MODELS = "/v1/models"
MAX_BODY_BYTES = 64 * 1024 * 1024
THREAD_BYTES = 64 * 1024  # a larger request is tokenized beside the event loop, which serves others meanwhile
Answer = tuple[int, Any]
"""Status and the JSON value."""


class EngineServer:
    """The routes of one engine.

    policy: the policy served, which is the model's name too; other names given are accepted as well.
    seed: of the requests that give none.
    directory: the model's, where the weights that adapters belong to are looked for first.

    Attributes:
        on_loaded: called with version and weights_id after each load that changed something.
    """

    def __init__(
        self,
        backend: Backend,
        tokenizer: ChatTokenizer,
        batcher: Batcher,
        *,
        policy: str,
        names: set[str],
        seed: int,
        directory: str | None = None,
    ) -> None:
        self.policy, self.batcher = policy, batcher
        self.on_loaded: Callable[[int, str | None], None] = lambda version, weights_id: None
        self._backend, self._tokenizer = backend, tokenizer
        self._names = names | {policy}
        self._seeds = random.Random(seed)
        self._directory = directory
        self._base: tuple[dict[str, str], dict[str, TensorBytes]] | None = None
        self._loading = asyncio.Lock()
        self._identity = uuid.uuid4().hex
        self._answered = 0
        self._created = int(time.time())
        self._kinds: dict[str, tuple[type[CompletionRequest], str]] = {
            "/v1/chat/completions": (ChatRequest, "chatcmpl"),
            "/v1/completions": (TextRequest, "cmpl"),
        }
        self._routes: dict[tuple[str, str], Callable[[bytes], Awaitable[Answer]]] = {
            ("GET", MODELS): self._models,
            ("GET", "/health"): self._health,
            ("GET", "/headrace/weights"): self._weights,
            ("POST", "/headrace/load_weights"): self._load,
            ("POST", "/tokenize"): self._tokenize,
        }

    async def handle(self, request: Request) -> web.StreamResponse:
        """Answers any request. No framework: its routing costs as much as the rest of a short request."""
        try:
            if request.method == "POST" and (kind := self._kinds.get(request.path)) is not None:
                return await self._complete(request, *kind)
            handler = self._routes.get((request.method, request.path))
            return _json(*(await handler(await self._read(request)) if handler else self._other(request)))
        except RequestError as error:
            return _json(error.status, error.body())
        except ClientGone:
            return web.Response()  # nobody reads it

    async def _read(self, request: Request) -> bytes:
        try:
            return await read_body(request, MAX_BODY_BYTES)
        except TooLarge as error:
            raise RequestError("the body is too large", code="too_large", status=413) from error
        except (NotReadable, UnknownEncoding) as error:
            raise RequestError(f"the body cannot be read: {error}", code="invalid_body") from error

    def _other(self, request: Request) -> Answer:
        if request.method == "GET" and request.path.startswith(MODELS + "/"):
            name = unquote(request.path[len(MODELS) + 1 :])
            self._check_model(name)
            return 200, self._model(name)
        known = request.path in self._kinds or any(request.path == path for _, path in self._routes)
        status = 405 if known else 404
        return status, RequestError(f"{request.method} {request.path} is not served here", status=status).body()

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
            self.on_loaded(weights.version, weights.weights_id)
            return self.loaded(changed=True, seconds=time.perf_counter() - began)

    def _prepare(self, weights: WeightsRequest) -> Any:
        tensors = self._merged(weights) if weights.format == LORA else read_checkpoint(weights.uri, weights.sha256)
        self._backend.check(tensors)
        return self._backend.prepare(tensors)

    def _merged(self, weights: WeightsRequest) -> dict[str, TensorBytes]:
        adapter = read_adapter(weights.uri, weights.sha256)
        # The last base stays in memory: the next version of an adapter has the same.
        if self._base is None or self._base[0] != weights.base_sha256:
            places = (self._directory, weights.base_model)
            self._base = weights.base_sha256, read_base(places, weights.base_sha256)
        return merge(self._base[1], adapter)

    def _check_model(self, name: str | None) -> None:
        if name is not None and name not in self._names:
            known = ", ".join(sorted(self._names))
            raise RequestError(
                f"The model `{name}` does not exist; this engine serves {known}.",
                param="model",
                code="model_not_found",
                status=404,
            )

    async def _complete(self, http: Request, kind: type[CompletionRequest], prefix: str) -> web.StreamResponse:
        raw = await self._read(http)
        asked = parse_request(raw, kind)
        self._check_model(asked.model)
        seed = self._seeds.getrandbits(63)
        planned = partial(plan, asked, self._tokenizer, self._backend.max_positions, self.batcher.max_batch, seed)
        prompt, choices = planned() if len(raw) < THREAD_BYTES else await asyncio.to_thread(planned)
        self._answered += 1
        identity, model = f"{prefix}-{self._identity}-{self._answered}", asked.model or self.policy
        with while_there(http):
            if asked.stream:
                chunks = ChunkMaker(asked, identity, model, prompt, choices, self._tokenizer)
                return await self._stream(http, chunks, prompt, choices)
            await self.batcher.generate(prompt, choices)
        return _json(200, completion(asked, identity, model, prompt, choices, self._tokenizer))

    async def _stream(
        self, http: Request, chunks: ChunkMaker, prompt: tuple[int, ...], choices: list[Generation]
    ) -> web.StreamResponse:
        out = EventStream(http)
        async with aclosing(self.batcher.stream(prompt, choices)) as steps:
            async for _ in steps:
                if events := chunks.step():
                    await out.write(events)
        await out.end(chunks.last())
        return out.response

    def _model(self, name: str) -> dict[str, Any]:
        model = {"id": name, "object": "model", "created": self._created, "owned_by": "headrace"}
        return model | {"max_model_len": self._backend.max_positions}

    async def _models(self, _: bytes) -> Answer:
        names = sorted(self._names, key=lambda name: (name != self.policy, name))
        return 200, {"object": "list", "data": [self._model(name) for name in names]}

    async def _tokenize(self, raw: bytes) -> Answer:
        asked = parse_tokenize(raw)
        self._check_model(asked.model)
        made = partial(tokenized, asked, self._tokenizer, self._backend.max_positions)
        return 200, made() if len(raw) < THREAD_BYTES else await asyncio.to_thread(made)

    async def _health(self, _: bytes) -> Answer:
        return 200, {"status": "ok"}

    async def _weights(self, _: bytes) -> Answer:
        loaded = self.loaded()
        return 200, {"policy": loaded.policy, "version": loaded.version, "weights_id": loaded.weights_id}

    async def _load(self, raw: bytes) -> Answer:
        try:
            weights = parse_weights(raw)
            loaded = await self.load(weights)
        except WeightsRefused as refused:
            log.warning("weights refused (%s): %s", refused.reason, refused)
            return refused.status, refused.body()
        log.info("loaded %s version %d in %.1f ms", loaded.policy, loaded.version, 1e3 * loaded.seconds)
        return 200, msgspec.structs.asdict(loaded)


def _json(status: int, value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")
