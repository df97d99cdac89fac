"""An engine in the workers topic."""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from headrace.connectors.engine.control import HttpEngineControl
from headrace.schemas.records import WorkerState
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, Workers

pytestmark = pytest.mark.kafka
DEADLINE_SECONDS = 30


async def _until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + DEADLINE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.02)
    return found


async def test_gateways_find_the_engine_and_learn_what_it_loaded(
    settings: Settings, model_dir: Path, publish: Any, headrace: str
) -> None:
    flags = ["--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--policy", "judge"]
    command = [headrace, "engine", "builtin", str(model_dir), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    states: list[WorkerState] = []
    workers = await asyncio.to_thread(Workers(settings, client_id="test", changed=states.append).start)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        (state,) = await _until(lambda: workers.live(ENGINE, "judge"))
        assert (state.worker_id, state.endpoint) == (ready["worker_id"], ready["endpoint"])
        assert (state.loaded_version, state.weights_id) == (0, None)
        async with aiohttp.ClientSession() as session:
            await HttpEngineControl(state.endpoint, session).load(publish(3, policy="judge"))
        await _until(lambda: workers.live(ENGINE)[0].loaded_version == 3)
        assert workers.live(ENGINE)[0].weights_id == "id-3"
        process.terminate()
        assert await asyncio.to_thread(process.wait, 20) == 0
        await _until(lambda: not workers.live(ENGINE))
        assert states[-1].status == "gone"
    finally:
        process.kill()
        workers.close()
