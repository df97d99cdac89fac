"""The process of the builtin engine: waits for the model, loads, warms up, serves."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import torch
import uvloop

from headrace.connectors.engine.backend import load_backend
from headrace.connectors.engine.batching import Batcher, InFlight, new_choice
from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.sampling import Sampling
from headrace.connectors.engine.server import EngineServer
from headrace.connectors.serving import bind, endpoint, serve
from headrace.streams.errors import HeadraceError

log = logging.getLogger(__name__)
# The interpreter's 5 ms would make the generation thread wait that long for each operation while requests are read.
SWITCH_SECONDS = 2e-4


class ModelMissingError(HeadraceError):
    """The model directory did not appear in time, or holds no model."""


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


def await_model(directory: Path, seconds: float) -> None:
    """Returns when the directory is there; it appears whole, by one rename.

    Raises:
        ModelMissingError: it did not within the time given.
    """
    end = time.monotonic() + seconds
    while not (directory / "config.json").exists():
        if time.monotonic() >= end:
            raise ModelMissingError(f"no model at {directory}: make one with `headrace model create {directory}`")
        time.sleep(0.02)


async def _warm_up(batcher: Batcher, rows: int) -> None:
    """The first operations of a process are slow; no client should wait for them."""
    choices = [new_choice(0, i, Sampling(), 2, frozenset()) for i in range(rows)]
    await batcher.generate((0, 1, 2), choices)
    batcher.counters.reset()


async def _main(options: EngineOptions) -> None:
    listener = bind(options.port)
    tokenizer = ChatTokenizer(options.model)
    backend = load_backend(options.model)
    batcher = Batcher(
        backend,
        min(tokenizer.size, backend.vocab_size),
        max_batch=options.max_batch,
        in_flight=options.in_flight,
        wait_seconds=options.wait_ms / 1e3,
    )
    names = {str(options.model), options.model.name}
    server = EngineServer(backend, tokenizer, batcher, policy=options.policy, names=names, seed=options.seed)
    working = asyncio.create_task(batcher.run())
    await _warm_up(batcher, min(16, options.max_batch))
    worker_id = f"engine-{uuid.uuid4().hex[:12]}"

    async def ready() -> None:
        facts = {"ready": "engine", "worker_id": worker_id, "endpoint": endpoint(listener), "policy": options.policy}
        print(json.dumps(facts | {"loaded_version": 0}), flush=True)  # noqa: T201

    serving = asyncio.create_task(serve(server, listener, ready))
    done, _ = await asyncio.wait({serving, working}, return_when=asyncio.FIRST_COMPLETED)
    counters = batcher.counters
    log.info("served %s", counters)
    for task in done:
        # Generation ends only by an error, and then nothing can be served any more.
        task.result()
    working.cancel()


def run(options: EngineOptions) -> None:
    """Serves until SIGTERM or SIGINT.

    Raises:
        ModelMissingError: see `await_model`.
    """
    torch.set_num_threads(options.threads)
    sys.setswitchinterval(SWITCH_SECONDS)
    await_model(options.model, options.wait_model)
    uvloop.run(_main(options))
