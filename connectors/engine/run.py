"""The process of the builtin engine: waits for the model, loads, warms up, serves."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from headrace.connectors.engine.batching import Batcher, InFlight, new_choice
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.checkpoint import CheckpointError
from headrace.connectors.engine.load import load_backend
from headrace.connectors.engine.presence import announced
from headrace.connectors.engine.sampling import Sampling
from headrace.connectors.engine.server import MAX_BODY_BYTES, EngineServer
from headrace.connectors.engine.waiting import await_model
from headrace.connectors.serving import HttpServer, bind, endpoint
from headrace.streams.errors import HeadraceError
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)
# The interpreter's 5 ms would make the generation thread wait that long for each operation while requests are read.
SWITCH_SECONDS = 2e-4


Ready = Callable[[str], None]


class ModelUnusableError(HeadraceError):
    """The directory holds no model that can be served."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What `headrace engine builtin` takes."""

    model: Path
    port: int
    policy: str
    seed: int
    threads: int
    max_batch: int
    wait_ms: float
    in_flight: InFlight
    wait_model: float


async def _warm_up(batcher: Batcher, rows: int) -> None:
    """The first operations of a process are slow; no client should wait for them."""
    choices = [new_choice(0, i, Sampling(), 2, frozenset()) for i in range(rows)]
    await batcher.generate((0, 1, 2), choices)
    batcher.counters.reset()


async def run_builtin(options: EngineOptions, settings: Settings | None, worker_id: str, ready: Ready) -> None:
    """Serves until it is cancelled.

    settings: None for an engine that is not announced.
    ready: called with the URL once requests are answered and gateways can find the engine.

    Raises:
        ModelMissingError: see `await_model`.
        ModelUnusableError: the directory holds no model that can be served.
        PortError: the port is in use.
    """
    torch.set_num_threads(options.threads)
    sys.setswitchinterval(SWITCH_SECONDS)
    await asyncio.to_thread(await_model, options.model, options.wait_model)
    listener = bind(options.port)
    url = endpoint(listener)
    batcher, server = _load(options)
    http = HttpServer(server.handle, MAX_BODY_BYTES)
    generating = asyncio.create_task(batcher.run())
    try:
        await _warm_up(batcher, min(16, options.max_batch))
        await http.start(listener)
        async with announced(settings, worker_id, url, options.policy, batcher.counters.whole) as presence:
            server.on_loaded = presence.loaded
            ready(url)
            # Not awaited itself: a signal must not cancel it before the last answers are out.
            await asyncio.wait({generating})
            generating.result()
    finally:
        await http.stop()
        generating.cancel()
        log.info("served %s", batcher.counters)


def _load(options: EngineOptions) -> tuple[Batcher, EngineServer]:
    try:
        tokenizer = ChatTokenizer(options.model)
        backend = load_backend(options.model)
    except CheckpointError as error:
        raise ModelUnusableError(f"{options.model} cannot be served: {error}") from error
    batcher = Batcher(
        backend,
        min(tokenizer.size, backend.vocab_size),
        max_batch=options.max_batch,
        in_flight=options.in_flight,
        wait_seconds=options.wait_ms / 1e3,
    )
    model = str(options.model)
    names = {model, options.model.name}
    server = EngineServer(
        backend, tokenizer, batcher, policy=options.policy, names=names, seed=options.seed, directory=model
    )
    return batcher, server
