"""The process of the vLLM engine: starts the server in its own environment, announces it, ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from headrace.connectors.engine.presence import Presence, announced
from headrace.connectors.engine.waiting import await_model
from headrace.connectors.serving import bind
from headrace.connectors.vllm.command import VllmOptions, arguments, variables
from headrace.streams.environments import find_python
from headrace.streams.errors import HeadraceError
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)
POLL_SECONDS = 0.25
STOP_SECONDS = 15.0


class VllmFailedError(HeadraceError):
    """The server did not start, or ended by itself."""


class _Event(msgspec.Struct):
    """What the middleware reports."""

    loading_version: int | None = None
    loaded_version: int | None = None
    weights_id: str | None = None


async def run_vllm(
    options: VllmOptions, settings: Settings | None, worker_id: str, ready: Callable[[str], None]
) -> None:
    """Serves until it is cancelled.

    settings: None for an engine that is not announced.
    ready: called with the URL once requests are answered.

    Raises:
        EnvironmentMissingError: there is no environment with vLLM.
        VllmFailedError: the server did not start, or ended.
        ModelMissingError: see `await_model`.
    """
    python = find_python("vllm", os.environ)
    await asyncio.to_thread(await_model, options.model, options.wait_model)
    port = options.port or _free_port()
    url = f"http://127.0.0.1:{port}"
    async with _server(str(python), options, port) as (process, events):
        await _healthy(process, url, options.start_seconds)
        async with announced(settings, worker_id, url, options.policy, dict) as presence:
            ready(url)
            reporting = asyncio.create_task(_report(events, presence))
            try:
                code = await process.wait()
            finally:
                reporting.cancel()
            raise VllmFailedError(f"the vLLM server ended with code {code}; its log is above")


def _free_port() -> int:
    with bind(0) as listener:
        return int(listener.getsockname()[1])


@asynccontextmanager
async def _server(
    python: str, options: VllmOptions, port: int
) -> AsyncGenerator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    """The server in a session of its own: Ctrl-C reaches it only from here, and nothing of it outlives the block."""
    reading, writing = os.pipe()
    events = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(events), os.fdopen(reading, "rb", 0)
    )
    with tempfile.TemporaryDirectory(prefix="headrace-vllm-") as scratch:
        try:
            process = await asyncio.create_subprocess_exec(
                python,
                *arguments(options, port),
                env=variables(options, writing, scratch, os.environ),
                stdin=asyncio.subprocess.DEVNULL,
                # stdout carries the ready line alone.
                stdout=sys.stderr.fileno(),
                pass_fds=[writing],
                start_new_session=True,
            )
        finally:
            os.close(writing)
        try:
            yield process, events
        finally:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    # What is left of its group: the engine core and its workers.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _healthy(process: asyncio.subprocess.Process, url: str, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds), aiohttp.ClientSession() as session:
            while process.returncode is None:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"{url}/health") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise VllmFailedError(f"the vLLM server did not answer within {seconds:.0f} s; see --start-seconds") from None
    raise VllmFailedError(f"the vLLM server ended with code {process.returncode} at its start; its log is above")


async def _report(events: asyncio.StreamReader, presence: Presence) -> None:
    while line := await events.readline():
        event = msgspec.convert(json.loads(line), _Event)
        if event.loaded_version is not None:
            presence.loaded(event.loaded_version, event.weights_id)
        elif event.loading_version is not None:
            presence.loading(event.loading_version)
