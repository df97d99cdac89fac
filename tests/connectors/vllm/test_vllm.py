"""The real vLLM on a CPU: loads, stamps, refusals, and its end."""

import asyncio
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from safetensors.torch import load_file, save_file

from headrace.connectors.engine.checkpoint import directory_of
from headrace.connectors.engine.control import HttpEngineControl, WeightsRefusedError
from headrace.connectors.vllm.command import VllmOptions, arguments
from tests.connectors.adapters import adapter_record, save_adapter
from tests.connectors.vllm.asking import ask, difference, publish

pytestmark = [pytest.mark.alone, pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]


async def test_loads_under_traffic_are_exact_and_stamped(vllm: Any, model_dir: Path, tmp_path: Path) -> None:
    async with aiohttp.ClientSession(vllm.url, connector=aiohttp.TCPConnector(limit=0)) as session:
        control = HttpEngineControl(vllm.url, session)
        assert await control.health()
        first = await ask(session, 3)
        assert first["policy_version"] == {"min": 0, "max": 0}
        assert first["logprobs_mode"] == "processed"
        assert difference(first, model_dir) < 1e-4
        answers: list[dict[str, Any]] = []
        finished = asyncio.Event()

        async def client(i: int) -> None:
            while not finished.is_set():
                answers.append(await ask(session, i))

        clients = [asyncio.create_task(client(i)) for i in range(16)]
        versions = [publish(model_dir, tmp_path, version) for version in range(1, 6)]
        for weights in versions:
            loaded = await control.load(weights)
            assert (loaded.version, loaded.weights_id, loaded.changed) == (weights.version, weights.weights_id, True)
            before = len(answers)
            while len(answers) < before + 20:
                assert not any(client.done() for client in clients)
                await asyncio.sleep(0.02)
        finished.set()
        await asyncio.gather(*clients)
        assert not (await control.load(versions[-1])).changed

        for weights in versions:
            mine = [a for a in answers if a["policy_version"] == {"min": weights.version, "max": weights.version}]
            assert mine
            for answer in mine[:2]:
                assert answer["weights_id"] == weights.weights_id
                assert difference(answer, weights.uri) < 1e-4
        assert all(a["policy_version"]["min"] == a["policy_version"]["max"] for a in answers)
        assert difference(await ask(session, 3), versions[0].uri) > 1e-3  # the check can fail

        broken = publish(model_dir, tmp_path, 6)
        tensors = load_file(directory_of(broken.uri) / "model.safetensors")
        tensors["model.norm.weight"][0] = float("nan")
        save_file(tensors, directory_of(broken.uri) / "model.safetensors")
        with pytest.raises(WeightsRefusedError) as refused:
            await control.load(broken)
        assert refused.value.reason == "sha256"
        broken.sha256 = {}
        with pytest.raises(WeightsRefusedError) as refused:
            await control.load(broken)
        assert refused.value.reason == "not_finite"
        with pytest.raises(WeightsRefusedError) as refused:
            await control.load(versions[0])
        assert refused.value.reason == "stale_version"
        assert (await control.loaded()).version == 5
        assert difference(await ask(session, 3), versions[-1].uri) < 1e-4


async def test_a_tied_model_kept_requests_and_a_starter_killed_with_9(
    start_vllm: Any, model_dir: Path, tmp_path: Path
) -> None:
    tied = tmp_path / "tied"
    shutil.copytree(model_dir, tied)
    config = json.loads((tied / "config.json").read_text()) | {"tie_word_embeddings": True}
    (tied / "config.json").write_text(json.dumps(config))
    tensors = load_file(tied / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, tied / "model.safetensors", metadata={"format": "pt"})
    server = start_vllm(tied, "--in-flight", "keep")
    group = os.getpgid(_children(server.process.pid)[0])
    async with aiohttp.ClientSession(server.url) as session:
        control = HttpEngineControl(server.url, session)
        weights = publish(tied, tmp_path, 1)
        long = asyncio.create_task(ask(session, 1, 120))
        await asyncio.sleep(0.1)
        await control.load(weights)
        stamp = (await long)["policy_version"]
        assert stamp in ({"min": 0, "max": 1}, {"min": 0, "max": 0})
        assert difference(await ask(session, 1), weights.uri) < 1e-4
        # Without --enable-lora an adapter is merged into the weights that it belongs to, which are not the loaded ones.
        save_adapter(tied, tmp_path / "adapter")
        adapter = adapter_record(tied, tmp_path / "adapter", 2)
        assert (await control.load(adapter)).changed
        assert difference(await ask(session, 1), adapter) < 1e-4
    server.process.kill()
    server.process.wait()
    deadline = time.monotonic() + 20
    while _alive(group) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    assert not _alive(group)


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _alive(group: int) -> list[int]:
    """Processes of a group that are not mere zombies."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_flags_of_the_user_win(tmp_path: Path) -> None:
    extra = ("--enable-chunked-prefill", "--dtype", "bfloat16", "--max-model-len=64")
    line = arguments(VllmOptions(tmp_path, 1, "p", 0, "wait", 0, 1, extra), 1)
    assert "--no-enable-chunked-prefill" not in line
    assert line.count("--dtype") == 1
    assert line[line.index("--dtype") + 1] == "bfloat16"
    assert line[-1] == "--max-model-len=64"
    assert "--max-loras" not in line
    line = arguments(VllmOptions(tmp_path, 1, "p", 0, "wait", 0, 1, ("--enable-lora",)), 1)
    assert line[line.index("--max-loras") + 1] == "2"
