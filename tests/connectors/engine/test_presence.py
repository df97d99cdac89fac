"""An engine in the workers topic."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from headrace.connectors.engine.control import HttpEngineControl
from headrace.schemas.records import WorkerState
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, Workers
from tests.processes import put_away, ready, start, variables
from tests.waiting import eventually

pytestmark = pytest.mark.kafka


async def test_gateways_find_the_engine_and_learn_what_it_loaded(
    settings: Settings, model_dir: Path, publish: Any
) -> None:
    process = start("engine", "builtin", str(model_dir), "--policy", "judge", env=variables(settings))
    states: list[WorkerState] = []
    workers = await asyncio.to_thread(Workers(settings, client_id="test", changed=states.append).start)
    try:
        line = await asyncio.to_thread(ready, process)
        (state,) = await eventually(lambda: workers.live(ENGINE, "judge"))
        assert (state.worker_id, state.endpoint) == (line["worker_id"], line["endpoint"])
        assert (state.loaded_version, state.weights_id) == (0, None)
        async with aiohttp.ClientSession() as session:
            await HttpEngineControl(state.endpoint, session).load(publish(3, policy="judge"))
        await eventually(lambda: workers.live(ENGINE)[0].loaded_version == 3)
        assert workers.live(ENGINE)[0].weights_id == "id-3"
        process.terminate()
        assert await asyncio.to_thread(process.wait, 20) == 0
        await eventually(lambda: not workers.live(ENGINE))
        assert states[-1].status == "gone"
    finally:
        put_away(process)
        workers.close()
