"""The command as a process: it ends cleanly on a signal, also while its brokers are away."""

import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest

from headrace.streams.settings import Settings
from tests.processes import COMMAND, Process, put_away, ready, start, variables
from tests.waiting import eventually

pytestmark = pytest.mark.kafka
Started = Callable[..., Awaitable[tuple[Process, dict[str, Any]]]]


@pytest.fixture
def started(shared: Settings) -> Iterator[Started]:
    """A gateway, and what it said."""
    processes: list[Process] = []

    def begin(*more: str, **options: Any) -> tuple[Process, dict[str, Any]]:
        processes.append(start("gateway", "--policy", "policy", *more, env=variables(shared), **options))
        return processes[-1], ready(processes[-1])

    yield lambda *more, **options: asyncio.to_thread(begin, *more, **options)
    for process in processes:
        put_away(process)


async def test_ctrl_c_ends_it(started: Started) -> None:
    process, line = await started()
    assert line.keys() == {"ready", "url", "worker_id"}
    process.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(process.wait, 20) == 0


async def test_sigterm_ends_it_without_brokers_and_calls_may_be_made_elsewhere(
    started: Started, stub: Any, kafka: Any, shared: Settings
) -> None:
    if not kafka.pid:
        pytest.skip("the broker of HEADRACE_TEST_BOOTSTRAP is not ours to stop")
    process, line = await started("--engine", stub.url, stderr=subprocess.PIPE)
    rollout = uuid.uuid4().hex
    url = f"{line['url']}/rollout/{rollout}/attempt/{rollout}-1/v1/chat/completions"
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        async with aiohttp.ClientSession() as session:
            calling = asyncio.create_task(session.post(url, json={"messages": []}))
            await eventually(lambda: stub.requests)
            process.terminate()
            response = await calling
            error = (await response.json())["error"]["code"]
        assert (response.status, error, response.headers["Retry-After"]) == (503, "broker_unavailable", "1")
        _, log = await asyncio.to_thread(process.communicate, timeout=30)
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    assert process.returncode == 0
    assert f"given up: 1 of {shared.topic('spans')}, " in log


async def test_a_port_in_use_is_one_clear_line_and_sigterm_ends_who_has_it(started: Started) -> None:
    process, line = await started()
    port = line["url"].rpartition(":")[2]
    second = await asyncio.to_thread(
        subprocess.run, [COMMAND, "gateway", "--port", port], capture_output=True, text=True, timeout=60, check=False
    )
    process.terminate()
    assert await asyncio.to_thread(process.wait, 20) == 0
    assert second.returncode == 1
    assert port in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
