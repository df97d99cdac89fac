"""The command as a process: it ends cleanly on a signal, also while its brokers are away."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.kafka
COMMAND = str(Path(sys.executable).parent / "headrace")


def start(settings: Any, *arguments: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    joined = os.environ | {"HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}
    process = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env=joined)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it(shared: Any, number: int) -> None:
    process, ready = await asyncio.to_thread(start, shared, "gateway", "--policy", "policy")
    assert ready.keys() == {"ready", "url", "worker_id"}
    process.send_signal(number)
    assert await asyncio.to_thread(process.wait, 20) == 0


async def test_a_signal_ends_it_without_brokers(shared: Any, kafka: Any) -> None:
    if not kafka.pid:
        pytest.skip("the broker of HEADRACE_TEST_BOOTSTRAP is not ours to stop")
    process, _ = await asyncio.to_thread(start, shared, "gateway")
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        process.terminate()
        assert await asyncio.to_thread(process.wait, 30) == 0
    finally:
        os.kill(kafka.pid, signal.SIGCONT)


async def test_a_port_in_use_is_one_clear_line(shared: Any) -> None:
    process, ready = await asyncio.to_thread(start, shared, "gateway")
    port = ready["url"].rpartition(":")[2]
    second = await asyncio.to_thread(
        subprocess.run, [COMMAND, "gateway", "--port", port], capture_output=True, text=True, timeout=60, check=False
    )
    process.terminate()
    assert await asyncio.to_thread(process.wait, 20) == 0
    assert second.returncode == 1
    assert port in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
