"""Adapters on the real vLLM, engines that converge, a rollback by one command, and a stream through the gateway."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import openai
import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from headrace.cli.promote import app as promote_app
from headrace.connectors.engine.control import HttpEngineControl, WeightsRefusedError
from headrace.schemas.packing import unpack_float32, unpack_int32
from headrace.schemas.records import RunManifest, Span, Weights
from headrace.streams.codec import Codec
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.publish import resources_update
from tests.connectors.adapters import adapter_record, save_adapter
from tests.connectors.vllm.asking import ask, difference, publish, question
from tests.processes import running
from tests.trainers.make import RUN
from tests.trainers.pipeline import produce
from tests.trainers.test_promotion import val

pytestmark = [pytest.mark.alone, pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]
TRAINED = "trained"  # the policy of the run, whose channel the engines serve
SECONDS = 30.0


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[aiohttp.ClientSession, HttpEngineControl, int]]:
    """A session, the control, and the version that comes next."""
    async with aiohttp.ClientSession(url) as session:
        control = HttpEngineControl(url, session)
        yield session, control, (await control.loaded()).version + 1


def adapter(base: Path, into: Path, version: int, **config: Any) -> Weights:
    directory = into / f"adapter-{version}"
    save_adapter(base, directory, seed=version, **config)
    return adapter_record(base, directory, version)


async def refused(control: HttpEngineControl, weights: Weights) -> str:
    with pytest.raises(WeightsRefusedError) as error:
        await control.load(weights)
    return error.value.reason


async def test_each_request_is_answered_under_the_adapter_that_it_began_with(
    vllm: Any, model_dir: Path, tmp_path: Path
) -> None:
    async with connected(vllm.url) as (session, control, first):
        one, two = (adapter(model_dir, tmp_path, version) for version in (first, first + 1))
        assert (await control.load(one)).changed
        answer = await ask(session, 3)
        assert answer["policy_version"] == {"min": first, "max": first}
        assert answer["weights_id"] == one.weights_id
        assert difference(answer, one) < 1e-4
        assert difference(answer, two) > 1e-3  # the check can fail

        long = asyncio.create_task(ask(session, 4, 150))
        await asyncio.sleep(0.3)
        assert (await control.load(two)).changed
        assert not long.done()
        new = await ask(session, 3)
        assert not long.done()
        old = await long
        assert old["policy_version"] == {"min": first, "max": first}
        assert difference(old, one) < 1e-4
        assert new["policy_version"] == {"min": first + 1, "max": first + 1}
        assert difference(new, two) < 1e-4
        pinned = await ask(session, 3, model=f"policy-v{first}")
        assert pinned["choices"][0]["token_ids"] == answer["choices"][0]["token_ids"]
        assert pinned["policy_version"] == {"min": first, "max": first}

        wide = adapter(model_dir, tmp_path, first + 2, rank=16)
        assert await refused(control, wide) == "lora"
        nan = load_file(Path(wide.uri) / "adapter_model.safetensors")
        next(iter(nan.values()))[0, 0] = float("nan")
        save_file(nan, Path(wide.uri) / "adapter_model.safetensors")
        assert await refused(control, wide) == "sha256"
        assert await refused(control, msgspec.structs.replace(wide, sha256={})) == "not_finite"
        shutil.rmtree(wide.uri)
        assert await refused(control, wide) == "uri"
        lost = msgspec.structs.replace(one, version=first + 2, base_sha256={"model.safetensors": "0" * 64})
        assert await refused(control, lost) == "base"
        assert (await control.loaded()).version == first + 1
        assert difference(await ask(session, 5), two) < 1e-4


async def test_full_weights_and_adapters_of_any_base_take_turns(vllm: Any, model_dir: Path, tmp_path: Path) -> None:
    async with connected(vllm.url) as (session, control, first):
        full = publish(model_dir, tmp_path, first)
        other = publish(model_dir, tmp_path, 99)
        versions = [
            full,
            adapter(Path(full.uri), tmp_path, first + 1),
            adapter(model_dir, tmp_path, first + 2),
            publish(model_dir, tmp_path, first + 3),
            adapter(Path(other.uri), tmp_path, first + 4),
        ]
        for weights in versions:
            assert (await control.load(weights)).changed
            answer = await ask(session, 3)
            assert answer["policy_version"] == {"min": weights.version, "max": weights.version}
            assert difference(answer, weights) < 1e-4


@pytest.mark.kafka
async def test_a_stream_through_the_gateway_is_recorded_as_vllm_answers_itself(vllm: Any, settings: Settings) -> None:
    fields = question(6, 24)
    async with connected(vllm.url) as (session, _, _):
        direct = await ask(session, 6, 24)
    asked = {name: fields[name] for name in ("model", "messages", "seed", "temperature", "max_tokens")}
    with ExitStack() as stack:
        started = running(settings, "gateway", "--engine", vllm.url)
        gateway = await asyncio.to_thread(stack.enter_context, started)
        base_url = f"{gateway['url']}/rollout/r1/attempt/r1-1/v1"
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(**asked, stream=True, extra_body={"ignore_eos": True})
            said = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
    (choice,) = direct["choices"]
    assert said == choice["message"]["content"]
    (span,) = await asyncio.to_thread(_spans, settings)
    assert span.llm is not None
    assert unpack_int32(span.llm.prompt_token_ids) == direct["prompt_token_ids"]
    (recorded,) = span.llm.choices
    assert unpack_int32(recorded.response_token_ids) == choice["token_ids"]
    logprobs = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    assert unpack_float32(recorded.logprobs or b"") == pytest.approx(logprobs, abs=1e-5)


def _spans(settings: Settings) -> list[Span]:
    codec = Codec(settings)
    messages = read_topic(settings, settings.topic("spans"), range(settings.partitions), client_id="test")
    return [codec.decode_as(Span, message.value()) for message in messages]


@pytest.mark.kafka
async def test_engines_converge_and_one_command_rolls_all_of_them_back(
    vllm: Any, start_engine: Callable[..., Any], settings: Settings, model_dir: Path, tmp_path: Path
) -> None:
    """A channel gets full weights, an adapter, a broken version that nobody loads, and the first one again."""
    async with connected(vllm.url) as (_, _, first):
        pass
    builtin = [await asyncio.to_thread(start_engine, model_dir) for _ in range(2)]
    urls = [vllm.url, *(engine.url for engine in builtin)]
    versions = _run(model_dir, tmp_path)
    # The channel goes on counting from what the server has.
    earlier = msgspec.structs.replace(versions[0], policy="policy", version=first - 1)
    validations = [val(version, i, float(version), policy=TRAINED) for version in (1, 2) for i in range(2)]
    manifest = RunManifest(run_id=RUN, algorithm="grpo", policy=TRAINED, base_weights=versions[0], created_at=0)
    updates = [resources_update(w, RUN, w.version) for w in versions]
    produce(settings, [manifest, *updates, *validations, resources_update(earlier, "other", 0)])

    async def everywhere(version: int, weights: Weights) -> None:
        """All engines serve the version, and compute what transformers computes with it."""
        for url in urls:
            async with aiohttp.ClientSession(url) as session:
                control = HttpEngineControl(url, session)
                async with asyncio.timeout(SECONDS):
                    while (await control.loaded()).version < version:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                answer = await ask(session, 2)
                assert answer["policy_version"] == {"min": version, "max": version}
                assert answer["weights_id"] == weights.weights_id
                assert difference(answer, weights) < 1e-4

    def promote(version: int) -> None:
        join = ["--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--min-samples", "2"]
        result = CliRunner().invoke(promote_app, [RUN, str(version), "--to", "policy", *join])
        assert result.exit_code == 0, result.exception

    flags = [flag for url in urls for flag in ("--engine", url)]
    with ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, running(settings, "sync", *flags))
        await asyncio.to_thread(promote, 1)
        await everywhere(first, versions[1])
        await asyncio.to_thread(promote, 2)
        await everywhere(first + 1, versions[2])
        bad = {"policy": "policy", "version": first + 2, "weights_id": "broken", "sha256": {"model.safetensors": "0"}}
        broken = msgspec.structs.replace(versions[1], **bad)
        produce(settings, [resources_update(broken, RUN, 9)])
        await asyncio.to_thread(promote, 1)
        await everywhere(first + 3, versions[1])


def _run(model: Path, into: Path) -> list[Weights]:
    """The base of a run, full weights and an adapter, as its trainer writes them."""
    checkpoints = Checkpoints(into / "store", RUN, keep=2)
    base = checkpoints.adopt(model, TRAINED, 0)
    checkpoints.use(base)
    tensors = load_file(model / "model.safetensors")
    generator = torch.Generator().manual_seed(5)
    changed = {name: t + 0.05 * torch.randn(t.shape, generator=generator) for name, t in tensors.items()}
    save_adapter(model, into / "saved")
    config = json.loads((into / "saved" / "adapter_config.json").read_text())
    halves = load_file(into / "saved" / "adapter_model.safetensors")
    return [
        base,
        checkpoints.write(changed, TRAINED, 1, "model"),
        checkpoints.write(halves, TRAINED, 2, "model", config),
    ]
