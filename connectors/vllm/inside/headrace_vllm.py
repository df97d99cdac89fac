# pyright: basic, reportMissingImports=false
"""Headrace inside the vLLM server: loads published weights and stamps answers with the versions that generated them.

Runs in vLLM's own environment, which holds none of Headrace's dependencies; this folder is on its PYTHONPATH.
`WorkerExtension` is given as --worker-extension-cls, `Middleware` as --middleware.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import sys
import time
import types
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

# The package's folder without its front door, which would import what this environment lacks.
if "headrace" not in sys.modules:
    package = types.ModuleType("headrace")
    package.__path__ = [os.environ["HEADRACE_PACKAGE"]]
    sys.modules["headrace"] = package

from headrace_adapters import Adapters

from headrace.connectors.engine.adapter import LORA, Adapter, fits, merge, read_adapter, read_base
from headrace.connectors.engine.checkpoint import (
    CheckpointError,
    Signature,
    TensorBytes,
    parse_files,
    read_checkpoint,
    read_files,
    signature,
    verify,
)
from headrace.connectors.engine.weights import (
    LoadedVersion,
    WeightsRefused,
    WeightsRequest,
    is_loaded,
    parse_weights,
)

log = logging.getLogger("vllm.headrace")
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/inference/")


class Version(NamedTuple):
    """What a policy serves."""

    version: int
    weights_id: str | None


class WorkerExtension:
    """Methods added to vLLM's worker."""

    def headrace_load(self, uri: str, sha256: dict[str, str], base: dict[str, Any] | None = None) -> dict[str, Any]:
        """Verifies a checkpoint, then loads the very bytes that were verified.

        base: uri and sha256 of the weights that an adapter at `uri` is merged into; None for full weights.

        Returns {"loaded": number of tensors}, or {"reason", "message"} where nothing was touched.
        """
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

        worker: Any = self
        model = worker.model_runner.get_model()
        tied = bool(getattr(worker.model_config.hf_text_config, "tie_word_embeddings", False))
        try:
            if base is None:
                tensors = read_checkpoint(uri, sha256)
            else:
                places = (worker.model_config.model, base["uri"])
                tensors = merge(read_base(places, base["sha256"]), read_adapter(uri, sha256))
            if not hasattr(worker, "headrace_signature"):
                worker.headrace_signature = signature(read_checkpoint(worker.model_config.model))
            verify(tensors, worker.headrace_signature, frozenset({"lm_head.weight"}) if tied else frozenset())
        except CheckpointError as error:
            return {"reason": error.reason, "message": str(error)}
        with set_current_vllm_config(worker.vllm_config):
            initialize_layerwise_reload(model)
            model.load_weights((name, _tensor(tensor)) for name, tensor in tensors.items())
            finalize_layerwise_reload(model, worker.model_config)
            _pack_tied_heads(model)
        worker.model_runner.reset_lora_state()
        return {"loaded": len(tensors)}


def _tensor(tensor: TensorBytes) -> Any:
    import torch

    names = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32"}
    names |= {"I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}
    return torch.frombuffer(tensor.data, dtype=getattr(torch, names[tensor.dtype])).view(tensor.shape)


def _pack_tied_heads(model: Any) -> None:
    # On a CPU a tied head keeps a packed copy of the embedding it was made from.
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for module in model.modules():
        if isinstance(module, ParallelLMHead) and hasattr(module, "cpu_linear"):
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)


class Middleware:
    """ASGI middleware of the API server: Headrace's two routes, a gate while weights change, and the stamps.

    Requests that come during a load of full weights wait for it. Those under way finish first (wait), go on with the
    new weights (keep) or end with finish_reason abort (abort); where they went on, min and max differ. An adapter is
    loaded beside the one before, where the server was started with --enable-lora: nothing waits, and each request is
    answered under the adapter that it began with.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.policy = os.environ["HEADRACE_POLICY"]
        self.in_flight = os.environ["HEADRACE_IN_FLIGHT"]
        self.events = int(os.environ["HEADRACE_EVENTS_FD"])
        self.scratch = Path(os.environ["HEADRACE_SCRATCH"])
        self.served = self.full = Version(0, None)
        self.base: dict[str, str] | None = None  # checksums of the full weights in the workers, once somebody asks
        self.signature: Signature = {}
        self.adapters: Adapters | None = None
        self.broken: str | None = None
        self.running = 0
        self.open = asyncio.Event()
        self.open.set()
        self.idle = asyncio.Event()
        self.idle.set()
        self.loading = asyncio.Lock()

    async def __call__(self, scope: dict, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif path == "/headrace/load_weights" and scope["method"] == "POST":
            await _answer(send, *await self._load_route(scope, await _body(receive)))
        elif path == "/headrace/weights" and scope["method"] == "GET":
            await _answer(send, 200, {"policy": self.policy, **self.served._asdict()})
        elif self.broken and (path == "/health" or path.startswith(GENERATING)):
            await _answer(send, 503, {"error": {"message": self.broken, "type": "server_error", "code": 503}})
        elif scope["method"] == "POST" and path.startswith(GENERATING):
            await self._generate(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _generate(self, scope: dict, receive: Any, send: Any) -> None:
        raw = None
        await self.open.wait()
        while self.adapters is not None and raw is None:
            raw = await _body(receive)
            await self.open.wait()
        # From here to the call of the server nothing is awaited: version and adapter belong together.
        began, adapter = self.full, None
        if raw is not None and self.adapters is not None:
            raw, adapter = self.adapters.choose(raw)
            scope, receive = _with_body(scope, receive, raw)
            if adapter is not None:
                began = Version(adapter.version, adapter.weights_id)
                adapter.running += 1
        self.running += 1
        self.idle.clear()
        try:
            await self.app(scope, receive, _Stamping(send, lambda: self._stamp(began)))
        finally:
            self.running -= 1
            if adapter is not None:
                adapter.running -= 1
            if not self.running:
                self.idle.set()

    def _stamp(self, began: Version) -> bytes:
        # Only full weights change under a request.
        newest = self.full if self.full.version > began.version else began
        versions = {"min": began.version, "max": newest.version}
        stamp = {"policy_version": versions, "weights_id": newest.weights_id, "logprobs_mode": "processed"}
        return json.dumps(stamp).encode()

    async def _load_route(self, scope: dict, raw: bytes) -> tuple[int, dict[str, Any]]:
        try:
            weights = parse_weights(raw)
            async with self.loading:
                began = time.perf_counter()
                changed = not is_loaded(weights, self.policy, self.served.version, self.served.weights_id)
                if changed:
                    self._tell({"loading_version": weights.version})
                    await self._load(scope["app"].state, weights)
                    self._tell({"loaded_version": self.served.version, "weights_id": self.served.weights_id})
                seconds = round(time.perf_counter() - began, 6) if changed else 0.0
                loaded = LoadedVersion(self.policy, *self.served, changed, seconds)
        except WeightsRefused as refused:
            log.warning("weights refused (%s): %s", refused.reason, refused)
            self._tell({"loaded_version": self.served.version, "weights_id": self.served.weights_id})
            return refused.status, refused.body()
        return 200, msgspec.structs.asdict(loaded)

    async def _load(self, state: Any, weights: WeightsRequest) -> None:
        engine = state.engine_client
        version = Version(weights.version, weights.weights_id)
        lora_config = engine.vllm_config.lora_config
        if weights.format == LORA and lora_config is not None:
            if self.adapters is None:
                self.adapters = Adapters(state.openai_serving_models, lora_config, self.policy, self.scratch)
            await self._load_adapter(engine, self.adapters, weights, version)
            self.served = version
            await self.adapters.prune()
            return
        base = {"uri": weights.base_model, "sha256": weights.base_sha256} if weights.format == LORA else None
        async with self._changing(engine, self.in_flight, weights):
            await self._install(engine, weights.uri, weights.sha256, base)
            self.base = {} if base is not None else _sums(weights.sha256)
            self.served = self.full = version
            if self.adapters is not None:
                self.adapters.current = None
        if self.adapters is not None:
            await self.adapters.prune(0)

    async def _load_adapter(self, engine: Any, adapters: Adapters, weights: WeightsRequest, version: Version) -> None:
        try:
            adapter = await asyncio.to_thread(self._read_adapter, engine.model_config.model, weights)
        except CheckpointError as error:
            raise WeightsRefused.broken(error) from error
        adapters.check(adapter)
        if self.base == weights.base_sha256:
            await adapters.load(adapter, weights)
            return
        # Another base under a request would be neither of its versions: those under way end first.
        async with self._changing(engine, "abort" if self.in_flight == "abort" else "wait", weights):
            await self._install(engine, weights.base_model, weights.base_sha256, None)
            self.base, self.full, adapters.current = _sums(weights.base_sha256), version, None
            try:
                await adapters.load(adapter, weights)
            except WeightsRefused as refused:  # the old base is gone
                raise RuntimeError(str(refused)) from refused

    def _read_adapter(self, model: str, weights: WeightsRequest) -> Adapter:
        adapter = read_adapter(weights.uri, weights.sha256)
        if not self.signature:
            files = read_files(model)
            self.signature = signature(parse_files(model, files))
            if self.base is None:
                self.base = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        fits(adapter, self.signature)
        if not weights.base_sha256 or self.base != weights.base_sha256:
            read_base((weights.base_model,), weights.base_sha256)  # raises before anything is paused
        return adapter

    async def _install(self, engine: Any, uri: str | None, sha256: dict[str, str], base: dict[str, Any] | None) -> None:
        (result,) = await engine.collective_rpc("headrace_load", args=(uri, sha256, base))
        if "reason" in result:
            raise WeightsRefused(result["reason"], result["message"], 422)

    @asynccontextmanager
    async def _changing(self, engine: Any, in_flight: str, weights: WeightsRequest) -> AsyncGenerator[None]:
        """Requests wait, or end, while the block changes the full weights; if it fails half-way nothing is served."""
        self.open.clear()
        try:
            if in_flight == "wait":
                await self.idle.wait()
            await engine.pause_generation(mode=in_flight, clear_cache=True)
            if in_flight == "abort":
                await self.idle.wait()
            yield
            # What was computed with the old weights must not be the prefix of a new request.
            await engine.reset_prefix_cache()
        except WeightsRefused:
            raise
        except BaseException as error:  # cancelled too: half-loaded weights must never serve
            self.broken = f"loading version {weights.version} failed half-way, restart this engine: {error!r}"
            log.exception("a load failed half-way; this engine serves no more")
            raise
        finally:
            if not self.broken:
                await engine.resume_generation()
            self.open.set()

    def _tell(self, event: dict[str, Any]) -> None:
        os.write(self.events, json.dumps(event).encode() + b"\n")


def _sums(sha256: dict[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in sha256.items() if name.endswith(".safetensors")}


def _with_body(scope: dict, receive: Any, raw: bytes) -> tuple[dict, Any]:
    """The same request with another body; what comes after it is the client's going."""
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
    given = [{"type": "http.request", "body": raw, "more_body": False}]

    async def again() -> dict:
        return given.pop() if given else await receive()

    return {**scope, "headers": [*headers, (b"content-length", str(len(raw)).encode())]}, again


class _Stamping:
    """Adds members to the JSON object of an answer with status 200; streams and errors pass as they are."""

    def __init__(self, send: Any, stamp: Any) -> None:
        self.send, self.stamp = send, stamp
        self.start: dict | None = None
        self.parts: list[bytes] = []

    async def __call__(self, message: dict) -> None:
        if message["type"] == "http.response.start":
            headers = dict(message["headers"])
            if message["status"] != 200 or not headers.get(b"content-type", b"").startswith(b"application/json"):
                await self.send(message)
                return
            self.start = message
        elif self.start is None:
            await self.send(message)
        else:
            self.parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._finish(self.start)

    async def _finish(self, start: dict) -> None:
        body = b"".join(self.parts).rstrip()
        if body.endswith(b"}") and len(body) > 2:
            body = body[:-1] + b"," + self.stamp()[1:]
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        await self.send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await self.send({"type": "http.response.body", "body": body})


async def _body(receive: Any) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _answer(send: Any, status: int, value: dict[str, Any]) -> None:
    raw = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": raw})
